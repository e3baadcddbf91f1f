/// The module `signed_answer` is an answer that the application signs: `sui-enclave test` writes it.
#[test_only]
module price::price_tests;

use enclave::enclave;
use price::price::{Self, PRICE};
use price::signed::Quote;
use price::signed_answer as answer;
use std::unit_test::assert_eq;
use sui::clock;

const MINUTE_MS: u64 = 60 * 1000;

/// Returns what a contract gets for these values at this time, if the enclave that signed them is registered.
fun value_at(cents: u64, now_ms: u64): Quote {
    let ctx = &mut tx_context::dummy();
    let cap = enclave::new_cap_for_testing<PRICE>(ctx);
    let mut config = cap.new_config_for_testing(ctx);
    let registered = config.new_enclave_for_testing(&cap, answer::public_key());
    let mut clock = clock::create_for_testing(ctx);
    clock.set_for_testing(now_ms);
    let value = price::new(
        answer::pair(),
        cents,
        answer::timestamp_ms(),
        &answer::signature(),
        &registered,
        &config,
        &clock,
    );
    clock.destroy_for_testing();
    registered.destroy_enclave_for_testing();
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    value
}

#[test]
fun a_signed_value_is_accepted_for_a_minute() {
    let cents = answer::cents();
    assert_eq!(value_at(cents, answer::timestamp_ms() + MINUTE_MS).cents(), cents);
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_signed_value_is_refused_after_a_minute() {
    value_at(answer::cents(), answer::timestamp_ms() + MINUTE_MS + 1);
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_value_is_refused() {
    value_at(answer::cents() + 1, answer::timestamp_ms());
}
