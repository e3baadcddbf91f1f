/// Tests claims with an award that two enclaves signed with one nonce.
#[test_only]
module enclave::once_tests;

use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig};
use enclave::once::{Self, Claims};
use enclave::vectors;
use std::unit_test::assert_eq;
use sui::clock::{Self, Clock};

/// The application.
public struct T {}

/// The signed fields after the nonce.
public struct Award has copy, drop {
    recipient: address,
    points: u64,
}

/// All signed fields, as in the server's type.
public struct SignedAward has copy, drop {
    nonce: vector<u8>,
    recipient: address,
    points: u64,
}

const MAX_AGE_MS: u64 = 10_000;
const MAX_U64: u64 = 18_446_744_073_709_551_615;

public struct World {
    cap: EnclaveCap<T>,
    config: EnclaveConfig<T>,
    enclave: Enclave<T>,
    other_enclave: Enclave<T>,
    claims: Claims<T>,
    clock: Clock,
}

/// Returns a world whose clock is `age_ms` after the award was signed.
fun world(age_ms: u64): World {
    world_of(MAX_AGE_MS, age_ms)
}

fun world_of(max_age_ms: u64, age_ms: u64): World {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let enclave = config.new_enclave_for_testing(&cap, vectors::once_key());
    let other_enclave = config.new_enclave_for_testing(&cap, vectors::other_once_key());
    let claims = once::new(max_age_ms, &mut ctx);
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(vectors::once_timestamp_ms() + age_ms);
    World { cap, config, enclave, other_enclave, claims, clock }
}

/// Ends the test of a world that has no claims left.
fun end(world: World) {
    let World { cap, config, enclave, other_enclave, claims, clock } = world;
    claims.destroy_empty();
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    enclave.destroy_enclave_for_testing();
    other_enclave.destroy_enclave_for_testing();
    clock.destroy_for_testing();
}

fun award(): Award {
    Award { recipient: vectors::recipient(), points: vectors::points() }
}

fun claim(world: &mut World) {
    world.claim_with(vectors::nonce(), award())
}

fun claim_with(world: &mut World, nonce: vector<u8>, award: Award) {
    let World { claims, enclave, config, clock, .. } = world;
    claims.claim(
        enclave,
        config,
        clock,
        vectors::once_intent(),
        vectors::once_timestamp_ms(),
        nonce,
        award,
        &vectors::once_signature(),
    )
}

/// Claims the award that another enclave of the config signed with the same nonce.
fun claim_of_other_enclave(world: &mut World) {
    let World { claims, other_enclave, config, clock, .. } = world;
    claims.claim(
        other_enclave,
        config,
        clock,
        vectors::once_intent(),
        vectors::once_timestamp_ms(),
        vectors::nonce(),
        award(),
        &vectors::other_once_signature(),
    )
}

fun is_claimed(world: &World): bool {
    world.claims.is_claimed(vectors::once_intent(), vectors::nonce())
}

fun remove(world: &mut World) {
    let World { claims, clock, .. } = world;
    claims.remove_expired(vectors::once_intent(), vectors::nonce(), clock)
}

fun wait(world: &mut World, ms: u64) {
    let now = world.clock.timestamp_ms();
    world.clock.set_for_testing(now + ms)
}

// === claim ===

#[test]
fun the_nonce_is_the_first_field_of_the_payload() {
    let signed = SignedAward {
        nonce: vectors::nonce(),
        recipient: vectors::recipient(),
        points: vectors::points(),
    };
    assert_eq!(
        enclave::signed_bytes_for_testing(vectors::once_intent(), vectors::once_timestamp_ms(), signed),
        vectors::once_bytes(),
    );
}

#[test]
fun an_answer_is_claimed_and_removed_after_it_expires() {
    let mut world = world(MAX_AGE_MS);
    assert_eq!(world.claims.max_age_ms(), MAX_AGE_MS);
    assert!(!world.is_claimed());
    world.claim();
    assert!(world.is_claimed());
    assert_eq!(world.claims.length(), 1);
    world.wait(1);
    world.remove();
    assert!(!world.is_claimed());
    world.end();
}

#[test]
fun an_answer_of_either_enclave_may_be_claimed() {
    let mut world = world(0);
    world.claim_of_other_enclave();
    world.wait(MAX_AGE_MS + 1);
    world.remove();
    world.end();
}

#[test, expected_failure(abort_code = once::EAlreadyClaimed)]
fun a_second_claim_is_refused() {
    let mut world = world(0);
    world.claim();
    world.claim();
    abort
}

#[test, expected_failure(abort_code = once::EAlreadyClaimed)]
fun a_second_claim_is_refused_until_the_answer_expires() {
    let mut world = world(0);
    world.claim();
    world.wait(MAX_AGE_MS);
    world.claim();
    abort
}

#[test, expected_failure(abort_code = once::EAlreadyClaimed)]
fun two_enclaves_and_one_nonce_are_one_claim() {
    let mut world = world(0);
    world.claim();
    world.claim_of_other_enclave();
    abort
}

#[test, expected_failure(abort_code = once::EAlreadyClaimed)]
fun one_answer_under_two_configs_is_one_claim() {
    let mut world = world(0);
    world.claim();
    let mut ctx = tx_context::new_from_hint(@0xA, 1, 0, 0, 0);
    let mut config = world.cap.new_config_for_testing(&mut ctx);
    let World { claims, cap, clock, .. } = &mut world;
    let enclave = config.new_enclave_for_testing(cap, vectors::once_key());
    claims.claim(
        &enclave,
        &config,
        clock,
        vectors::once_intent(),
        vectors::once_timestamp_ms(),
        vectors::nonce(),
        award(),
        &vectors::once_signature(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun an_answer_whose_claim_may_be_removed_is_too_old_to_claim() {
    world(MAX_AGE_MS + 1).claim();
    abort
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_removed_answer_cannot_be_claimed_again() {
    let mut world = world(0);
    world.claim();
    world.wait(MAX_AGE_MS + 1);
    world.remove();
    world.claim();
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_nonce_that_was_not_signed_is_refused() {
    let mut nonce = vectors::nonce();
    nonce.push_back(0);
    world(0).claim_with(nonce, award());
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_payload_that_was_not_signed_is_refused() {
    world(0).claim_with(vectors::nonce(), Award { recipient: @0xBAD, points: vectors::points() });
    abort
}

#[test, expected_failure(abort_code = once::ENonceLength)]
fun a_nonce_of_15_bytes_is_refused() {
    world(0).claim_with(x"00112233445566778899aabbccddee", award());
    abort
}

#[test, expected_failure(abort_code = once::ENonceLength)]
fun a_nonce_of_65_bytes_is_refused() {
    let mut nonce = vector[];
    while (nonce.length() < 65) nonce.push_back(1);
    world(0).claim_with(nonce, award());
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_nonce_of_64_bytes_has_an_accepted_length() {
    let mut nonce = vector[];
    while (nonce.length() < 64) nonce.push_back(1);
    world(0).claim_with(nonce, award());
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_claim_under_a_retired_config_is_refused() {
    let mut world = world(0);
    let World { config, cap, .. } = &mut world;
    config.retire(cap);
    world.claim();
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun a_claim_under_another_config_is_refused() {
    let mut world = world(0);
    let mut ctx = tx_context::new_from_hint(@0xA, 1, 0, 0, 0);
    let config = world.cap.new_config_for_testing(&mut ctx);
    let World { claims, enclave, clock, .. } = &mut world;
    claims.claim(
        enclave,
        &config,
        clock,
        vectors::once_intent(),
        vectors::once_timestamp_ms(),
        vectors::nonce(),
        award(),
        &vectors::once_signature(),
    );
    abort
}

// === remove_expired ===

#[test, expected_failure(abort_code = once::ENotExpired)]
fun a_claim_is_kept_as_long_as_its_answer_is_fresh() {
    let mut world = world(0);
    world.claim();
    world.wait(MAX_AGE_MS);
    world.remove();
    abort
}

#[test, expected_failure(abort_code = once::ENotExpired)]
fun a_claim_of_an_answer_from_the_future_is_kept() {
    let mut world = world(0);
    // The signed time is a minute ahead of the chain's.
    let mut ctx = tx_context::new_from_hint(@0xA, 1, 0, 0, 0);
    let mut early_clock = clock::create_for_testing(&mut ctx);
    early_clock.set_for_testing(vectors::once_timestamp_ms() - 60_000);
    let World { claims, enclave, config, .. } = &mut world;
    claims.claim(
        enclave,
        config,
        &early_clock,
        vectors::once_intent(),
        vectors::once_timestamp_ms(),
        vectors::nonce(),
        award(),
        &vectors::once_signature(),
    );
    claims.remove_expired(vectors::once_intent(), vectors::nonce(), &early_clock);
    abort
}

#[test, expected_failure(abort_code = once::ENotExpired)]
fun the_largest_maximum_age_keeps_a_claim_and_does_not_overflow() {
    let mut world = world_of(MAX_U64, 0);
    world.claim();
    world.clock.set_for_testing(MAX_U64);
    world.remove();
    abort
}

#[test]
fun a_maximum_age_of_0_accepts_an_answer_signed_just_now() {
    let mut world = world_of(0, 0);
    world.claim();
    world.wait(1);
    world.remove();
    world.end();
}

#[test, expected_failure(abort_code = once::ENotClaimed)]
fun an_answer_that_was_not_claimed_cannot_be_removed() {
    world(MAX_AGE_MS + 1).remove();
    abort
}

#[test, expected_failure(abort_code = once::ENotClaimed)]
fun remove_expired_does_not_remove_a_claim_of_another_intent() {
    let mut world = world(0);
    world.claim();
    world.wait(MAX_AGE_MS + 1);
    let World { claims, clock, .. } = &mut world;
    claims.remove_expired(vectors::once_intent() + 1, vectors::nonce(), clock);
    abort
}

#[test, expected_failure(abort_code = sui::table::ETableNotEmpty)]
fun claims_that_are_kept_cannot_be_destroyed() {
    let mut world = world(0);
    world.claim();
    world.end();
}
