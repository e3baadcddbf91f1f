/// The module `signed_answer` is an answer that the application signs: `sui-enclave test` writes it.
#[test_only]
module price::price_tests;

use enclave::enclave;
use feed::feed::{Self, Feed};
use price::price::{Self, PRICE};
use price::signed_answer as answer;
use std::string::String;
use std::unit_test::assert_eq;
use sui::clock;
use sui::test_scenario;

const MAX_AGE_MS: u64 = 3 * 60 * 1000;

/// Opens a feed, writes this quote at `now_ms`, and returns the value and the time that a contract then reads.
fun value_at(symbol: String, decimals: u8, value: u64, now_ms: u64): (u64, u64) {
    let mut scenario = test_scenario::begin(@0xA);
    let cap = enclave::new_cap_for_testing<PRICE>(scenario.ctx());
    let mut config = cap.new_config_for_testing(scenario.ctx());
    let registered = config.new_enclave_for_testing(&cap, answer::public_key());
    let mut clock = clock::create_for_testing(scenario.ctx());
    clock.set_for_testing(now_ms);
    price::open(&cap, &config, scenario.ctx());
    scenario.next_tx(@0xB);
    let mut feed = scenario.take_shared<Feed<PRICE>>();
    price::update(
        symbol,
        decimals,
        value,
        answer::timestamp_ms(),
        &answer::signature(),
        &mut feed,
        &registered,
        &config,
        &clock,
    );
    let (read, time_ms) = feed.read_trusted(&config, &clock);
    test_scenario::return_shared(feed);
    clock.destroy_for_testing();
    registered.destroy_enclave_for_testing();
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    scenario.end();
    (read, time_ms)
}

#[test]
fun anyone_can_write_a_signed_value_and_read_it_for_three_minutes() {
    let value = answer::value();
    let now_ms = answer::timestamp_ms() + MAX_AGE_MS;
    let (read, time_ms) = value_at(answer::symbol(), answer::decimals(), value, now_ms);
    assert_eq!(read, value);
    assert_eq!(time_ms, answer::timestamp_ms());
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_signed_value_is_refused_after_three_minutes() {
    let now_ms = answer::timestamp_ms() + MAX_AGE_MS + 1;
    value_at(answer::symbol(), answer::decimals(), answer::value(), now_ms);
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_value_is_refused() {
    value_at(answer::symbol(), answer::decimals(), answer::value() + 1, answer::timestamp_ms());
}

#[test, expected_failure(abort_code = feed::EOutOfBounds)]
fun a_value_outside_of_the_bounds_is_refused() {
    value_at(answer::symbol(), answer::decimals(), 1_000_000_001, answer::timestamp_ms());
}

#[test, expected_failure(abort_code = price::EOtherQuote)]
fun another_symbol_is_refused() {
    value_at(b"SUI/EUR".to_string(), answer::decimals(), answer::value(), answer::timestamp_ms());
}

#[test, expected_failure(abort_code = price::EOtherQuote)]
fun another_number_of_decimals_is_refused() {
    value_at(answer::symbol(), answer::decimals() + 1, answer::value(), answer::timestamp_ms());
}
