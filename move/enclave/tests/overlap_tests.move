/// Overlaps: contracts accept enclaves of two versions until a time.
#[test_only]
module enclave::overlap_tests;

use enclave::attested::{Self, Attested};
use enclave::clock_tests;
use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig, OverlapEnded, PcrsUpdated};
use enclave::pcrs::{Self, Pcrs};
use enclave::source::Source;
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

public struct UpdatedFields has drop {
    config_id: ID,
    pcrs: Pcrs,
    source: Option<Source>,
    config_version: u64,
    overlap_until_ms: Option<u64>,
}

public struct EndedFields has drop {
    config_id: ID,
    config_version: u64,
}

const HOUR_MS: u64 = 60 * 60 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;
const MAX_U64: u64 = 18_446_744_073_709_551_615;
/// Registers of the config before the overlap.
const OLD_PCR: vector<u8> =
    x"010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101";
const PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const THIRD_PCR: vector<u8> =
    x"b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";

public struct World {
    ctx: TxContext,
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    /// An enclave of version 0, which signed the vectors at the clock's time.
    enclave: Enclave<T>,
    clock: Clock,
}

fun world(): World {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let enclave = config.new_enclave_for_testing(&cap, vectors::public_key());
    World { ctx, cap, config, enclave, clock: clock_tests::at(vectors::timestamp_ms()) }
}

/// Returns a world in an overlap of one hour.
fun overlapping(): World {
    let mut world = world();
    world.begin(end_ms());
    world
}

fun end_ms(): u64 {
    vectors::timestamp_ms() + HOUR_MS
}

fun end(world: World) {
    let World { ctx: _, cap, config, enclave, clock } = world;
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    enclave.destroy_enclave_for_testing();
    clock.destroy_for_testing();
}

fun begin(world: &mut World, until_ms: u64) {
    let World { config, cap, clock, .. } = world;
    config.begin_overlap(cap, PCR, PCR, PCR, option::none(), until_ms, clock);
}

fun end_overlap(world: &mut World) {
    let World { config, cap, .. } = world;
    config.end_overlap(cap);
}

fun update(world: &mut World) {
    let World { config, cap, .. } = world;
    config.update_pcrs(cap, THIRD_PCR, THIRD_PCR, THIRD_PCR);
}

fun submit(world: &World) {
    world.submit_of(&world.enclave)
}

/// Submits the answer of the vectors.
fun submit_of(world: &World, enclave: &Enclave<T>) {
    enclave.assert_signed(
        &world.config,
        &world.clock,
        MAX_U64,
        vectors::intent(),
        vectors::timestamp_ms(),
        Reading { location: vectors::location(), temperature: vectors::temperature() },
        &vectors::signature(),
    )
}

fun attested(pcr: vector<u8>, pk: vector<u8>): Attested {
    attested::new(pcrs::new(pcr, pcr, pcr), pk, vectors::timestamp_ms())
}

fun is_stale(world: &World): bool {
    world.enclave.is_stale(&world.config, &world.clock)
}

// === begin_overlap ===

#[test]
fun the_config_has_the_new_registers_and_keeps_the_old_ones() {
    let mut world = world();
    assert!(!world.config.is_overlapping(&world.clock));
    assert_eq!(world.config.overlap_until_ms(), option::none());
    assert_eq!(world.config.overlap_pcrs(), option::none());
    world.begin(end_ms());
    let World { config, clock, .. } = &world;
    assert!(config.is_overlapping(clock));
    assert_eq!(config.current_config_version(), 1);
    assert_eq!(*config.pcr0(), PCR);
    assert_eq!(config.overlap_until_ms(), option::some(end_ms()));
    assert_eq!(config.overlap_pcrs(), option::some(pcrs::new(OLD_PCR, OLD_PCR, OLD_PCR)));
    let fields = UpdatedFields {
        config_id: object::id(config),
        pcrs: pcrs::new(PCR, PCR, PCR),
        source: option::none(),
        config_version: 1,
        overlap_until_ms: option::some(end_ms()),
    };
    assert_eq!(bcs::to_bytes(&event::events_by_type<PcrsUpdated<T>>()), bcs::to_bytes(&vector[fields]));
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_begin_an_overlap() {
    let mut world = world();
    let other_cap = enclave::new_cap_for_testing<T>(&mut world.ctx);
    let World { config, clock, .. } = &mut world;
    config.begin_overlap(&other_cap, PCR, PCR, PCR, option::none(), end_ms(), clock);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun no_overlap_begins_under_a_retired_config() {
    let mut world = world();
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    world.begin(end_ms());
    abort
}

#[test]
fun an_overlap_of_a_millisecond_or_of_a_day_is_allowed() {
    let mut world = world();
    world.begin(vectors::timestamp_ms() + 1);
    world.end_overlap();
    world.begin(vectors::timestamp_ms() + DAY_MS);
    assert_eq!(world.config.current_config_version(), 2);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidOverlap)]
fun an_overlap_that_ends_now_is_refused() {
    let mut world = world();
    world.begin(vectors::timestamp_ms());
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidOverlap)]
fun an_overlap_that_ends_in_the_past_is_refused() {
    let mut world = world();
    world.begin(0);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidOverlap)]
fun an_overlap_longer_than_a_day_is_refused() {
    let mut world = world();
    world.begin(vectors::timestamp_ms() + DAY_MS + 1);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidOverlap)]
fun an_overlap_without_end_is_refused() {
    let mut world = world();
    world.begin(MAX_U64);
    abort
}

#[test, expected_failure(abort_code = enclave::EOverlapping)]
fun an_overlap_during_another_is_refused() {
    let mut world = overlapping();
    world.clock.set_for_testing(end_ms() - 1);
    world.begin(end_ms() + HOUR_MS);
    abort
}

#[test]
fun an_overlap_may_begin_when_another_ends_and_the_first_version_stays_stale() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    let second = config.enclave_of(cap, attested(PCR, KEY));
    world.clock.set_for_testing(end_ms());
    assert!(world.is_stale());
    world.begin(end_ms() + HOUR_MS);
    assert!(world.is_stale());
    assert!(!second.is_stale(&world.config, &world.clock));
    second.destroy_enclave_for_testing();
    world.end();
}

// === During and after an overlap ===

#[test]
fun an_answer_of_the_old_enclave_is_accepted_until_the_end() {
    let mut world = world();
    world.submit();
    world.begin(end_ms());
    world.submit();
    assert!(!world.is_stale());
    world.clock.set_for_testing(end_ms() - 1);
    world.submit();
    assert!(!world.is_stale());
    assert!(world.config.is_overlapping(&world.clock));
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun an_answer_of_the_old_enclave_is_refused_at_the_end() {
    let mut world = overlapping();
    world.clock.set_for_testing(end_ms());
    assert!(world.is_stale());
    assert!(!world.config.is_overlapping(&world.clock));
    world.submit();
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun an_answer_of_the_old_enclave_is_refused_after_the_end() {
    let mut world = overlapping();
    world.clock.set_for_testing(end_ms() + 1);
    assert!(world.is_stale());
    world.submit();
    abort
}

#[test]
fun an_answer_of_the_new_image_is_accepted_during_and_after_an_overlap() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    let new = config.enclave_of(cap, attested(PCR, vectors::public_key()));
    world.submit_of(&new);
    world.clock.set_for_testing(end_ms() + 1);
    world.submit_of(&new);
    new.destroy_enclave_for_testing();
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun no_enclave_of_the_old_image_is_registered_in_an_overlap() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    let _enclave = config.enclave_of(cap, attested(OLD_PCR, KEY));
    abort
}

#[test, expected_failure(abort_code = enclave::EKeyTooOld)]
fun the_maximum_key_age_applies_in_an_overlap() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    config.update_max_key_age(cap, option::some(1));
    world.submit();
    abort
}

#[test]
fun the_admin_destroys_an_old_enclave_in_an_overlap() {
    let World { ctx: _, cap, config, enclave, clock } = overlapping();
    enclave.destroy_enclave(&config, &cap);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    clock.destroy_for_testing();
}

#[test, expected_failure(abort_code = enclave::ENotStale)]
fun nobody_else_destroys_an_old_enclave_in_an_overlap() {
    let World { ctx: _, cap: _cap, config, enclave, mut clock } = overlapping();
    clock.set_for_testing(end_ms() - 1);
    enclave.destroy_old_enclave(&config, &clock);
    abort
}

#[test]
fun anyone_destroys_an_old_enclave_at_the_end() {
    let World { ctx: _, cap, config, enclave, mut clock } = overlapping();
    clock.set_for_testing(end_ms());
    enclave.destroy_old_enclave(&config, &clock);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    clock.destroy_for_testing();
}

// === Early ends ===

#[test]
fun end_overlap_makes_the_old_enclave_stale_and_emits_an_event() {
    let mut world = overlapping();
    world.end_overlap();
    assert!(world.is_stale());
    assert!(!world.config.is_overlapping(&world.clock));
    assert_eq!(world.config.overlap_until_ms(), option::none());
    assert_eq!(world.config.current_config_version(), 1);
    let fields = EndedFields { config_id: object::id(&world.config), config_version: 1 };
    assert_eq!(bcs::to_bytes(&event::events_by_type<OverlapEnded<T>>()), bcs::to_bytes(&vector[fields]));
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun after_end_overlap_the_old_answer_is_refused() {
    let mut world = overlapping();
    world.end_overlap();
    world.submit();
    abort
}

#[test]
fun end_overlap_removes_an_overlap_that_is_over() {
    let mut world = overlapping();
    world.clock.set_for_testing(end_ms() + 1);
    world.end_overlap();
    assert_eq!(world.config.overlap_until_ms(), option::none());
    world.end();
}

#[test, expected_failure(abort_code = enclave::ENoOverlap)]
fun end_overlap_aborts_without_an_overlap() {
    let mut world = world();
    world.end_overlap();
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_end_an_overlap() {
    let mut world = overlapping();
    let other_cap = enclave::new_cap_for_testing<T>(&mut world.ctx);
    let World { config, .. } = &mut world;
    config.end_overlap(&other_cap);
    abort
}

#[test]
fun update_pcrs_makes_both_versions_stale() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    let second = config.enclave_of(cap, attested(PCR, KEY));
    world.update();
    assert!(world.is_stale());
    assert!(second.is_stale(&world.config, &world.clock));
    assert_eq!(world.config.overlap_until_ms(), option::none());
    let updated = bcs::to_bytes(&event::events_by_type<PcrsUpdated<T>>());
    assert_eq!(updated[updated.length() - 1], 0);
    second.destroy_enclave_for_testing();
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun after_update_pcrs_the_old_answer_is_refused() {
    let mut world = overlapping();
    world.update();
    world.submit();
    abort
}

#[test]
fun a_rotation_ends_an_overlap() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    let rotation = config.begin_rotation(cap, THIRD_PCR, THIRD_PCR, THIRD_PCR, option::none());
    let third = rotation.successor_of(config, cap, attested(THIRD_PCR, KEY));
    assert!(world.is_stale());
    assert!(!third.is_stale(&world.config, &world.clock));
    assert_eq!(world.config.overlap_until_ms(), option::none());
    third.destroy_enclave_for_testing();
    world.end();
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun retirement_ends_an_overlap() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    world.submit();
    abort
}

#[test]
fun after_retirement_anyone_destroys_the_old_enclave() {
    let World { ctx: _, cap, mut config, enclave, clock } = overlapping();
    config.retire(&cap);
    enclave.destroy_old_enclave(&config, &clock);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    clock.destroy_for_testing();
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun end_overlap_aborts_under_a_retired_config() {
    let mut world = overlapping();
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    world.end_overlap();
    abort
}
