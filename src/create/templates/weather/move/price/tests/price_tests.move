/// The module `signed_answer` is an answer that the application signs: `sui-enclave test` writes it.
#[test_only]
module price::price_tests;

use enclave::enclave;
use price::price::{Self, PRICE, Reading};
use price::signed_answer as answer;
use std::unit_test::assert_eq;
use sui::clock;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Returns the reading that a contract mints at `now_ms`, if the enclave that signed it is registered.
fun reading_at(tenths_plus_100000: u64, now_ms: u64): Reading {
    let ctx = &mut tx_context::dummy();
    let cap = enclave::new_cap_for_testing<PRICE>(ctx);
    let mut config = cap.new_config_for_testing(ctx);
    let registered = config.new_enclave_for_testing(&cap, answer::public_key());
    let mut clock = clock::create_for_testing(ctx);
    clock.set_for_testing(now_ms);
    let reading = price::new(
        answer::place(),
        tenths_plus_100000,
        answer::timestamp_ms(),
        &answer::signature(),
        &registered,
        &config,
        &clock,
        ctx,
    );
    clock.destroy_for_testing();
    registered.destroy_enclave_for_testing();
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    reading
}

#[test]
fun a_signed_reading_is_minted_within_90_minutes() {
    let tenths = answer::tenths_plus_100000();
    let reading = reading_at(tenths, answer::timestamp_ms() + HOUR_MS + HOUR_MS / 2);
    assert_eq!(reading.tenths_plus_100000(), tenths);
    assert_eq!(*reading.place(), answer::place());
    transfer::public_transfer(reading, @0x1);
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_signed_reading_is_refused_after_90_minutes() {
    let now_ms = answer::timestamp_ms() + HOUR_MS + HOUR_MS / 2 + 1;
    transfer::public_transfer(reading_at(answer::tenths_plus_100000(), now_ms), @0x1);
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_temperature_is_refused() {
    let tenths = answer::tenths_plus_100000() + 1;
    transfer::public_transfer(reading_at(tenths, answer::timestamp_ms()), @0x1);
}
