#[test_only]
module feed::feed_tests;

use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig};
use feed::feed::{Self, Feed, Rules};
use feed::vectors;
use std::string::String;
use std::unit_test::assert_eq;
use sui::clock::{Self, Clock};
use sui::test_scenario::{Self, Scenario};

public struct APP {}

const MAX_U64: u64 = 18_446_744_073_709_551_615;
const PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

/// Three configs, each with one enclave, and a feed.
public struct World {
    scenario: Scenario,
    cap: EnclaveCap<APP>,
    configs: vector<EnclaveConfig<APP>>,
    enclaves: vector<Enclave<APP>>,
    clock: Clock,
    feed: Feed<APP>,
}

fun symbol(): String {
    b"SUI/USD".to_string()
}

/// Returns rules for values from 0.001 to 10, with a maximum age of a minute. The feed accepts a value after 5 s if it
/// moved by half a percent, and any value after 30 s.
fun rules(threshold: u64, config_ids: vector<ID>): Rules {
    feed::new_rules(3, symbol(), 6, 1_000, 10_000_000, 60_000, 5_000, 50, 30_000, threshold, config_ids)
}

fun ids(configs: &vector<EnclaveConfig<APP>>): vector<ID> {
    vector[object::id(&configs[0]), object::id(&configs[1]), object::id(&configs[2])]
}

/// Returns a world whose clock shows the time of the first quote.
fun world(threshold: u64): World {
    let mut scenario = test_scenario::begin(@0xA);
    let cap = enclave::new_cap_for_testing<APP>(scenario.ctx());
    let mut configs = vector[];
    let mut enclaves = vector[];
    let mut signer = 0;
    while (signer < 3) {
        let mut config = cap.new_config_for_testing(scenario.ctx());
        enclaves.push_back(config.new_enclave_for_testing(&cap, vectors::public_key(signer)));
        configs.push_back(config);
        signer = signer + 1;
    };
    let mut clock = clock::create_for_testing(scenario.ctx());
    clock.set_for_testing(vectors::start_ms());
    feed::create(&cap, rules(threshold, ids(&configs)), scenario.ctx());
    scenario.next_tx(@0xA);
    let feed = scenario.take_shared<Feed<APP>>();
    World { scenario, cap, configs, enclaves, clock, feed }
}

/// Replaces the world's feed by a feed with these rules.
fun with_rules(world: World, rules: Rules): World {
    let World { mut scenario, cap, configs, enclaves, clock, feed } = world;
    test_scenario::return_shared(feed);
    feed::create(&cap, rules, scenario.ctx());
    scenario.next_tx(@0xA);
    let feed = scenario.take_shared<Feed<APP>>();
    World { scenario, cap, configs, enclaves, clock, feed }
}

fun ids_of(world: &World): vector<ID> {
    ids(&world.configs)
}

fun retire(world: &mut World, signer: u64) {
    let World { configs, cap, .. } = world;
    configs[signer].retire(cap);
}

/// Replaces the trusted image of the first config.
fun replace_image(world: &mut World) {
    let World { configs, cap, .. } = world;
    configs[0].update_pcrs(cap, PCR, PCR, PCR);
}

/// Moves the clock to that many milliseconds after the first quote.
fun at(world: &mut World, offset_ms: u64) {
    world.clock.set_for_testing(vectors::start_ms() + offset_ms);
}

fun update(world: &mut World, offset_ms: u64, value: u64) {
    let World { configs, enclaves, clock, feed, .. } = world;
    let signature = vectors::signature(0, offset_ms, value);
    feed.update(&enclaves[0], &configs[0], clock, vectors::start_ms() + offset_ms, value, &signature)
}

/// Adds a signer's value to a round, which may be of another feed.
fun add(world: &World, round: &mut feed::Round<APP>, signer: u64, offset_ms: u64, value: u64) {
    round.add(
        &world.feed,
        &world.enclaves[signer],
        &world.configs[signer],
        &world.clock,
        vectors::start_ms() + offset_ms,
        value,
        &vectors::signature(signer, offset_ms, value),
    )
}

/// Writes the values of all three signers.
fun update_all(world: &mut World) {
    let mut round = world.feed.begin();
    world.add(&mut round, 2, 1_000, 1_300_000);
    world.add(&mut round, 0, 0, 1_000_000);
    world.add(&mut round, 1, 0, 1_100_000);
    round.finish(&mut world.feed);
}

fun read(world: &World): (u64, u64) {
    world.feed.read(&world.clock)
}

fun assert_value(world: &World, value: u64, offset_ms: u64) {
    let (read_value, timestamp_ms) = world.read();
    assert_eq!(read_value, value);
    assert_eq!(timestamp_ms, vectors::start_ms() + offset_ms);
}

fun end(world: World) {
    let World { scenario, cap, mut configs, mut enclaves, clock, feed } = world;
    while (!configs.is_empty()) configs.pop_back().destroy_config_for_testing();
    while (!enclaves.is_empty()) enclaves.pop_back().destroy_enclave_for_testing();
    configs.destroy_empty();
    enclaves.destroy_empty();
    cap.destroy_cap_for_testing();
    clock.destroy_for_testing();
    test_scenario::return_shared(feed);
    scenario.end();
}

// === Creation ===

#[test]
fun a_feed_has_the_rules_of_its_creation_and_no_value() {
    let world = world(2);
    let rules = world.feed.rules();
    assert_eq!(rules.intent(), 3);
    assert_eq!(*rules.symbol(), symbol());
    assert_eq!(rules.decimals(), 6);
    assert_eq!(rules.min_value(), 1_000);
    assert_eq!(rules.max_value(), 10_000_000);
    assert_eq!(rules.max_age_ms(), 60_000);
    assert_eq!(rules.min_interval_ms(), 5_000);
    assert_eq!(rules.min_move_bps(), 50);
    assert_eq!(rules.heartbeat_ms(), 30_000);
    assert_eq!(rules.threshold(), 2);
    assert_eq!(*rules.config_ids(), world.ids_of());
    assert!(!world.feed.has_value());
    assert!(world.feed.signed_values().is_empty());
    world.end();
}

fun one_id(): vector<ID> {
    vector[object::id_from_address(@0x1)]
}

fun symbol_rules(symbol: vector<u8>): Rules {
    feed::new_rules(3, symbol.to_string(), 18, 1, 1, 1, 0, 10_000, 0, 1, one_id())
}

#[test]
fun the_strictest_rules_and_the_longest_symbol_are_valid() {
    symbol_rules(b"a symbol of 32 characters -- ~~~");
    feed::new_rules(3, symbol(), 0, 1, MAX_U64, MAX_U64, MAX_U64 - 1, 0, MAX_U64 - 1, 1, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidSymbol)]
fun an_empty_symbol_is_refused() {
    symbol_rules(b"");
}

#[test, expected_failure(abort_code = feed::EInvalidSymbol)]
fun a_symbol_of_33_characters_is_refused() {
    symbol_rules(b"a symbol of 33 characters --- ~~~");
}

#[test, expected_failure(abort_code = feed::EInvalidSymbol)]
fun a_symbol_with_an_invisible_character_is_refused() {
    symbol_rules(x"535549e2808b2f555344");
}

#[test, expected_failure(abort_code = feed::EInvalidDecimals)]
fun more_than_18_decimals_are_refused() {
    feed::new_rules(3, symbol(), 19, 1, 2, 3, 1, 0, 2, 1, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidBounds)]
fun a_lower_bound_of_0_is_refused() {
    feed::new_rules(3, symbol(), 6, 0, 2, 3, 1, 0, 2, 1, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidBounds)]
fun bounds_in_the_wrong_order_are_refused() {
    feed::new_rules(3, symbol(), 6, 3, 2, 3, 1, 0, 2, 1, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidTimes)]
fun an_interval_longer_than_the_heartbeat_is_refused() {
    feed::new_rules(3, symbol(), 6, 1, 2, 4, 3, 0, 2, 1, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidTimes)]
fun a_heartbeat_of_the_maximum_age_is_refused() {
    feed::new_rules(3, symbol(), 6, 1, 2, 3, 1, 0, 3, 1, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidMove)]
fun a_least_move_of_more_than_the_value_is_refused() {
    feed::new_rules(3, symbol(), 6, 1, 2, 3, 1, 10_001, 2, 1, one_id());
}

fun config_rules(threshold: u64, config_ids: vector<ID>): Rules {
    feed::new_rules(3, symbol(), 6, 1, 2, 3, 1, 0, 2, threshold, config_ids)
}

fun many_ids(length: u64): vector<ID> {
    let mut ctx = tx_context::dummy();
    let mut config_ids = vector[];
    while (config_ids.length() < length) {
        config_ids.push_back(object::id_from_address(ctx.fresh_object_address()));
    };
    config_ids
}

#[test]
fun a_feed_may_need_values_of_16_configs() {
    config_rules(16, many_ids(16));
}

#[test, expected_failure(abort_code = feed::EInvalidConfigs)]
fun a_17th_config_is_refused() {
    config_rules(1, many_ids(17));
}

#[test, expected_failure(abort_code = feed::EInvalidConfigs)]
fun an_empty_list_of_configs_is_refused() {
    config_rules(1, vector[]);
}

#[test, expected_failure(abort_code = feed::EInvalidConfigs)]
fun the_same_config_twice_is_refused() {
    let mut config_ids = many_ids(2);
    let first = config_ids[0];
    config_ids.push_back(first);
    config_rules(2, config_ids);
}

#[test, expected_failure(abort_code = feed::EInvalidThreshold)]
fun a_threshold_of_0_is_refused() {
    config_rules(0, one_id());
}

#[test, expected_failure(abort_code = feed::EInvalidThreshold)]
fun a_threshold_above_the_number_of_configs_is_refused() {
    config_rules(4, many_ids(3));
}

#[test]
fun the_signed_bytes_are_those_of_the_server() {
    let world = world(1);
    let quote = world.feed.rules().new_quote_for_testing(1_000_000);
    assert_eq!(enclave::signed_bytes_for_testing(3, vectors::start_ms(), quote), vectors::message());
    world.end();
}

// === One value ===

#[test]
fun a_signed_value_is_written_with_its_time_and_signer() {
    let mut world = world(1);
    world.at(700);
    world.update(0, 1_000_000);
    world.assert_value(1_000_000, 0);
    assert!(world.feed.has_value());
    let signed = world.feed.signed_values();
    assert_eq!(signed.length(), 1);
    assert_eq!(signed[0].value(), 1_000_000);
    assert_eq!(signed[0].timestamp_ms(), vectors::start_ms());
    assert_eq!(signed[0].config_id(), object::id(&world.configs[0]));
    assert_eq!(signed[0].config_version(), 0);
    assert_eq!(signed[0].enclave_id(), object::id(&world.enclaves[0]));
    world.end();
}

#[test]
fun the_lowest_value_is_written() {
    let mut world = world(1);
    world.update(0, 1_000);
    world.assert_value(1_000, 0);
    world.end();
}

#[test]
fun the_highest_value_is_written() {
    let mut world = world(1);
    world.update(0, 10_000_000);
    world.assert_value(10_000_000, 0);
    world.end();
}

#[test, expected_failure(abort_code = feed::EOutOfBounds)]
fun a_value_below_the_bounds_is_refused() {
    world(1).update(0, 999);
    abort
}

#[test, expected_failure(abort_code = feed::EOutOfBounds)]
fun a_value_above_the_bounds_is_refused() {
    world(1).update(0, 10_000_001);
    abort
}

#[test]
fun a_value_that_moved_up_by_the_bound_is_written_after_the_interval() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(5_000);
    world.update(5_000, 1_005_000);
    world.assert_value(1_005_000, 5_000);
    world.end();
}

#[test]
fun a_value_that_moved_down_by_the_bound_is_written_after_the_interval() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(5_000);
    world.update(5_000, 995_000);
    world.assert_value(995_000, 5_000);
    world.end();
}

#[test, expected_failure(abort_code = feed::ENotDue)]
fun a_value_that_moved_up_by_less_is_refused() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(5_000);
    world.update(5_000, 1_004_999);
    abort
}

#[test, expected_failure(abort_code = feed::ENotDue)]
fun a_value_that_moved_down_by_less_is_refused() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(5_000);
    world.update(5_000, 995_001);
    abort
}

#[test, expected_failure(abort_code = feed::ETooSoon)]
fun a_value_within_the_interval_is_refused_however_far_it_moved() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(5_000);
    world.update(4_999, 2_000_000);
    abort
}

#[test]
fun an_equal_value_is_written_at_the_heartbeat() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(30_000);
    world.update(30_000, 1_000_000);
    world.assert_value(1_000_000, 30_000);
    world.end();
}

#[test, expected_failure(abort_code = feed::ENotDue)]
fun an_equal_value_before_the_heartbeat_is_refused() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(30_000);
    world.update(29_999, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = feed::ENotNewer)]
fun a_replayed_value_is_refused() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(30_000);
    world.update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = feed::ENotNewer)]
fun another_value_of_the_same_time_is_refused() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.update(0, 10_000_000);
    abort
}

#[test, expected_failure(abort_code = feed::ENotNewer)]
fun a_value_older_than_the_feeds_is_refused_however_far_it_moved() {
    let mut world = world(1);
    world.at(5_000);
    world.update(5_000, 1_005_000);
    world.update(0, 10_000_000);
    abort
}

#[test]
fun a_value_may_be_10_seconds_ahead_of_the_clock_and_counts_as_new() {
    let mut world = world(1);
    world.at(20_000);
    world.update(30_000, 1_000_000);
    world.assert_value(1_000_000, 30_000);
    world.end();
}

#[test, expected_failure(abort_code = feed::EAheadOfClock)]
fun a_value_more_than_10_seconds_ahead_of_the_clock_is_refused() {
    let mut world = world(1);
    world.at(19_999);
    world.update(30_000, 1_000_000);
    abort
}

#[test]
fun a_value_of_the_maximum_age_is_written() {
    let mut world = world(1);
    world.at(60_000);
    world.update(0, 1_000_000);
    world.assert_value(1_000_000, 0);
    world.end();
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun an_older_value_is_refused() {
    let mut world = world(1);
    world.at(60_001);
    world.update(0, 1_000_000);
    abort
}

#[test]
fun moves_of_the_largest_values_do_not_overflow() {
    let world = world(1);
    let config_ids = world.ids_of();
    let rules = feed::new_rules(3, symbol(), 6, 1, MAX_U64, 60_000, 5_000, 9_999, 30_000, 1, config_ids);
    let mut world = world.with_rules(rules);
    world.update(0, MAX_U64);
    world.at(5_000);
    world.update(5_000, 1);
    world.assert_value(1, 5_000);
    world.end();
}

// === Attacks on one value ===

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_value_of_another_symbol_is_refused() {
    let world = world(1);
    let config_ids = world.ids_of();
    let other_symbol = b"USD/SUI".to_string();
    let rules = feed::new_rules(3, other_symbol, 6, 1_000, 10_000_000, 60_000, 5_000, 50, 30_000, 1, config_ids);
    world.with_rules(rules).update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_value_with_other_decimals_is_refused() {
    let world = world(1);
    let config_ids = world.ids_of();
    let rules =
        feed::new_rules(3, symbol(), 7, 1_000, 10_000_000, 60_000, 5_000, 50, 30_000, 1, config_ids);
    world.with_rules(rules).update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_value_of_another_intent_is_refused() {
    let world = world(1);
    let config_ids = world.ids_of();
    let rules =
        feed::new_rules(4, symbol(), 6, 1_000, 10_000_000, 60_000, 5_000, 50, 30_000, 1, config_ids);
    world.with_rules(rules).update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_value_that_the_poster_changed_is_refused() {
    let mut world = world(1);
    let World { configs, enclaves, clock, feed, .. } = &mut world;
    let signature = vectors::signature(0, 0, 1_000_000);
    feed.update(&enclaves[0], &configs[0], clock, vectors::start_ms(), 1_000_001, &signature);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun a_time_that_the_poster_changed_is_refused() {
    let mut world = world(1);
    let World { configs, enclaves, clock, feed, .. } = &mut world;
    let signature = vectors::signature(0, 0, 1_000_000);
    feed.update(&enclaves[0], &configs[0], clock, vectors::start_ms() + 1, 1_000_000, &signature);
    abort
}

#[test, expected_failure(abort_code = feed::EConfigNotListed)]
fun a_config_of_the_same_capability_that_is_not_listed_is_refused() {
    let mut world = world(1);
    let mut config = world.cap.new_config_for_testing(world.scenario.ctx());
    let enclave = config.new_enclave_for_testing(&world.cap, vectors::public_key(0));
    let signature = vectors::signature(0, 0, 1_000_000);
    let World { feed, clock, .. } = &mut world;
    feed.update(&enclave, &config, clock, vectors::start_ms(), 1_000_000, &signature);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun an_enclave_of_another_listed_config_is_refused() {
    let mut world = world(1);
    let World { configs, enclaves, clock, feed, .. } = &mut world;
    let signature = vectors::signature(0, 0, 1_000_000);
    feed.update(&enclaves[0], &configs[1], clock, vectors::start_ms(), 1_000_000, &signature);
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_value_under_a_retired_config_is_refused() {
    let mut world = world(1);
    world.retire(0);
    world.update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun a_value_of_a_replaced_image_is_refused() {
    let mut world = world(1);
    world.replace_image();
    world.update(0, 1_000_000);
    abort
}

#[test]
fun a_value_of_the_version_before_is_written_in_an_overlap() {
    let mut world = world(1);
    world.overlap();
    world.update(0, 1_000_000);
    let (value, _) = world.read_trusted();
    assert_eq!(value, 1_000_000);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun a_value_of_the_version_before_is_refused_after_the_overlap() {
    let mut world = world(1);
    world.overlap();
    world.at(1_000);
    world.update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongPackageVersion)]
fun a_value_under_a_config_of_another_package_version_is_refused() {
    let mut world = world(1);
    world.configs[0].set_package_version_for_testing(2);
    world.update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = enclave::EKeyTooOld)]
fun a_value_of_a_key_that_is_too_old_is_refused() {
    let mut world = world(1);
    let World { configs, cap, .. } = &mut world;
    configs[0].update_max_key_age(cap, option::some(1));
    world.update(0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = feed::ETooFewValues)]
fun one_value_is_refused_where_two_are_needed() {
    world(2).update(0, 1_000_000);
    abort
}

// === Several values ===

#[test]
fun the_median_is_written_with_the_time_of_the_oldest_value() {
    let mut world = world(3);
    world.at(1_000);
    world.update_all();
    world.assert_value(1_100_000, 0);
    assert_eq!(world.feed.signed_values().length(), 3);
    world.end();
}

#[test]
fun the_median_of_two_values_is_their_mean_rounded_down() {
    let mut world = world(2);
    let mut round = world.feed.begin();
    world.add(&mut round, 0, 0, 1_000_000);
    world.add(&mut round, 1, 0, 1_000_001);
    round.finish(&mut world.feed);
    world.assert_value(1_000_000, 0);
    world.end();
}

#[test]
fun the_mean_of_the_largest_values_does_not_overflow() {
    let world = world(2);
    let config_ids = world.ids_of();
    let rules = feed::new_rules(3, symbol(), 6, 1, MAX_U64, 60_000, 5_000, 50, 30_000, 2, config_ids);
    let mut world = world.with_rules(rules);
    let mut round = world.feed.begin();
    world.add(&mut round, 0, 0, MAX_U64);
    world.add(&mut round, 1, 0, MAX_U64 - 1);
    round.finish(&mut world.feed);
    world.assert_value(MAX_U64 - 1, 0);
    world.end();
}

#[test]
fun more_values_than_the_threshold_are_accepted() {
    let mut world = world(2);
    world.update_all();
    world.assert_value(1_100_000, 0);
    world.end();
}

#[test, expected_failure(abort_code = feed::ETooFewValues)]
fun a_round_without_a_value_is_refused() {
    let mut world = world(1);
    world.feed.begin().finish(&mut world.feed);
    abort
}

#[test, expected_failure(abort_code = feed::EConfigRepeated)]
fun a_second_value_of_a_config_is_refused() {
    let world = world(2);
    let mut round = world.feed.begin();
    world.add(&mut round, 0, 0, 1_000_000);
    world.add(&mut round, 0, 1_000, 1_500_000);
    abort
}

#[test, expected_failure(abort_code = feed::EConfigRepeated)]
fun a_value_of_a_second_enclave_of_a_config_is_refused() {
    let mut world = world(2);
    let World { configs, cap, .. } = &mut world;
    let enclave = configs[0].new_enclave_for_testing(cap, vectors::public_key(1));
    let mut round = world.feed.begin();
    world.add(&mut round, 0, 0, 1_000_000);
    let signature = vectors::signature(1, 0, 1_100_000);
    round.add(
        &world.feed,
        &enclave,
        &world.configs[0],
        &world.clock,
        vectors::start_ms(),
        1_100_000,
        &signature,
    );
    abort
}

#[test, expected_failure(abort_code = feed::ENotNewer)]
fun one_old_value_makes_the_update_old() {
    let mut world = world(2);
    world.update_all();
    let mut round = world.feed.begin();
    world.at(5_000);
    world.add(&mut round, 0, 0, 10_000_000);
    world.add(&mut round, 1, 5_000, 1_200_000);
    round.finish(&mut world.feed);
    abort
}

#[test, expected_failure(abort_code = feed::ENotNewer)]
fun two_rounds_of_the_same_values_write_once() {
    let mut world = world(2);
    let mut first = world.feed.begin();
    let mut second = world.feed.begin();
    world.add(&mut first, 0, 0, 1_000_000);
    world.add(&mut first, 1, 0, 1_100_000);
    world.add(&mut second, 0, 0, 1_000_000);
    world.add(&mut second, 1, 0, 1_100_000);
    first.finish(&mut world.feed);
    second.finish(&mut world.feed);
    abort
}

/// Creates a feed of the same capability with lax rules, and returns it with the world.
fun with_lax_feed(world: World): (Feed<APP>, World) {
    let World { mut scenario, cap, configs, enclaves, clock, feed } = world;
    let rules = feed::new_rules(3, symbol(), 6, 1, MAX_U64, MAX_U64, 0, 0, 0, 1, ids(&configs));
    feed::create(&cap, rules, scenario.ctx());
    scenario.next_tx(@0xA);
    let lax_feed = scenario.take_shared<Feed<APP>>();
    (lax_feed, World { scenario, cap, configs, enclaves, clock, feed })
}

#[test, expected_failure(abort_code = feed::EWrongFeed)]
fun a_value_that_a_lax_feed_accepts_is_not_added_to_a_round_of_another() {
    let (lax_feed, world) = world(1).with_lax_feed();
    let mut round = lax_feed.begin();
    world.add(&mut round, 0, 0, 1_000_000);
    abort
}

#[test, expected_failure(abort_code = feed::EWrongFeed)]
fun a_round_of_a_lax_feed_does_not_update_another_feed() {
    let (lax_feed, mut world) = world(1).with_lax_feed();
    lax_feed.begin().finish(&mut world.feed);
    abort
}

// === Reading ===

#[test, expected_failure(abort_code = feed::ENoValue)]
fun a_feed_without_a_value_is_not_read() {
    world(1).read();
    abort
}

#[test]
fun a_value_is_read_until_the_maximum_age() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(60_000);
    world.assert_value(1_000_000, 0);
    world.end();
}

#[test, expected_failure(abort_code = feed::ETooOld)]
fun a_value_older_than_the_maximum_age_is_not_read() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(60_001);
    world.read();
    abort
}

fun read_trusted(world: &World): (u64, u64) {
    world.feed.read_trusted(&world.configs[0], &world.clock)
}

#[test]
fun a_value_of_the_present_version_is_trusted() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    let (value, timestamp_ms) = world.read_trusted();
    assert_eq!(value, 1_000_000);
    assert_eq!(timestamp_ms, vectors::start_ms());
    world.end();
}

#[test, expected_failure(abort_code = feed::EConfigRetired)]
fun a_value_under_a_retired_config_is_not_trusted() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.retire(0);
    world.read_trusted();
    abort
}

#[test, expected_failure(abort_code = feed::EVersionNotAccepted)]
fun a_value_of_a_replaced_image_is_not_trusted() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.replace_image();
    world.read_trusted();
    abort
}

fun overlap(world: &mut World) {
    let World { configs, cap, clock, .. } = world;
    let until_ms = vectors::start_ms() + 1_000;
    configs[0].begin_overlap(cap, PCR, PCR, PCR, option::none(), until_ms, clock);
}

#[test]
fun a_value_of_the_version_before_is_trusted_in_an_overlap() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.overlap();
    world.at(999);
    world.read_trusted();
    world.end();
}

#[test, expected_failure(abort_code = feed::EVersionNotAccepted)]
fun a_value_of_the_version_before_is_not_trusted_after_the_overlap() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.overlap();
    world.at(1_000);
    world.read_trusted();
    abort
}

#[test, expected_failure(abort_code = feed::EVersionNotAccepted)]
fun a_value_that_was_written_in_an_overlap_is_not_trusted_after_it() {
    let mut world = world(1);
    world.overlap();
    world.update(0, 1_000_000);
    world.at(1_000);
    world.read_trusted();
    abort
}

#[test, expected_failure(abort_code = feed::EVersionNotAccepted)]
fun an_overlap_does_not_cover_two_versions() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.replace_image();
    world.overlap();
    world.read_trusted();
    abort
}

#[test, expected_failure(abort_code = feed::EConfigNotChecked)]
fun a_check_of_another_config_is_not_enough() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.feed.read_trusted(&world.configs[1], &world.clock);
    abort
}

#[test, expected_failure(abort_code = feed::ETooOld)]
fun a_trusted_value_is_not_read_after_the_maximum_age() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.at(60_001);
    world.read_trusted();
    abort
}

#[test]
fun every_listed_config_may_be_checked_and_only_those_with_a_value_count() {
    let mut world = world(1);
    world.update(0, 1_000_000);
    world.retire(1);
    let mut check = world.feed.begin_check();
    let World { configs, feed, clock, .. } = &world;
    configs.do_ref!(|config| check.check_config(feed, config, clock));
    let (value, _) = check.read_checked(&world.feed, &world.clock);
    assert_eq!(value, 1_000_000);
    world.end();
}

#[test, expected_failure(abort_code = feed::EConfigNotChecked)]
fun every_config_with_a_value_must_be_checked() {
    let mut world = world(2);
    world.update_all();
    let mut check = world.feed.begin_check();
    check.check_config(&world.feed, &world.configs[0], &world.clock);
    check.check_config(&world.feed, &world.configs[2], &world.clock);
    check.read_checked(&world.feed, &world.clock);
    abort
}

#[test, expected_failure(abort_code = feed::EConfigRetired)]
fun one_retired_config_ends_the_value_of_all() {
    let mut world = world(2);
    world.update_all();
    world.retire(2);
    let mut check = world.feed.begin_check();
    let World { configs, feed, clock, .. } = &world;
    configs.do_ref!(|config| check.check_config(feed, config, clock));
    abort
}

#[test, expected_failure(abort_code = feed::ENoValue)]
fun a_feed_without_a_value_is_not_checked() {
    world(1).read_trusted();
    abort
}

#[test, expected_failure(abort_code = feed::EWrongFeed)]
fun a_check_of_a_lax_feed_does_not_read_another_feed() {
    let (mut lax_feed, mut world) = world(1).with_lax_feed();
    let signature = vectors::signature(0, 0, 1_000_000);
    let World { configs, enclaves, clock, .. } = &world;
    lax_feed.update(&enclaves[0], &configs[0], clock, vectors::start_ms(), 1_000_000, &signature);
    world.update(0, 1_000_000);
    let check = lax_feed.begin_check();
    check.read_checked(&world.feed, &world.clock);
    abort
}

#[test, expected_failure(abort_code = feed::EWrongFeed)]
fun a_check_of_a_lax_feed_is_not_continued_with_another_feed() {
    let (mut lax_feed, world) = world(1).with_lax_feed();
    let signature = vectors::signature(0, 0, 1_000_000);
    let World { configs, enclaves, clock, feed, .. } = &world;
    lax_feed.update(&enclaves[0], &configs[0], clock, vectors::start_ms(), 1_000_000, &signature);
    let mut check = lax_feed.begin_check();
    check.check_config(feed, &configs[0], clock);
    abort
}

#[test, expected_failure(abort_code = feed::EUpdatedSince)]
fun a_check_is_not_continued_after_an_update() {
    let mut world = world(1);
    world.at(5_000);
    world.update(0, 1_000_000);
    let mut check = world.feed.begin_check();
    world.update(5_000, 1_005_000);
    check.check_config(&world.feed, &world.configs[0], &world.clock);
    abort
}

#[test, expected_failure(abort_code = feed::EUpdatedSince)]
fun a_check_of_an_update_does_not_read_the_next() {
    let mut world = world(1);
    world.at(5_000);
    world.update(0, 1_000_000);
    let mut check = world.feed.begin_check();
    check.check_config(&world.feed, &world.configs[0], &world.clock);
    world.update(5_000, 1_005_000);
    check.read_checked(&world.feed, &world.clock);
    abort
}
