#[test_only]
module app::weather_tests;

use app::vectors;
use app::weather::{Self, TemperatureNFT, WEATHER, WeatherNFT};
use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig};
use std::unit_test::assert_eq;
use sui::clock::{Self, Clock};
use sui::test_scenario::{Self, Scenario};
use sui::test_utils;

const ADMIN: address = @0xAD;
const ALICE: address = @0xA;
const BOB: address = @0xB;

const MINUTE_MS: u64 = 60 * 1000;
const PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

public struct World {
    scenario: Scenario,
    cap: EnclaveCap<WEATHER>,
    config: EnclaveConfig<WEATHER>,
    enclave: Enclave<WEATHER>,
    clock: Clock,
}

/// Publishes the package, creates its config and registers the enclave that signed the vectors.
fun world(now_ms: u64): World {
    let mut scenario = test_scenario::begin(ADMIN);
    weather::init_for_testing(test_utils::create_one_time_witness<WEATHER>(), scenario.ctx());
    scenario.next_tx(ADMIN);
    let cap = scenario.take_from_sender<EnclaveCap<WEATHER>>();
    cap.create_enclave_config(b"weather".to_string(), PCR, PCR, PCR, scenario.ctx());
    scenario.next_tx(ALICE);
    let mut config = scenario.take_shared<EnclaveConfig<WEATHER>>();
    let enclave = config.new_enclave_for_testing(&cap, vectors::public_key());
    let mut clock = clock::create_for_testing(scenario.ctx());
    clock.set_for_testing(now_ms);
    World { scenario, cap, config, enclave, clock }
}

fun end(world: World) {
    let World { scenario, cap, config, enclave, clock } = world;
    test_scenario::return_shared(config);
    transfer::public_transfer(cap, ADMIN);
    enclave.destroy_enclave_for_testing();
    clock.destroy_for_testing();
    scenario.end();
}

fun mint(world: &mut World): WeatherNFT {
    weather::update_weather(
        vectors::location(),
        vectors::temperature(),
        vectors::timestamp_ms(),
        &vectors::signature(),
        &world.enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    )
}

#[test]
fun publishing_makes_a_capability_and_no_config() {
    let mut scenario = test_scenario::begin(ADMIN);
    weather::init_for_testing(test_utils::create_one_time_witness<WEATHER>(), scenario.ctx());
    scenario.next_tx(ADMIN);
    let cap = scenario.take_from_sender<EnclaveCap<WEATHER>>();
    assert!(!test_scenario::has_most_recent_shared<EnclaveConfig<WEATHER>>());
    scenario.return_to_sender(cap);
    scenario.end();
}

#[test]
fun a_signed_reading_becomes_an_nft() {
    let mut world = world(vectors::timestamp_ms());
    let nft = world.mint();
    assert_eq!(*nft.location(), b"San Francisco".to_string());
    assert_eq!(nft.temperature(), 13);
    assert_eq!(nft.timestamp_ms(), 1744683300000);
    transfer::public_transfer(nft, ALICE);
    world.end();
}

#[test]
fun several_senders_may_use_one_reading() {
    let mut world = world(vectors::timestamp_ms());
    transfer::public_transfer(world.mint(), ALICE);
    world.scenario.next_tx(BOB);
    transfer::public_transfer(world.mint(), BOB);
    transfer::public_transfer(world.mint(), BOB);
    world.end();
}

#[test]
fun a_reading_is_accepted_for_90_minutes() {
    let mut world = world(vectors::timestamp_ms() + 90 * MINUTE_MS);
    transfer::public_transfer(world.mint(), ALICE);
    world.end();
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_reading_older_than_90_minutes_is_refused() {
    let mut world = world(vectors::timestamp_ms() + 90 * MINUTE_MS + 1);
    let _nft = world.mint();
    abort
}

#[test]
fun a_reading_may_be_a_minute_ahead_of_the_clock() {
    let mut world = world(vectors::timestamp_ms() - MINUTE_MS);
    transfer::public_transfer(world.mint(), ALICE);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInFuture)]
fun a_reading_more_than_a_minute_ahead_of_the_clock_is_refused() {
    let mut world = world(vectors::timestamp_ms() - MINUTE_MS - 1);
    let _nft = world.mint();
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidConfigVersion)]
fun a_reading_of_a_withdrawn_image_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    let World { cap, config, .. } = &mut world;
    config.update_pcrs(cap, PCR, PCR, PCR);
    let _nft = world.mint();
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun another_config_of_the_application_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    let other_config = world.cap.new_config_for_testing(world.scenario.ctx());
    let _nft = weather::update_weather(
        vectors::location(),
        vectors::temperature(),
        vectors::timestamp_ms(),
        &vectors::signature(),
        &world.enclave,
        &other_config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_place_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    let _nft = weather::update_weather(
        b"Los Angeles".to_string(),
        vectors::temperature(),
        vectors::timestamp_ms(),
        &vectors::signature(),
        &world.enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_temperature_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    let _nft = weather::update_weather(
        vectors::location(),
        vectors::temperature() + 1,
        vectors::timestamp_ms(),
        &vectors::signature(),
        &world.enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_time_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    let _nft = weather::update_weather(
        vectors::location(),
        vectors::temperature(),
        vectors::timestamp_ms() + 1,
        &vectors::signature(),
        &world.enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun an_enclave_that_did_not_sign_the_reading_is_refused() {
    let mut world = world(vectors::timestamp_ms());
    let World { cap, config, .. } = &mut world;
    let other_enclave = config.new_enclave_for_testing(
        cap,
        x"1111111111111111111111111111111111111111111111111111111111111111",
    );
    let _nft = weather::update_weather(
        vectors::location(),
        vectors::temperature(),
        vectors::timestamp_ms(),
        &vectors::signature(),
        &other_enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

/// Mints the reading below 0 °C, under the enclave that signed it.
fun mint_temperature(world: &mut World, tenths_plus_100000: u64, sig: vector<u8>): TemperatureNFT {
    let World { cap, config, .. } = world;
    let enclave = config.new_enclave_for_testing(cap, vectors::temperature_key());
    let nft = weather::update_temperature(
        vectors::temperature_location(),
        tenths_plus_100000,
        vectors::temperature_timestamp_ms(),
        &sig,
        &enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    enclave.destroy_enclave_for_testing();
    nft
}

#[test]
fun a_reading_below_zero_becomes_an_nft() {
    let mut world = world(vectors::temperature_timestamp_ms());
    let nft = world.mint_temperature(vectors::tenths_plus_100000(), vectors::temperature_signature());
    assert_eq!(*nft.location(), b"Oslo".to_string());
    assert_eq!(nft.tenths_plus_100000(), 99996);
    assert_eq!(nft.timestamp_ms(), 1744683300000);
    transfer::public_transfer(nft, ALICE);
    world.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun another_temperature_in_tenths_is_refused() {
    let mut world = world(vectors::temperature_timestamp_ms());
    let _nft = world.mint_temperature(vectors::tenths_plus_100000() + 1, vectors::temperature_signature());
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun update_weather_refuses_a_reading_in_tenths() {
    let mut world = world(vectors::temperature_timestamp_ms());
    let World { cap, config, .. } = &mut world;
    let enclave = config.new_enclave_for_testing(cap, vectors::temperature_key());
    let _nft = weather::update_weather(
        vectors::temperature_location(),
        vectors::tenths_plus_100000(),
        vectors::temperature_timestamp_ms(),
        &vectors::temperature_signature(),
        &enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun update_temperature_refuses_a_reading_in_whole_degrees() {
    let mut world = world(vectors::timestamp_ms());
    let _nft = weather::update_temperature(
        vectors::location(),
        vectors::temperature(),
        vectors::timestamp_ms(),
        &vectors::signature(),
        &world.enclave,
        &world.config,
        &world.clock,
        world.scenario.ctx(),
    );
    abort
}

#[test, expected_failure(abort_code = enclave::ETooOld)]
fun a_reading_in_tenths_older_than_90_minutes_is_refused() {
    let mut world = world(vectors::temperature_timestamp_ms() + 90 * MINUTE_MS + 1);
    let _nft = world.mint_temperature(vectors::tenths_plus_100000(), vectors::temperature_signature());
    abort
}
