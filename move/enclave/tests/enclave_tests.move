#[test_only]
module enclave::enclave_tests;

use enclave::attested;
use enclave::clock_tests;
use enclave::enclave::{
    Self,
    Enclave,
    EnclaveCap,
    EnclaveConfig,
    EnclaveDestroyed,
    EnclaveRegistered
};
use enclave::pcrs;
use std::bcs;
use std::unit_test::assert_eq;
use sui::event;
use sui::test_scenario::{Self, Scenario};
use sui::test_utils;

public struct ENCLAVE_TESTS has drop {}

/// The fields of `EnclaveDestroyed`, which are private to its module: equal values have equal bytes.
public struct DestroyedFields has drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
}

public struct RegisteredFields has drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
    registered_at_ms: u64,
    registered_by: ID,
}

/// Time of each attestation, in milliseconds since the Unix epoch.
const AT_MS: u64 = 1_700_000_000_000;
const ADMIN: address = @0xAD;
const STRANGER: address = @0x57;

const PCR0: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const PCR1: vector<u8> =
    x"b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";
const PCR2: vector<u8> =
    x"c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2";
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";
const OTHER_KEY: vector<u8> = x"2222222222222222222222222222222222222222222222222222222222222222";

/// Creates an admin's capability and a shared config of PCR0, PCR1 and PCR2. The next transaction is the admin's.
fun begin(): (Scenario, EnclaveCap<ENCLAVE_TESTS>, EnclaveConfig<ENCLAVE_TESTS>) {
    let mut scenario = test_scenario::begin(ADMIN);
    let cap = enclave::new_cap(
        test_utils::create_one_time_witness<ENCLAVE_TESTS>(),
        scenario.ctx(),
    );
    cap.create_enclave_config(b"test".to_string(), PCR0, PCR1, PCR2, scenario.ctx());
    scenario.next_tx(ADMIN);
    let config = scenario.take_shared<EnclaveConfig<ENCLAVE_TESTS>>();
    (scenario, cap, config)
}

fun end(
    scenario: Scenario,
    cap: EnclaveCap<ENCLAVE_TESTS>,
    config: EnclaveConfig<ENCLAVE_TESTS>,
) {
    test_scenario::return_shared(config);
    cap.destroy_cap_for_testing();
    scenario.end();
}

fun register(
    config: &mut EnclaveConfig<ENCLAVE_TESTS>,
    cap: &EnclaveCap<ENCLAVE_TESTS>,
    key: vector<u8>,
): Enclave<ENCLAVE_TESTS> {
    config.enclave_of(cap, attested::new(pcrs::new(PCR0, PCR1, PCR2), key, AT_MS))
}

use fun register as EnclaveConfig.register;

use fun clock_tests::is_stale as Enclave.is_stale_now;
use fun clock_tests::destroy_old as Enclave.destroy_old;

// === register_enclave, with the values of a document ===

#[test]
fun an_enclave_of_the_configured_image_is_registered() {
    let (scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    assert!(!config.was_registered(KEY));
    let enclave = config.register(&cap, KEY);
    assert_eq!(*enclave.pk(), KEY);
    assert_eq!(enclave.config_id(), object::id(&config));
    assert_eq!(enclave.config_version(), config.current_config_version());
    assert_eq!(enclave.registered_at_ms(), AT_MS);
    assert!(!enclave.is_stale_now(&config));
    assert!(config.was_registered(KEY));
    assert!(!config.was_registered(OTHER_KEY));
    enclave.destroy_enclave_for_testing();
    end(scenario, cap, config);
}

#[test]
fun registration_and_destruction_are_announced() {
    let (scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    let enclave = config.register(&cap, KEY);
    let (enclave_id, config_id) = (object::id(&enclave), object::id(&config));
    let registered = event::events_by_type<EnclaveRegistered<ENCLAVE_TESTS>>();
    let fields = RegisteredFields {
        enclave_id,
        config_id,
        config_version: 1,
        pk: KEY,
        registered_at_ms: AT_MS,
        registered_by: object::id(&cap),
    };
    assert_eq!(bcs::to_bytes(&registered), bcs::to_bytes(&vector[fields]));
    assert!(event::events_by_type<EnclaveDestroyed<ENCLAVE_TESTS>>().is_empty());
    enclave.destroy_enclave(&config, &cap);
    let destroyed = event::events_by_type<EnclaveDestroyed<ENCLAVE_TESTS>>();
    let fields = DestroyedFields { enclave_id, config_id, config_version: 1, pk: KEY };
    assert_eq!(bcs::to_bytes(&destroyed), bcs::to_bytes(&vector[fields]));
    end(scenario, cap, config);
}

#[test]
fun a_config_may_have_several_enclaves() {
    let (scenario, cap, mut config) = begin();
    let first = config.register(&cap, KEY);
    let second = config.register(&cap, OTHER_KEY);
    assert!(object::id(&first) != object::id(&second));
    first.destroy_enclave_for_testing();
    second.destroy_enclave_for_testing();
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_register() {
    let (mut scenario, _cap, mut config) = begin();
    let other_cap = enclave::new_cap_for_testing<ENCLAVE_TESTS>(scenario.ctx());
    let _enclave = config.register(&other_cap, KEY);
    abort
}

fun register_image(pcr0: vector<u8>, pcr1: vector<u8>, pcr2: vector<u8>) {
    let (scenario, cap, mut config) = begin();
    config.enclave_of(&cap, attested::new(pcrs::new(pcr0, pcr1, pcr2), KEY, AT_MS)).destroy_enclave_for_testing();
    end(scenario, cap, config);
}

fun register_key(key: vector<u8>) {
    let (scenario, cap, mut config) = begin();
    config.register(&cap, key).destroy_enclave_for_testing();
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun another_pcr0_is_refused() {
    register_image(PCR1, PCR1, PCR2)
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun another_pcr1_is_refused() {
    register_image(PCR0, PCR0, PCR2)
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun another_pcr2_is_refused() {
    register_image(PCR0, PCR1, PCR1)
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun the_image_of_an_older_version_is_refused() {
    let (_scenario, cap, mut config) = begin();
    config.update_pcrs(&cap, PCR1, PCR1, PCR2);
    let _enclave = config.register(&cap, KEY);
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidPublicKey)]
fun a_document_without_a_public_key_is_refused() {
    register_key(x"")
}

#[test, expected_failure(abort_code = enclave::EInvalidPublicKey)]
fun a_public_key_of_31_bytes_is_refused() {
    register_key(x"11111111111111111111111111111111111111111111111111111111111111")
}

#[test, expected_failure(abort_code = enclave::EInvalidPublicKey)]
fun a_public_key_of_33_bytes_is_refused() {
    register_key(x"111111111111111111111111111111111111111111111111111111111111111111")
}

#[test, expected_failure(abort_code = enclave::EAlreadyRegistered)]
fun a_key_is_registered_once() {
    let (_scenario, cap, mut config) = begin();
    let _first = config.register(&cap, KEY);
    let _second = config.register(&cap, KEY);
    abort
}

#[test, expected_failure(abort_code = enclave::EAlreadyRegistered)]
fun the_key_of_a_destroyed_enclave_is_refused() {
    let (_scenario, cap, mut config) = begin();
    config.register(&cap, KEY).destroy_enclave(&config, &cap);
    let _again = config.register(&cap, KEY);
    abort
}

#[test]
fun the_same_key_at_a_new_version_is_another_enclave() {
    let (scenario, cap, mut config) = begin();
    let first = config.register(&cap, KEY);
    config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    assert!(!config.was_registered(KEY));
    let second = config.register(&cap, KEY);
    assert!(object::id(&first) != object::id(&second));
    assert!(first.is_stale_now(&config));
    assert!(!second.is_stale_now(&config));
    first.destroy_enclave_for_testing();
    second.destroy_enclave_for_testing();
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun is_stale_refuses_another_config() {
    let (mut scenario, cap, mut config) = begin();
    let other_config = cap.new_config_for_testing(scenario.ctx());
    config.register(&cap, KEY).is_stale_now(&other_config);
    abort
}

// === destroy_enclave ===

#[test]
fun the_admin_destroys_any_enclave() {
    let (scenario, cap, mut config) = begin();
    let stale = config.register(&cap, KEY);
    config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    let latest = config.register(&cap, KEY);
    stale.destroy_enclave(&config, &cap);
    latest.destroy_enclave(&config, &cap);
    assert_eq!(event::events_by_type<EnclaveDestroyed<ENCLAVE_TESTS>>().length(), 2);
    end(scenario, cap, config);
}

#[test]
fun the_admin_replaces_a_key_by_registering_its_successor() {
    let (scenario, cap, mut config) = begin();
    let crashed = config.register(&cap, KEY);
    let successor = config.register(&cap, OTHER_KEY);
    crashed.destroy_enclave(&config, &cap);
    assert!(!successor.is_stale_now(&config));
    assert_eq!(*successor.pk(), OTHER_KEY);
    successor.destroy_enclave_for_testing();
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun destroy_enclave_refuses_another_capability() {
    let (mut scenario, cap, mut config) = begin();
    let other_cap = enclave::new_cap_for_testing<ENCLAVE_TESTS>(scenario.ctx());
    config.register(&cap, KEY).destroy_enclave(&config, &other_cap);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun destroy_enclave_refuses_another_config() {
    let (mut scenario, cap, mut config) = begin();
    let other_config = cap.new_config_for_testing(scenario.ctx());
    config.register(&cap, KEY).destroy_enclave(&other_config, &cap);
    abort
}

// === destroy_old_enclave ===

#[test]
fun anyone_destroys_a_stale_enclave() {
    let (mut scenario, cap, mut config) = begin();
    let enclave = config.register(&cap, KEY);
    config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    scenario.next_tx(STRANGER);
    enclave.destroy_old(&config);
    assert_eq!(event::events_by_type<EnclaveDestroyed<ENCLAVE_TESTS>>().length(), 1);
    end(scenario, cap, config);
}

#[test, expected_failure(abort_code = enclave::ENotStale)]
fun a_stranger_cannot_destroy_an_enclave_of_the_latest_version() {
    let (mut scenario, cap, mut config) = begin();
    let enclave = config.register(&cap, KEY);
    scenario.next_tx(STRANGER);
    enclave.destroy_old(&config);
    abort
}

#[test, expected_failure(abort_code = enclave::EWrongConfig)]
fun destroy_old_enclave_refuses_another_config() {
    let (mut scenario, cap, mut config) = begin();
    let enclave = config.register(&cap, KEY);
    let mut other_config = cap.new_config_for_testing(scenario.ctx());
    other_config.update_pcrs(&cap, PCR0, PCR1, PCR2);
    enclave.destroy_old(&other_config);
    abort
}
