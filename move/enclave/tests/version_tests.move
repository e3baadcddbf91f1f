/// The package version of a config.
#[test_only]
module enclave::version_tests;

use enclave::attested::{Self, Attested};
use enclave::clock_tests;
use enclave::enclave::{Self, ConfigMigrated, Enclave, EnclaveCap, EnclaveConfig, RegistrarCap};
use enclave::pcrs;
use enclave::vectors;
use std::bcs;
use std::string::String;
use std::unit_test::assert_eq;
use sui::clock::Clock;
use sui::event;

/// The application.
public struct T {}

/// Has the fields of the signed payload.
public struct Reading has copy, drop {
    location: String,
    temperature: u64,
}

public struct MigratedFields has drop {
    config_id: ID,
    package_version: u64,
}

const MAX_U64: u64 = 18_446_744_073_709_551_615;
const PCR: vector<u8> =
    x"010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101";
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";

public struct World {
    ctx: TxContext,
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    enclave: Enclave<T>,
    registrar: RegistrarCap<T>,
    clock: Clock,
}

/// Returns a world whose config is of this version of the package.
fun world(package_version: u64): World {
    let clock = clock_tests::at(vectors::timestamp_ms());
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let enclave = config.new_enclave_for_testing(&cap, vectors::public_key());
    let registrar = config.new_registrar_cap(&cap, &mut ctx);
    config.set_package_version_for_testing(package_version);
    World { ctx, cap, config, enclave, registrar, clock }
}

fun end(world: World) {
    let World { ctx: _, cap, mut config, enclave, registrar, clock } = world;
    registrar.destroy_registrar_cap(&mut config);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    enclave.destroy_enclave_for_testing();
    clock.destroy_for_testing();
}

fun submit(world: &World) {
    world
        .enclave
        .assert_signed(
            &world.config,
            &world.clock,
            MAX_U64,
            vectors::intent(),
            vectors::timestamp_ms(),
            Reading { location: vectors::location(), temperature: vectors::temperature() },
            &vectors::signature(),
        )
}

fun migrate(world: &mut World) {
    let World { config, cap, .. } = world;
    config.migrate(cap);
}

fun attested(): Attested {
    attested::new(pcrs::new(PCR, PCR, PCR), KEY, 0)
}

// === migrate ===

#[test]
fun a_new_config_is_of_this_version() {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let config = cap.new_config_for_testing(&mut ctx);
    assert_eq!(config.package_version(), 1);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
}

#[test]
fun a_config_of_an_older_version_migrates_and_announces_it() {
    let mut world = world(0);
    world.migrate();
    assert_eq!(world.config.package_version(), 1);
    world.submit();
    let fields = MigratedFields { config_id: object::id(&world.config), package_version: 1 };
    assert_eq!(bcs::to_bytes(&event::events_by_type<ConfigMigrated<T>>()), bcs::to_bytes(&vector[fields]));
    world.end();
}

#[test, expected_failure(abort_code = enclave::ENotOlder)]
fun a_config_cannot_migrate_twice() {
    let mut world = world(0);
    world.migrate();
    world.migrate();
    abort
}

#[test, expected_failure(abort_code = enclave::ENotOlder)]
fun a_config_of_a_newer_version_cannot_migrate() {
    world(2).migrate();
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_migrate_a_config() {
    let mut world = world(0);
    let other_cap = enclave::new_cap_for_testing<T>(&mut world.ctx);
    let World { config, .. } = &mut world;
    config.migrate(&other_cap);
    abort
}

#[test]
fun a_retired_config_migrates() {
    let mut world = world(1);
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    config.set_package_version_for_testing(0);
    config.migrate(cap);
    assert!(config.is_retired());
    world.end();
}

// === With a config of another version ===

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_answer_is_accepted_under_an_older_config() {
    world(0).submit();
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_answer_is_accepted_under_a_newer_config() {
    world(2).submit();
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_enclave_is_registered() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    let _enclave = config.enclave_of(cap, attested());
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_registrar_registers() {
    let mut world = world(2);
    let World { config, registrar, .. } = &mut world;
    let _enclave = config.enclave_of_registrar(registrar, attested());
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_registrar_is_created() {
    let mut world = world(2);
    let World { ctx, config, cap, .. } = &mut world;
    let _registrar = config.new_registrar_cap(cap, ctx);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_registrar_is_revoked() {
    let mut world = world(2);
    let World { config, cap, registrar, .. } = &mut world;
    config.revoke_registrar_cap(cap, object::id(registrar));
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_registrar_is_destroyed() {
    world(2).end();
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_registers_are_updated() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    config.update_pcrs(cap, PCR, PCR, PCR);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_rotation_begins() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    let _rotation = config.begin_rotation(cap, PCR, PCR, PCR, option::none());
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_overlap_begins() {
    let mut world = world(2);
    let World { config, cap, clock, .. } = &mut world;
    config.begin_overlap(cap, PCR, PCR, PCR, option::none(), MAX_U64, clock);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_overlap_ends() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    config.end_overlap(cap);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_name_is_updated() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    config.update_name(cap, b"other".to_string());
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun no_maximum_key_age_is_updated() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    config.update_max_key_age(cap, option::none());
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun the_config_is_not_retired() {
    let mut world = world(2);
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun the_admin_destroys_no_enclave() {
    let World { ctx: _, cap, config, enclave, registrar: _registrar, clock: _clock } = world(2);
    enclave.destroy_enclave(&config, &cap);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun nobody_else_destroys_an_enclave() {
    let World { ctx: _, cap: _cap, config, enclave, registrar: _registrar, clock } = world(2);
    enclave.destroy_old_enclave(&config, &clock);
    abort
}
