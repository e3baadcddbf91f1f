/// Registration by a capability that can do nothing else.
#[test_only]
module enclave::registrar_tests;

use enclave::attested::{Self, Attested};
use enclave::clock_tests;
use enclave::enclave::{
    Self,
    Enclave,
    EnclaveCap,
    EnclaveConfig,
    EnclaveRegistered,
    RegistrarCap,
    RegistrarCapCreated,
    RegistrarCapRevoked
};
use enclave::pcrs;
use std::bcs;
use std::unit_test::assert_eq;
use sui::event;

/// The application.
public struct T {}

public struct RegisteredFields has drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
    registered_at_ms: u64,
    registered_by: ID,
}

public struct RegistrarFields has drop {
    config_id: ID,
    registrar_id: ID,
}

const AT_MS: u64 = 1_700_000_000_000;
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";
const OTHER_KEY: vector<u8> = x"2222222222222222222222222222222222222222222222222222222222222222";
const OTHER_PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

public struct World {
    ctx: TxContext,
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    registrar: RegistrarCap<T>,
}

fun world(): World {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let registrar = config.new_registrar_cap(&cap, &mut ctx);
    World { ctx, cap, config, registrar }
}

fun end(world: World) {
    let World { ctx: _, cap, mut config, registrar } = world;
    registrar.destroy_registrar_cap(&mut config);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
}

fun attested(config: &EnclaveConfig<T>, key: vector<u8>): Attested {
    attested::new(pcrs::new(*config.pcr0(), *config.pcr1(), *config.pcr2()), key, AT_MS)
}

use fun attested as EnclaveConfig.attested;

use fun clock_tests::is_stale as Enclave.is_stale_now;

fun revoke(world: &mut World) {
    let World { config, cap, registrar, .. } = world;
    config.revoke_registrar_cap(cap, object::id(registrar));
}

#[test]
fun a_registrar_registers_enclaves_of_the_present_image() {
    let mut world = world();
    let World { config, registrar, .. } = &mut world;
    assert!(config.is_registrar(object::id(registrar)));
    assert_eq!(registrar.registrar_config_id(), object::id(config));
    let attested = config.attested(KEY);
    let enclave = config.enclave_of_registrar(registrar, attested);
    assert_eq!(*enclave.pk(), KEY);
    assert!(!enclave.is_stale_now(config));
    let fields = RegisteredFields {
        enclave_id: object::id(&enclave),
        config_id: object::id(config),
        config_version: 0,
        pk: KEY,
        registered_at_ms: AT_MS,
        registered_by: object::id(registrar),
    };
    let registered = event::events_by_type<EnclaveRegistered<T>>();
    assert_eq!(bcs::to_bytes(&registered), bcs::to_bytes(&vector[fields]));
    enclave.destroy_enclave_for_testing();
    world.end();
}

#[test]
fun a_registrar_still_registers_after_the_image_changed() {
    let mut world = world();
    let World { config, registrar, cap, .. } = &mut world;
    config.update_pcrs(cap, OTHER_PCR, OTHER_PCR, OTHER_PCR);
    let attested = config.attested(KEY);
    config.enclave_of_registrar(registrar, attested).destroy_enclave_for_testing();
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun a_registrar_does_not_register_another_image() {
    let mut world = world();
    let World { config, registrar, .. } = &mut world;
    let other_attestation = attested::new(pcrs::new(OTHER_PCR, OTHER_PCR, OTHER_PCR), KEY, AT_MS);
    let _enclave = config.enclave_of_registrar(registrar, other_attestation);
    abort
}

#[test, expected_failure(abort_code = enclave::ENotRegistrar)]
fun a_registrar_does_not_register_under_another_config() {
    let mut world = world();
    let World { ctx, cap, registrar, .. } = &mut world;
    let mut other_config = cap.new_config_for_testing(ctx);
    let attested = other_config.attested(KEY);
    let _enclave = other_config.enclave_of_registrar(registrar, attested);
    abort
}

#[test, expected_failure(abort_code = enclave::EAlreadyRegistered)]
fun a_registrar_does_not_register_a_destroyed_key() {
    let mut world = world();
    let World { config, registrar, cap, .. } = &mut world;
    let first = config.attested(KEY);
    config.enclave_of_registrar(registrar, first).destroy_enclave(config, cap);
    let again = config.attested(KEY);
    let _enclave = config.enclave_of_registrar(registrar, again);
    abort
}

#[test, expected_failure(abort_code = enclave::ENotRegistrar)]
fun a_revoked_registrar_does_not_register() {
    let mut world = world();
    world.revoke();
    let World { config, registrar, .. } = &mut world;
    let attested = config.attested(KEY);
    let _enclave = config.enclave_of_registrar(registrar, attested);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_registrar_does_not_register_under_a_retired_config() {
    let mut world = world();
    let World { config, registrar, cap, .. } = &mut world;
    config.retire(cap);
    let attested = config.attested(KEY);
    let _enclave = config.enclave_of_registrar(registrar, attested);
    abort
}

#[test]
fun revoking_a_registrar_leaves_other_registrars_and_its_enclaves() {
    let mut world = world();
    let World { ctx, config, cap, registrar } = &mut world;
    let attested = config.attested(KEY);
    let enclave = config.enclave_of_registrar(registrar, attested);
    let second_registrar = config.new_registrar_cap(cap, ctx);
    config.revoke_registrar_cap(cap, object::id(registrar));
    assert!(!enclave.is_stale_now(config));
    let attested = config.attested(OTHER_KEY);
    config.enclave_of_registrar(&second_registrar, attested).destroy_enclave_for_testing();
    enclave.destroy_enclave_for_testing();
    second_registrar.destroy_registrar_cap(config);
    world.end();
}

#[test]
fun creation_revocation_and_destruction_are_announced() {
    let mut world = world();
    let World { ctx, config, cap, registrar } = &mut world;
    let config_id = object::id(config);
    let second = config.new_registrar_cap(cap, ctx);
    let ids = vector[object::id(registrar), object::id(&second)];
    let expected = bcs::to_bytes(&ids.map!(|registrar_id| RegistrarFields { config_id, registrar_id }));
    assert_eq!(bcs::to_bytes(&event::events_by_type<RegistrarCapCreated<T>>()), expected);
    config.revoke_registrar_cap(cap, object::id(registrar));
    second.destroy_registrar_cap(config);
    // Destroying a registrar that was revoked before emits no second event.
    world.end();
    assert_eq!(bcs::to_bytes(&event::events_by_type<RegistrarCapRevoked<T>>()), expected);
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_create_a_registrar() {
    let mut world = world();
    let World { ctx, config, .. } = &mut world;
    let other_cap = enclave::new_cap_for_testing<T>(ctx);
    let _registrar = config.new_registrar_cap(&other_cap, ctx);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun no_registrar_is_created_under_a_retired_config() {
    let mut world = world();
    let World { ctx, config, cap, .. } = &mut world;
    config.retire(cap);
    let _registrar = config.new_registrar_cap(cap, ctx);
    abort
}

#[test]
fun a_registrar_of_a_retired_config_can_be_revoked_and_destroyed() {
    let mut world = world();
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    world.revoke();
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_revoke_a_registrar() {
    let mut world = world();
    let World { ctx, config, registrar, .. } = &mut world;
    let other_cap = enclave::new_cap_for_testing<T>(ctx);
    config.revoke_registrar_cap(&other_cap, object::id(registrar));
    abort
}

#[test, expected_failure(abort_code = enclave::ENotRegistrar)]
fun a_registrar_cannot_be_revoked_again() {
    let mut world = world();
    world.revoke();
    world.revoke();
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun a_registrar_cannot_be_destroyed_with_another_config() {
    let World { mut ctx, cap, config: _config, registrar } = world();
    let mut other_config = cap.new_config_for_testing(&mut ctx);
    registrar.destroy_registrar_cap(&mut other_config);
    abort
}
