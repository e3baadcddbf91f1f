/// The lifecycle of a config: capabilities of modules that are on chain already, rotation, the maximum key age and
/// retirement.
#[test_only]
module enclave::lifecycle_tests;

use enclave::attested::{Self, Attested};
use enclave::clock_tests;
use enclave::enclave::{
    Self,
    Enclave,
    EnclaveCap,
    EnclaveCapCreated,
    EnclaveConfig,
    ConfigRetired,
    MaxKeyAgeUpdated,
    NameUpdated
};
use enclave::pcrs;
use enclave::registrar_tests;
use enclave::vectors;
use std::bcs;
use std::string::String;
use std::unit_test::assert_eq;
use sui::clock::{Self, Clock};
use sui::event;
use sui::package;
use sui::test_scenario;
use sui::test_utils;

use fun clock_tests::is_stale as Enclave.is_stale_now;
use fun clock_tests::destroy_old as Enclave.destroy_old;

public struct LIFECYCLE_TESTS has drop {}

/// Another type of this module.
public struct T {}

/// Has the fields of the signed payload.
public struct Reading has copy, drop {
    location: String,
    temperature: u64,
}

public struct NameFields has drop {
    config_id: ID,
    name: String,
}

public struct AgeFields has drop {
    config_id: ID,
    max_key_age_ms: Option<u64>,
}

const ADMIN: address = @0xAD;
const HOUR_MS: u64 = 60 * 60 * 1000;
const MAX_U64: u64 = 18_446_744_073_709_551_615;
const PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";

public struct World {
    ctx: TxContext,
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    /// Registered when the vectors were signed.
    enclave: Enclave<T>,
    clock: Clock,
}

fun world(): World {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let enclave = config.new_enclave_attested_at_for_testing(
        &cap,
        vectors::public_key(),
        vectors::timestamp_ms(),
    );
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(vectors::timestamp_ms());
    World { ctx, cap, config, enclave, clock }
}

fun end(world: World) {
    let World { ctx: _, cap, config, enclave, clock } = world;
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

fun new_image(): Attested {
    attested::new(pcrs::new(PCR, PCR, PCR), KEY, vectors::timestamp_ms())
}

fun another_cap(world: &mut World): EnclaveCap<T> {
    enclave::new_cap_for_testing<T>(&mut world.ctx)
}

fun retire(world: &mut World) {
    let World { config, cap, .. } = world;
    config.retire(cap);
}

// === new_cap_from_publisher ===

#[test]
fun the_publisher_of_the_types_module_creates_capabilities() {
    let mut ctx = tx_context::dummy();
    let publisher = package::claim(test_utils::create_one_time_witness<LIFECYCLE_TESTS>(), &mut ctx);
    let cap = enclave::new_cap_from_publisher<T>(&publisher, &mut ctx);
    let further_cap = enclave::new_cap_from_publisher<LIFECYCLE_TESTS>(&publisher, &mut ctx);
    let config = cap.new_config_for_testing(&mut ctx);
    assert_eq!(config.capability_id(), object::id(&cap));
    let created = event::events_by_type<EnclaveCapCreated<T>>();
    assert_eq!(bcs::to_bytes(&created), bcs::to_bytes(&vector[object::id(&cap)]));
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    further_cap.destroy_cap_for_testing();
    publisher.burn();
}

#[test, expected_failure(abort_code = enclave::ENotPublisher)]
fun the_publisher_of_another_module_creates_no_capability() {
    let mut ctx = tx_context::dummy();
    let publisher = package::claim(test_utils::create_one_time_witness<LIFECYCLE_TESTS>(), &mut ctx);
    let _cap = enclave::new_cap_from_publisher<registrar_tests::T>(&publisher, &mut ctx);
    abort
}

#[test, expected_failure(abort_code = enclave::ENotPublisher)]
fun a_publisher_creates_no_capability_for_a_type_of_another_package() {
    let mut ctx = tx_context::dummy();
    let publisher = package::claim(test_utils::create_one_time_witness<LIFECYCLE_TESTS>(), &mut ctx);
    let _cap = enclave::new_cap_from_publisher<String>(&publisher, &mut ctx);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun a_further_capability_does_not_govern_the_configs_of_the_first() {
    let mut world = world();
    let further_cap = world.another_cap();
    let World { config, .. } = &mut world;
    config.retire(&further_cap);
    abort
}

// === One transaction ===

#[test]
fun unpack_returns_the_attested_values() {
    let (pcrs, pk, at_ms) = new_image().unpack();
    assert_eq!(pcrs, pcrs::new(PCR, PCR, PCR));
    assert_eq!(pk, KEY);
    assert_eq!(at_ms, vectors::timestamp_ms());
}

#[test]
fun one_transaction_creates_and_shares_a_config_and_an_enclave() {
    let mut scenario = test_scenario::begin(ADMIN);
    let cap = enclave::new_cap_for_testing<T>(scenario.ctx());
    let mut config = cap.new_enclave_config(b"test".to_string(), PCR, PCR, PCR, option::none(), scenario.ctx());
    let enclave = config.enclave_of(&cap, new_image());
    enclave::share_enclave(enclave);
    enclave::share_config(config);
    scenario.next_tx(ADMIN);
    let config = scenario.take_shared<EnclaveConfig<T>>();
    let enclave = scenario.take_shared<Enclave<T>>();
    assert!(!enclave.is_stale_now(&config));
    enclave.destroy_enclave(&config, &cap);
    test_scenario::return_shared(config);
    cap.destroy_cap_for_testing();
    scenario.end();
}

// === begin_rotation, finish_rotation ===

#[test]
fun a_rotation_updates_the_image_and_registers_the_successor() {
    let mut world = world();
    let World { config, cap, enclave, .. } = &mut world;
    let rotation = config.begin_rotation(cap, PCR, PCR, PCR, option::none());
    assert_eq!(config.current_config_version(), 1);
    assert!(enclave.is_stale_now(config));
    let successor = rotation.successor_of(config, cap, new_image());
    assert_eq!(successor.config_version(), 1);
    assert!(!successor.is_stale_now(config));
    successor.destroy_enclave_for_testing();
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun an_answer_of_the_predecessor_is_refused_after_a_rotation() {
    let mut world = world();
    let World { config, cap, .. } = &mut world;
    let rotation = config.begin_rotation(cap, PCR, PCR, PCR, option::none());
    let _successor = rotation.successor_of(config, cap, new_image());
    submit(&world);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_begin_a_rotation() {
    let mut world = world();
    let other_cap = world.another_cap();
    let World { config, .. } = &mut world;
    let _rotation = config.begin_rotation(&other_cap, PCR, PCR, PCR, option::none());
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun a_rotation_refuses_a_successor_of_the_old_image() {
    let mut world = world();
    let World { config, cap, .. } = &mut world;
    let old = pcrs::new(*config.pcr0(), *config.pcr1(), *config.pcr2());
    let rotation = config.begin_rotation(cap, PCR, PCR, PCR, option::none());
    let _successor = rotation.successor_of(config, cap, attested::new(old, KEY, 0));
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun a_rotation_refuses_a_successor_under_another_config() {
    let mut world = world();
    let World { ctx, config, cap, .. } = &mut world;
    let mut other_config = cap.new_enclave_config(b"another".to_string(), PCR, PCR, PCR, option::none(), ctx);
    let rotation = config.begin_rotation(cap, PCR, PCR, PCR, option::none());
    let _successor = rotation.successor_of(&mut other_config, cap, new_image());
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_retired_config_is_not_rotated() {
    let mut world = world();
    world.retire();
    let World { config, cap, .. } = &mut world;
    let _rotation = config.begin_rotation(cap, PCR, PCR, PCR, option::none());
    abort
}

// === update_max_key_age ===

fun limit(world: &mut World, max_key_age_ms: Option<u64>) {
    let World { config, cap, .. } = world;
    config.update_max_key_age(cap, max_key_age_ms);
}

fun wait(world: &mut World, ms: u64) {
    world.clock.set_for_testing(vectors::timestamp_ms() + ms)
}

#[test]
fun a_key_may_have_any_age_unless_it_is_limited() {
    let mut world = world();
    assert_eq!(world.config.max_key_age_ms(), option::none());
    world.clock.set_for_testing(MAX_U64);
    submit(&world);
    world.end();
}

#[test]
fun a_key_of_the_maximum_age_is_accepted() {
    let mut world = world();
    world.limit(option::some(HOUR_MS));
    assert_eq!(world.config.max_key_age_ms(), option::some(HOUR_MS));
    world.wait(HOUR_MS);
    submit(&world);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EKeyTooOld)]
fun a_key_older_than_the_maximum_age_is_refused() {
    let mut world = world();
    world.limit(option::some(HOUR_MS));
    world.wait(HOUR_MS + 1);
    submit(&world);
    abort
}

#[test]
fun a_key_attested_ahead_of_the_clock_is_accepted() {
    let mut world = world();
    world.limit(option::some(1));
    let World { ctx, cap, mut config, enclave, clock } = world;
    enclave.destroy_enclave_for_testing();
    config.update_pcrs(&cap, PCR, PCR, PCR);
    let ahead = config.new_enclave_attested_at_for_testing(&cap, vectors::public_key(), MAX_U64);
    let world = World { ctx, cap, config, enclave: ahead, clock };
    submit(&world);
    world.end();
}

#[test]
fun the_largest_limit_does_not_overflow() {
    let mut world = world();
    world.limit(option::some(MAX_U64));
    world.clock.set_for_testing(MAX_U64);
    submit(&world);
    world.end();
}

#[test]
fun a_limit_can_be_lifted_again() {
    let mut world = world();
    world.limit(option::some(1));
    world.limit(option::none());
    world.wait(HOUR_MS);
    submit(&world);
    let config_id = object::id(&world.config);
    let fields = vector[option::some(1), option::none()].map!(|max_key_age_ms| AgeFields {
        config_id,
        max_key_age_ms,
    });
    let updated = event::events_by_type<MaxKeyAgeUpdated<T>>();
    assert_eq!(bcs::to_bytes(&updated), bcs::to_bytes(&fields));
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidKeyAge)]
fun a_limit_of_0_is_refused() {
    world().limit(option::some(0));
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_limit_the_age_of_keys() {
    let mut world = world();
    let other_cap = world.another_cap();
    let World { config, .. } = &mut world;
    config.update_max_key_age(&other_cap, option::none());
    abort
}

#[test, expected_failure(abort_code = enclave::ENotStale)]
fun a_stranger_cannot_destroy_an_enclave_whose_key_is_too_old() {
    let mut world = world();
    world.limit(option::some(1));
    world.wait(HOUR_MS);
    let World { ctx: _, cap: _cap, config, enclave, clock: _clock } = world;
    enclave.destroy_old(&config);
    abort
}

// === retire ===

#[test]
fun retirement_is_announced() {
    let mut world = world();
    assert!(!world.config.is_retired());
    world.retire();
    assert!(world.config.is_retired());
    let retired = event::events_by_type<ConfigRetired<T>>();
    assert_eq!(bcs::to_bytes(&retired), bcs::to_bytes(&vector[object::id(&world.config)]));
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_retire_a_config() {
    let mut world = world();
    let other_cap = world.another_cap();
    let World { config, .. } = &mut world;
    config.retire(&other_cap);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun answers_under_a_retired_config_are_refused() {
    let mut world = world();
    world.retire();
    submit(&world);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun nothing_is_registered_under_a_retired_config() {
    let mut world = world();
    world.retire();
    let World { config, cap, .. } = &mut world;
    let _enclave = config.new_enclave_for_testing(cap, KEY);
    abort
}

#[test]
fun verify_signature_accepts_a_signature_under_a_retired_config() {
    let mut world = world();
    world.retire();
    let reading = Reading { location: vectors::location(), temperature: vectors::temperature() };
    let World { enclave, .. } = &world;
    assert!(enclave.verify_signature(vectors::intent(), vectors::timestamp_ms(), reading, &vectors::signature()));
    world.end();
}

#[test]
fun anyone_destroys_an_enclave_of_a_retired_config() {
    let mut world = world();
    world.retire();
    let World { ctx: _, cap, config, enclave, clock } = world;
    enclave.destroy_old(&config);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    clock.destroy_for_testing();
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun another_retired_config_destroys_no_enclave() {
    let World { mut ctx, cap, config: _config, enclave, clock: _clock } = world();
    let mut other_config = cap.new_config_for_testing(&mut ctx);
    other_config.retire(&cap);
    enclave.destroy_old(&other_config);
    abort
}

#[test]
fun the_admin_destroys_an_enclave_of_a_retired_config() {
    let mut world = world();
    world.retire();
    let World { ctx: _, cap, config, enclave, clock } = world;
    enclave.destroy_enclave(&config, &cap);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    clock.destroy_for_testing();
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_retired_config_cannot_be_retired_again() {
    let mut world = world();
    world.retire();
    world.retire();
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_retired_config_keeps_its_image() {
    let mut world = world();
    world.retire();
    let World { config, cap, .. } = &mut world;
    config.update_pcrs(cap, PCR, PCR, PCR);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_retired_config_keeps_its_name() {
    let mut world = world();
    world.retire();
    let World { config, cap, .. } = &mut world;
    config.update_name(cap, b"again".to_string());
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_retired_config_keeps_its_maximum_key_age() {
    let mut world = world();
    world.retire();
    world.limit(option::none());
    abort
}

// === update_name ===

#[test]
fun a_new_name_is_announced() {
    let mut world = world();
    let World { config, cap, .. } = &mut world;
    let name = b"renamed".to_string();
    config.update_name(cap, name);
    let fields = NameFields { config_id: object::id(config), name };
    let updated = event::events_by_type<NameUpdated<T>>();
    assert_eq!(bcs::to_bytes(&updated), bcs::to_bytes(&vector[fields]));
    world.end();
}
