/// Tests a production enclave's answer with `assert_signed` and `verify_signature`.
#[test_only]
module enclave::signature_tests;

use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig};
use enclave::vectors;
use std::string::String;
use sui::clock::{Self, Clock};

/// The application.
public struct T {}

/// Has the fields of the signed payload.
public struct Reading has copy, drop {
    location: String,
    temperature: u64,
}

/// The same values in another order.
public struct Swapped has copy, drop {
    temperature: u64,
    location: String,
}

const MAX_AGE_MS: u64 = 10_000;
const MAX_AHEAD_MS: u64 = 60_000;

/// A registered enclave, its config, and a clock.
public struct World {
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    enclave: Enclave<T>,
    clock: Clock,
}

fun world(now_ms: u64): World {
    world_of(vectors::public_key(), now_ms)
}

fun world_of(pk: vector<u8>, now_ms: u64): World {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let enclave = config.new_enclave_for_testing(&cap, pk);
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(now_ms);
    World { cap, config, enclave, clock }
}

fun end(world: World) {
    let World { cap, config, enclave, clock } = world;
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    enclave.destroy_enclave_for_testing();
    clock.destroy_for_testing();
}

/// Raises the config's version, so that the enclave becomes stale.
fun make_stale(world: &mut World) {
    let World { cap, config, .. } = world;
    let (pcr0, pcr1, pcr2) = (*config.pcr0(), *config.pcr1(), *config.pcr2());
    config.update_pcrs(cap, pcr0, pcr1, pcr2);
}

fun reading(): Reading {
    Reading { location: vectors::location(), temperature: vectors::temperature() }
}

fun submit(world: &World) {
    submit_at(world, vectors::timestamp_ms())
}

fun submit_at(world: &World, timestamp_ms: u64) {
    world
        .enclave
        .assert_signed(
            &world.config,
            &world.clock,
            MAX_AGE_MS,
            vectors::intent(),
            timestamp_ms,
            reading(),
            &vectors::signature(),
        )
}

// === assert_signed ===

#[test]
fun a_fresh_answer_is_accepted() {
    let world = world(vectors::timestamp_ms());
    submit(&world);
    world.end();
}

#[test]
fun a_statement_may_be_submitted_more_than_once() {
    let world = world(vectors::timestamp_ms());
    submit(&world);
    submit(&world);
    world.end();
}

#[test]
fun an_answer_of_the_maximum_age_is_accepted() {
    let world = world(vectors::timestamp_ms() + MAX_AGE_MS);
    submit(&world);
    world.end();
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun an_answer_older_than_the_maximum_age_is_refused() {
    submit(&world(vectors::timestamp_ms() + MAX_AGE_MS + 1));
    abort
}

#[test]
fun an_answer_a_minute_ahead_is_accepted() {
    let world = world(vectors::timestamp_ms() - MAX_AHEAD_MS);
    submit(&world);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInFuture)]
fun an_answer_more_than_a_minute_ahead_is_refused() {
    submit(&world(vectors::timestamp_ms() - MAX_AHEAD_MS - 1));
    abort
}

#[test, expected_failure(abort_code = enclave::EInFuture)]
fun the_largest_timestamp_is_in_the_future() {
    submit_at(&world(vectors::timestamp_ms()), 18_446_744_073_709_551_615);
    abort
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun the_smallest_timestamp_is_too_old() {
    submit_at(&world(vectors::timestamp_ms()), 0);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_clock_at_0_does_not_underflow() {
    submit_at(&world(0), 0);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun a_stale_enclave_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    world.make_stale();
    submit(&world);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun another_config_of_the_application_is_refused() {
    let World { cap, config: _config, enclave, clock } = world(vectors::timestamp_ms());
    let mut ctx = tx_context::new_from_hint(@0xA, 1, 0, 0, 0);
    let config = cap.new_config_for_testing(&mut ctx);
    submit(&World { cap, config, enclave, clock });
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_timestamp_is_refused() {
    submit_at(&world(vectors::timestamp_ms()), vectors::timestamp_ms() + 1);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_intent_is_refused() {
    let world = world(vectors::timestamp_ms());
    world
        .enclave
        .assert_signed(
            &world.config,
            &world.clock,
            MAX_AGE_MS,
            vectors::intent() + 1,
            vectors::timestamp_ms(),
            reading(),
            &vectors::signature(),
        );
    abort
}

// === verify_signature ===

fun verify<P: drop>(world: &World, payload: P, signature: vector<u8>): bool {
    world
        .enclave
        .verify_signature(vectors::intent(), vectors::timestamp_ms(), payload, &signature)
}

#[test]
fun a_signature_of_these_values_verifies() {
    let world = world(vectors::timestamp_ms());
    assert!(world.verify(reading(), vectors::signature()));
    world.end();
}

#[test]
fun a_signature_of_other_values_does_not_verify() {
    let world = world(vectors::timestamp_ms());
    let Reading { location, temperature } = reading();
    let warmer = Reading { location, temperature: temperature + 1 };
    assert!(!world.verify(warmer, vectors::signature()));
    let elsewhere = Reading { location: b"San francisco".to_string(), temperature };
    assert!(!world.verify(elsewhere, vectors::signature()));
    assert!(!world.verify(Swapped { temperature, location }, vectors::signature()));
    world.end();
}

#[test]
fun a_signature_of_another_key_does_not_verify() {
    let mut key = vectors::public_key();
    let last = key.pop_back();
    key.push_back(last ^ 1);
    let world = world_of(key, vectors::timestamp_ms());
    assert!(!world.verify(reading(), vectors::signature()));
    world.end();
}

#[test]
fun a_signature_with_one_bit_changed_does_not_verify() {
    let world = world(vectors::timestamp_ms());
    let mut bit = 0;
    while (bit < 64 * 8) {
        let mut signature = vectors::signature();
        let changed = signature[bit / 8] ^ (1 << ((bit % 8) as u8));
        *&mut signature[bit / 8] = changed;
        assert!(!world.verify(reading(), signature));
        bit = bit + 1;
    };
    world.end();
}

#[test]
fun a_signature_of_the_wrong_length_does_not_verify() {
    let world = world(vectors::timestamp_ms());
    let mut signature = vectors::signature();
    signature.push_back(0);
    assert!(!world.verify(reading(), signature));
    signature.pop_back();
    signature.pop_back();
    assert!(!world.verify(reading(), signature));
    assert!(!world.verify(reading(), x""));
    world.end();
}

#[test]
fun an_old_signature_of_a_stale_enclave_verifies() {
    let mut world = world(vectors::timestamp_ms() + 1_000_000_000_000);
    world.make_stale();
    assert!(world.verify(reading(), vectors::signature()));
    world.end();
}
