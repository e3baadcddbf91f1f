/// Registration by anyone, under a config that was created open.
#[test_only]
module enclave::open_tests;

use enclave::attested::{Self, Attested};
use enclave::clock_tests;
use enclave::enclave::{
    Self,
    Enclave,
    EnclaveCap,
    EnclaveConfig,
    EnclaveConfigCreated,
    EnclaveRegistered,
    OpenConfigCreated
};
use enclave::pcrs;
use enclave::vectors;
use std::bcs;
use std::string::String;
use std::unit_test::assert_eq;
use sui::clock::Clock;
use sui::event;
use sui::test_scenario;

/// The application.
public struct T {}

/// Has the fields of the signed payload.
public struct Reading has copy, drop {
    location: String,
    temperature: u64,
}

public struct OpenConfigFields has drop {
    config_id: ID,
}

public struct RegisteredFields has drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
    registered_at_ms: u64,
    registered_by: ID,
}

const MINUTE_MS: u64 = 60 * 1000;
const AT_MS: u64 = 1_744_683_300_000;
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";
const OTHER_KEY: vector<u8> = x"2222222222222222222222222222222222222222222222222222222222222222";
const PCR: vector<u8> =
    x"010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101";
const OTHER_PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const ZERO: vector<u8> =
    x"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

public struct World {
    ctx: TxContext,
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    clock: Clock,
}

fun world(): World {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let config = cap.new_open_config_for_testing(&mut ctx);
    World { ctx, cap, config, clock: clock_tests::at(AT_MS) }
}

fun end(world: World) {
    let World { ctx: _, cap, config, clock } = world;
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    clock.destroy_for_testing();
}

/// An attestation of the config's latest registers, made at this time.
fun attested_at(config: &EnclaveConfig<T>, key: vector<u8>, at_ms: u64): Attested {
    attested::new(pcrs::new(*config.pcr0(), *config.pcr1(), *config.pcr2()), key, at_ms)
}

/// Registers a key as anyone can, with an attestation that was made just now.
fun register(world: &mut World, key: vector<u8>): Enclave<T> {
    let World { config, clock, .. } = world;
    let attested = attested_at(config, key, AT_MS);
    config.enclave_of_anyone(attested, clock)
}

fun retire(world: &mut World) {
    let World { config, cap, .. } = world;
    config.retire(cap);
}

/// Replaces the image by one whose three registers have this value.
fun replace_image(world: &mut World, pcr: vector<u8>) {
    let World { config, cap, .. } = world;
    config.update_pcrs(cap, pcr, pcr, pcr);
}

/// Makes every call that changes a config.
fun change_everything(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>, clock: &Clock, ctx: &mut TxContext) {
    config.update_name(cap, b"renamed".to_string());
    config.update_max_key_age(cap, option::some(1));
    config.update_pcrs(cap, OTHER_PCR, OTHER_PCR, OTHER_PCR);
    config.begin_overlap(cap, PCR, PCR, PCR, option::none(), AT_MS + MINUTE_MS, clock);
    config.end_overlap(cap);
    let registrar = config.new_registrar_cap(cap, ctx);
    registrar.destroy_registrar_cap(config);
    config.set_package_version_for_testing(0);
    config.migrate(cap);
    config.retire(cap);
}

use fun change_everything as EnclaveConfig.change_everything;

fun submit(world: &World, enclave: &Enclave<T>) {
    enclave.assert_signed(
        &world.config,
        &world.clock,
        MINUTE_MS,
        vectors::intent(),
        vectors::timestamp_ms(),
        Reading { location: vectors::location(), temperature: vectors::temperature() },
        &vectors::signature(),
    )
}

// === The option ===

#[test]
fun a_config_is_not_open_by_default() {
    let World { mut ctx, cap, config: open, clock } = world();
    let closed_config = cap.new_config_for_testing(&mut ctx);
    assert!(open.is_open());
    assert!(!closed_config.is_open());
    closed_config.destroy_config_for_testing();
    World { ctx, cap, config: open, clock }.end();
}

#[test]
fun an_open_config_is_announced_after_its_creation() {
    let World { mut ctx, cap, config, clock } = world();
    cap.new_config_for_testing(&mut ctx).destroy_config_for_testing();
    let fields = OpenConfigFields { config_id: object::id(&config) };
    let announced = event::events_by_type<OpenConfigCreated<T>>();
    assert_eq!(bcs::to_bytes(&announced), bcs::to_bytes(&vector[fields]));
    assert_eq!(event::events_by_type<EnclaveConfigCreated<T>>().length(), 2);
    World { ctx, cap, config, clock }.end();
}

#[test]
fun an_open_config_is_shared_as_any_other() {
    let mut scenario = test_scenario::begin(@0xAD);
    let cap = enclave::new_cap_for_testing<T>(scenario.ctx());
    cap
        .new_open_enclave_config(b"open".to_string(), PCR, PCR, PCR, option::none(), scenario.ctx())
        .share();
    scenario.next_tx(@0xB0B);
    let config = scenario.take_shared<EnclaveConfig<T>>();
    assert!(config.is_open());
    assert_eq!(*config.name(), b"open".to_string());
    test_scenario::return_shared(config);
    cap.destroy_cap_for_testing();
    scenario.end();
}

#[test]
fun no_call_changes_whether_a_config_is_open() {
    let World { mut ctx, cap, mut config, clock } = world();
    let mut closed_config = cap.new_config_for_testing(&mut ctx);
    config.change_everything(&cap, &clock, &mut ctx);
    closed_config.change_everything(&cap, &clock, &mut ctx);
    assert!(config.is_open());
    assert!(!closed_config.is_open());
    closed_config.destroy_config_for_testing();
    World { ctx, cap, config, clock }.end();
}

#[test, expected_failure(abort_code = pcrs::EDebugPcrs)]
fun an_open_config_for_debug_enclaves_is_refused() {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let _config = cap.new_open_enclave_config(b"open".to_string(), ZERO, ZERO, ZERO, option::none(), &mut ctx);
    abort
}

// === Registration ===

#[test]
fun anyone_registers_an_enclave_that_contracts_accept() {
    let mut world = world();
    let enclave = world.register(vectors::public_key());
    let config_id = object::id(&world.config);
    let fields = RegisteredFields {
        enclave_id: object::id(&enclave),
        config_id,
        config_version: 0,
        pk: vectors::public_key(),
        registered_at_ms: AT_MS,
        registered_by: config_id,
    };
    let registered = event::events_by_type<EnclaveRegistered<T>>();
    assert_eq!(bcs::to_bytes(&registered), bcs::to_bytes(&vector[fields]));
    world.submit(&enclave);
    enclave.destroy_enclave_for_testing();
    world.end();
}

#[test]
fun capability_and_registrar_still_register_under_an_open_config() {
    let World { mut ctx, cap, mut config, clock } = world();
    let registrar = config.new_registrar_cap(&cap, &mut ctx);
    let attested = attested_at(&config, KEY, AT_MS);
    config.enclave_of(&cap, attested).destroy_enclave_for_testing();
    let attested = attested_at(&config, OTHER_KEY, AT_MS);
    config.enclave_of_registrar(&registrar, attested).destroy_enclave_for_testing();
    registrar.destroy_registrar_cap(&mut config);
    World { ctx, cap, config, clock }.end();
}

#[test, expected_failure(abort_code = enclave::ENotOpen)]
fun nobody_registers_without_a_capability_under_a_config_that_is_not_open() {
    let World { mut ctx, cap, config: _config, clock } = world();
    let mut closed_config = cap.new_config_for_testing(&mut ctx);
    let attested = attested_at(&closed_config, KEY, AT_MS);
    let _enclave = closed_config.enclave_of_anyone(attested, &clock);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun another_image_is_refused() {
    let mut world = world();
    let World { config, clock, .. } = &mut world;
    let other_attestation = attested::new(pcrs::new(PCR, PCR, OTHER_PCR), KEY, AT_MS);
    let _enclave = config.enclave_of_anyone(other_attestation, clock);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun the_image_of_the_version_before_is_refused_even_in_an_overlap() {
    let mut world = world();
    let before = attested_at(&world.config, KEY, AT_MS);
    let World { cap, config, clock, .. } = &mut world;
    config.begin_overlap(cap, OTHER_PCR, OTHER_PCR, OTHER_PCR, option::none(), AT_MS + MINUTE_MS, clock);
    let _enclave = config.enclave_of_anyone(before, clock);
    abort
}

#[test, expected_failure(abort_code = pcrs::EDebugPcrs)]
fun an_enclave_in_debug_mode_is_refused() {
    let mut world = world();
    let World { config, clock, .. } = &mut world;
    let debug = attested::new(pcrs::new(ZERO, ZERO, ZERO), KEY, AT_MS);
    let _enclave = config.enclave_of_anyone(debug, clock);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidPublicKey)]
fun a_document_without_a_key_is_refused() {
    let mut world = world();
    let _enclave = world.register(vector[]);
    abort
}

#[test]
fun an_attestation_is_registered_up_to_10_minutes_after_it_was_made() {
    let mut world = world();
    let World { config, clock, .. } = &mut world;
    let oldest = attested_at(config, KEY, AT_MS - 10 * MINUTE_MS);
    config.enclave_of_anyone(oldest, clock).destroy_enclave_for_testing();
    // The hypervisor's clock may be ahead.
    let ahead = attested_at(config, OTHER_KEY, AT_MS + MINUTE_MS);
    config.enclave_of_anyone(ahead, clock).destroy_enclave_for_testing();
    world.end();
}

#[test, expected_failure(abort_code = enclave::EDocumentTooOld)]
fun an_older_attestation_is_refused() {
    let mut world = world();
    let World { config, clock, .. } = &mut world;
    let old = attested_at(config, KEY, AT_MS - 10 * MINUTE_MS - 1);
    let _enclave = config.enclave_of_anyone(old, clock);
    abort
}

#[test, expected_failure(abort_code = enclave::EDocumentTooOld)]
fun an_attestation_of_the_epoch_is_refused() {
    let mut world = world();
    let World { config, clock, .. } = &mut world;
    let first = attested_at(config, KEY, 0);
    let _enclave = config.enclave_of_anyone(first, clock);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun nobody_registers_under_a_retired_config() {
    let mut world = world();
    world.retire();
    let _enclave = world.register(KEY);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun nobody_registers_under_a_config_of_another_package_version() {
    let mut world = world();
    world.config.set_package_version_for_testing(2);
    let _enclave = world.register(KEY);
    abort
}

// === A stranger with another operator's document ===

#[test]
fun a_stranger_registers_the_enclave_as_its_operator_would_have() {
    let mut world = world();
    let enclave = world.register(vectors::public_key());
    // These are all of its fields: none names who registered it.
    assert_eq!(*enclave.pk(), vectors::public_key());
    assert_eq!(enclave.config_id(), object::id(&world.config));
    assert_eq!(enclave.config_version(), 0);
    assert_eq!(enclave.registered_at_ms(), AT_MS);
    assert!(world.config.was_registered(vectors::public_key()));
    world.submit(&enclave);
    enclave.destroy_enclave(&world.config, &world.cap);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EAlreadyRegistered)]
fun the_operator_cannot_register_the_key_again() {
    let mut world = world();
    let _first = world.register(KEY);
    let _second = world.register(KEY);
    abort
}

#[test, expected_failure(abort_code = enclave::EAlreadyRegistered)]
fun the_admin_cannot_register_a_key_that_a_stranger_registered() {
    let mut world = world();
    let _first = world.register(KEY);
    let World { config, cap, .. } = &mut world;
    let attested = attested_at(config, KEY, AT_MS);
    let _second = config.enclave_of(cap, attested);
    abort
}

#[test, expected_failure(abort_code = enclave::ENotStale)]
fun a_stranger_cannot_destroy_an_enclave_that_they_registered() {
    let mut world = world();
    let enclave = world.register(KEY);
    enclave.destroy_old_enclave(&world.config, &world.clock);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun a_strangers_capability_cannot_destroy_an_enclave() {
    let mut world = world();
    let enclave = world.register(KEY);
    let stranger_cap = enclave::new_cap_for_testing<T>(&mut world.ctx);
    enclave.destroy_enclave(&world.config, &stranger_cap);
    abort
}

#[test]
fun an_old_document_costs_an_operator_10_minutes_of_the_keys_age() {
    let mut world = world();
    let World { config, cap, clock, .. } = &mut world;
    config.update_max_key_age(cap, option::some(60 * MINUTE_MS));
    let oldest = attested_at(config, vectors::public_key(), AT_MS - 10 * MINUTE_MS);
    let enclave = config.enclave_of_anyone(oldest, clock);
    // The answer of the vectors was signed at AT_MS.
    clock.set_for_testing(AT_MS + 50 * MINUTE_MS);
    let reading = Reading { location: vectors::location(), temperature: vectors::temperature() };
    enclave.assert_signed(
        config,
        clock,
        60 * MINUTE_MS,
        vectors::intent(),
        vectors::timestamp_ms(),
        reading,
        &vectors::signature(),
    );
    enclave.destroy_enclave_for_testing();
    world.end();
}

// === The admin ===

#[test, expected_failure(abort_code = enclave::EAlreadyRegistered)]
fun a_destroyed_key_is_not_registered_again_by_anyone() {
    let mut world = world();
    let enclave = world.register(KEY);
    enclave.destroy_enclave(&world.config, &world.cap);
    let _again = world.register(KEY);
    abort
}

#[test]
fun a_host_whose_key_was_destroyed_registers_its_next_key() {
    let mut world = world();
    let enclave = world.register(KEY);
    enclave.destroy_enclave(&world.config, &world.cap);
    world.register(OTHER_KEY).destroy_enclave_for_testing();
    world.end();
}

#[test]
fun a_destroyed_key_can_be_registered_at_the_next_version() {
    let mut world = world();
    let enclave = world.register(KEY);
    enclave.destroy_enclave(&world.config, &world.cap);
    world.replace_image(PCR);
    let again = world.register(KEY);
    assert_eq!(again.config_version(), 1);
    again.destroy_enclave_for_testing();
    world.end();
}

#[test]
fun anyone_destroys_the_enclaves_of_an_image_that_was_replaced() {
    let mut world = world();
    let enclave = world.register(KEY);
    world.replace_image(OTHER_PCR);
    enclave.destroy_old_enclave(&world.config, &world.clock);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun contracts_refuse_the_enclaves_of_an_image_that_was_replaced() {
    let mut world = world();
    let enclave = world.register(vectors::public_key());
    world.replace_image(OTHER_PCR);
    world.submit(&enclave);
    abort
}

#[test]
fun a_flood_of_enclaves_leaves_the_config_as_it_is() {
    let mut world = world();
    let before = bcs::to_bytes(&world.config);
    let mut enclaves: vector<Enclave<T>> = vector[];
    let mut number = 0u64;
    while (number < 200) {
        let mut key = bcs::to_bytes(&number);
        key.append(x"000000000000000000000000000000000000000000000000");
        enclaves.push_back(world.register(key));
        number = number + 1;
    };
    assert_eq!(bcs::to_bytes(&world.config), before);
    world.retire();
    while (!enclaves.is_empty()) enclaves.pop_back().destroy_old_enclave(&world.config, &world.clock);
    enclaves.destroy_empty();
    world.end();
}

#[test]
fun an_attestation_has_the_time_of_its_document() {
    let world = world();
    assert_eq!(attested_at(&world.config, KEY, AT_MS).at_ms(), AT_MS);
    world.end();
}
