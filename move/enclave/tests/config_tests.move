#[test_only]
module enclave::config_tests;

use enclave::enclave::{Self, EnclaveCap, EnclaveConfig, EnclaveConfigCreated, PcrsUpdated};
use enclave::pcrs;
use enclave::source::Source;
use std::bcs;
use std::string::String;
use std::unit_test::assert_eq;
use sui::event;
use sui::test_scenario::{Self, Scenario};
use sui::test_utils;

public struct CONFIG_TESTS has drop {}

public struct NotAWitness has drop {}

/// The fields of `EnclaveConfigCreated`, which are private to its module: equal values have equal bytes.
public struct ConfigFields has drop {
    config_id: ID,
    capability_id: ID,
    name: String,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
    config_version: u64,
}

public struct PcrsFields has drop {
    config_id: ID,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
    config_version: u64,
    overlap_until_ms: Option<u64>,
}

const ADMIN: address = @0xAD;

const PCR0: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const PCR1: vector<u8> =
    x"b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";
const PCR2: vector<u8> =
    x"c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2";
const ZERO: vector<u8> =
    x"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
const SHORT: vector<u8> = x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

/// Creates an admin's capability and a shared config of PCR0, PCR1 and PCR2. The next transaction is the admin's.
fun begin(): (Scenario, EnclaveCap<CONFIG_TESTS>, EnclaveConfig<CONFIG_TESTS>) {
    let mut scenario = test_scenario::begin(ADMIN);
    let cap = enclave::new_cap(
        test_utils::create_one_time_witness<CONFIG_TESTS>(),
        scenario.ctx(),
    );
    cap.create_enclave_config(b"test".to_string(), PCR0, PCR1, PCR2, scenario.ctx());
    scenario.next_tx(ADMIN);
    let config = scenario.take_shared<EnclaveConfig<CONFIG_TESTS>>();
    (scenario, cap, config)
}

fun end(
    scenario: Scenario,
    cap: EnclaveCap<CONFIG_TESTS>,
    config: EnclaveConfig<CONFIG_TESTS>,
) {
    test_scenario::return_shared(config);
    cap.destroy_cap_for_testing();
    scenario.end();
}

// === new_cap ===

#[test, expected_failure(abort_code = enclave::ENotOneTimeWitness)]
fun a_capability_needs_a_one_time_witness() {
    let mut scenario = test_scenario::begin(ADMIN);
    let _cap = enclave::new_cap(NotAWitness {}, scenario.ctx());
    abort
}

// === create_enclave_config ===

#[test]
fun a_new_config_is_shared_and_has_version_0() {
    let (scenario, cap, config) = begin();
    assert_eq!(*config.name(), b"test".to_string());
    assert_eq!(*config.pcr0(), PCR0);
    assert_eq!(*config.pcr1(), PCR1);
    assert_eq!(*config.pcr2(), PCR2);
    assert_eq!(config.current_config_version(), 0);
    assert_eq!(config.capability_id(), object::id(&cap));
    end(scenario, cap, config);
}

#[test]
fun a_new_config_is_announced() {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<CONFIG_TESTS>(&mut ctx);
    let config = cap.config_of(b"test".to_string(), pcrs::new(PCR0, PCR1, PCR2), option::none(), false, &mut ctx);
    let events = event::events_by_type<EnclaveConfigCreated<CONFIG_TESTS>>();
    assert_eq!(
        bcs::to_bytes(&events),
        bcs::to_bytes(
            &vector[
                ConfigFields {
                    config_id: object::id(&config),
                    capability_id: object::id(&cap),
                    name: b"test".to_string(),
                    pcr0: PCR0,
                    pcr1: PCR1,
                    pcr2: PCR2,
                    source: option::none(),
                    config_version: 0,
                },
            ],
        ),
    );
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
}

fun create_config_with(pcr0: vector<u8>, pcr1: vector<u8>, pcr2: vector<u8>) {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<CONFIG_TESTS>(&mut ctx);
    cap.create_enclave_config(b"test".to_string(), pcr0, pcr1, pcr2, &mut ctx);
    cap.destroy_cap_for_testing();
}

#[test, expected_failure(abort_code = pcrs::EPcrMissing)]
fun a_config_without_a_register_is_refused() {
    create_config_with(PCR0, x"", PCR2)
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_config_with_a_register_of_the_wrong_length_is_refused() {
    create_config_with(PCR0, PCR1, SHORT)
}

#[test, expected_failure(abort_code = pcrs::EDebugPcrs)]
fun a_config_for_debug_enclaves_is_refused() {
    create_config_with(ZERO, ZERO, ZERO)
}

// === update_pcrs ===

#[test]
fun updated_registers_make_a_new_version() {
    let (scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR1, PCR2, PCR0);
    assert_eq!(*config.pcr0(), PCR1);
    assert_eq!(*config.pcr1(), PCR2);
    assert_eq!(*config.pcr2(), PCR0);
    assert_eq!(config.current_config_version(), 1);
    config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    assert_eq!(config.current_config_version(), 2);
    end(scenario, cap, config);
}

#[test]
fun updated_registers_are_announced() {
    let (scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR1, PCR2, PCR0);
    let events = event::events_by_type<PcrsUpdated<CONFIG_TESTS>>();
    let config_id = object::id(&config);
    let fields = PcrsFields {
        config_id,
        pcr0: PCR1,
        pcr1: PCR2,
        pcr2: PCR0,
        source: option::none(),
        config_version: 1,
        overlap_until_ms: option::none(),
    };
    assert_eq!(bcs::to_bytes(&events), bcs::to_bytes(&vector[fields]));
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_update_registers() {
    let (mut scenario, _cap, mut config) = begin();
    let other_cap = enclave::new_cap_for_testing<CONFIG_TESTS>(scenario.ctx());
    config.update_pcrs(&other_cap, PCR1, PCR2, PCR0);
    abort
}

#[test, expected_failure(abort_code = pcrs::EPcrMissing)]
fun an_update_without_a_register_is_refused() {
    let (_scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR0, PCR1, x"");
    abort
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun an_update_with_a_register_of_the_wrong_length_is_refused() {
    let (_scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR0, SHORT, PCR2);
    abort
}

#[test, expected_failure(abort_code = pcrs::EDebugPcrs)]
fun a_config_cannot_be_updated_to_debug_enclaves() {
    let (_scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, ZERO, ZERO, ZERO);
    abort
}

// === update_name ===

#[test]
fun a_new_name_changes_nothing_else() {
    let (scenario, cap, mut config) = begin();
    config.update_name(&cap, b"renamed".to_string());
    assert_eq!(*config.name(), b"renamed".to_string());
    assert_eq!(config.current_config_version(), 0);
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_rename_a_config() {
    let (mut scenario, _cap, mut config) = begin();
    let other_cap = enclave::new_cap_for_testing<CONFIG_TESTS>(scenario.ctx());
    config.update_name(&other_cap, b"renamed".to_string());
    abort
}
