/// The module `signed_answer` is an answer that the application signs: `sui-enclave test` writes it.
#[test_only]
module price::price_tests;

use enclave::enclave;
use price::price::{Self, PRICE, Record};
use price::signed_answer as answer;
use std::string::String;
use std::unit_test::assert_eq;
use sui::clock;

const MINUTE_MS: u64 = 60 * 1000;

/// Returns the record that a contract creates from the answer at `now_ms`, if the enclave that signed it is registered.
fun record_at(finish_reason: String, now_ms: u64): Record {
    let ctx = &mut tx_context::dummy();
    let cap = enclave::new_cap_for_testing<PRICE>(ctx);
    let mut config = cap.new_config_for_testing(ctx);
    let registered = config.new_enclave_for_testing(&cap, answer::public_key());
    let mut clock = clock::create_for_testing(ctx);
    clock.set_for_testing(now_ms);
    let record = price::new(
        answer::model(),
        answer::prompt_hash(),
        answer::answer_hash(),
        finish_reason,
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
    record
}

#[test]
fun a_signed_answer_is_accepted_for_five_minutes() {
    let record = record_at(answer::finish_reason(), answer::timestamp_ms() + 5 * MINUTE_MS);
    assert_eq!(*record.model(), answer::model());
    assert_eq!(record.answer_hash(), answer::answer_hash());
    transfer::public_transfer(record, @0x1);
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_signed_answer_is_refused_after_five_minutes() {
    transfer::public_transfer(record_at(answer::finish_reason(), answer::timestamp_ms() + 5 * MINUTE_MS + 1), @0x1);
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_finish_reason_is_refused() {
    transfer::public_transfer(record_at(b"length".to_string(), answer::timestamp_ms()), @0x1);
}
