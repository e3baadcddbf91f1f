/// The source of an image: the bounds of its fields, and the calls that set it with the registers.
#[test_only]
module enclave::source_tests;

use enclave::attested;
use enclave::clock_tests;
use enclave::enclave::{Self, EnclaveCap, EnclaveConfig, EnclaveConfigCreated, PcrsUpdated};
use enclave::pcrs::{Self, Pcrs};
use enclave::source::{Self, Source};
use std::bcs;
use std::string::String;
use std::unit_test::assert_eq;
use sui::event;

/// The application.
public struct T {}

public struct CreatedFields has drop {
    config_id: ID,
    capability_id: ID,
    name: String,
    pcrs: Pcrs,
    source: Option<Source>,
    config_version: u64,
}

public struct UpdatedFields has drop {
    config_id: ID,
    pcrs: Pcrs,
    source: Option<Source>,
    config_version: u64,
    overlap_until_ms: Option<u64>,
}

const PCR: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const KEY: vector<u8> = x"1111111111111111111111111111111111111111111111111111111111111111";
const URL: vector<u8> = b"https://git.example/weather";
const BYTES_32: vector<u8> = x"5151515151515151515151515151515151515151515151515151515151515151";

fun text(length: u64): String {
    let mut text = vector[];
    while (text.length() < length) text.push_back(0x61);
    text.to_string()
}

fun bytes(length: u64): vector<u8> {
    *text(length).as_bytes()
}

fun source(version: vector<u8>): Option<Source> {
    source::some(URL.to_string(), bytes(20), b"apps/weather".to_string(), version.to_string(), BYTES_32)
}

fun with_url(url: String): Option<Source> {
    source::some(url, bytes(20), text(0), text(1), BYTES_32)
}

fun with_commit(length: u64): Option<Source> {
    source::some(text(1), bytes(length), text(0), text(1), BYTES_32)
}

fun with_folder(folder: String): Option<Source> {
    source::some(text(1), bytes(20), folder, text(1), BYTES_32)
}

fun with_version(version: String): Option<Source> {
    source::some(text(1), bytes(20), text(0), version, BYTES_32)
}

fun config(): (EnclaveCap<T>, EnclaveConfig<T>) {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let config = cap.new_enclave_config(b"test".to_string(), PCR, PCR, PCR, source(b"1"), &mut ctx);
    (cap, config)
}

fun end(cap: EnclaveCap<T>, config: EnclaveConfig<T>) {
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
}

/// Asserts that the last `PcrsUpdated` has this source and this end of an overlap.
fun assert_announced(config: &EnclaveConfig<T>, source: Option<Source>, overlap_until_ms: Option<u64>) {
    let fields = UpdatedFields {
        config_id: object::id(config),
        pcrs: pcrs::new(PCR, PCR, PCR),
        source,
        config_version: config.current_config_version(),
        overlap_until_ms,
    };
    let events = event::events_by_type<PcrsUpdated<T>>();
    assert_eq!(bcs::to_bytes(&events[events.length() - 1]), bcs::to_bytes(&fields));
}

// === Bounds of the fields ===

#[test]
fun each_getter_returns_its_field() {
    let source = source(b"1.2.3").destroy_some();
    assert_eq!(*source.url(), URL.to_string());
    assert_eq!(*source.commit(), bytes(20));
    assert_eq!(*source.folder(), b"apps/weather".to_string());
    assert_eq!(*source.framework_version(), b"1.2.3".to_string());
    assert_eq!(*source.measurements_sha256(), BYTES_32);
}

#[test]
fun fields_of_the_minimum_and_maximum_length_are_allowed() {
    source::some(text(1), bytes(20), text(0), text(1), BYTES_32);
    source::some(text(200), bytes(32), text(100), text(50), BYTES_32);
    with_url(b" ~".to_string());
    assert_eq!(source::none(), option::none());
}

#[test, expected_failure(abort_code = source::ESourceUrl)]
fun an_empty_url_is_refused() {
    with_url(text(0));
}

#[test, expected_failure(abort_code = source::ESourceUrl)]
fun a_url_of_201_characters_is_refused() {
    with_url(text(201));
}

#[test, expected_failure(abort_code = source::ESourceUrl)]
fun a_url_with_a_control_character_is_refused() {
    with_url(b"a\x1f".to_string());
}

#[test, expected_failure(abort_code = source::ESourceUrl)]
fun a_url_with_a_delete_character_is_refused() {
    with_url(b"\x7fa".to_string());
}

#[test, expected_failure(abort_code = source::ESourceUrl)]
fun a_url_beyond_ascii_is_refused() {
    with_url(x"c3bc".to_string());
}

#[test, expected_failure(abort_code = source::ECommitLength)]
fun a_commit_of_19_bytes_is_refused() {
    with_commit(19);
}

#[test, expected_failure(abort_code = source::ECommitLength)]
fun a_commit_of_21_bytes_is_refused() {
    with_commit(21);
}

#[test, expected_failure(abort_code = source::ECommitLength)]
fun a_commit_of_33_bytes_is_refused() {
    with_commit(33);
}

#[test, expected_failure(abort_code = source::EFolder)]
fun a_folder_of_101_characters_is_refused() {
    with_folder(text(101));
}

#[test, expected_failure(abort_code = source::EFolder)]
fun a_folder_with_a_line_feed_is_refused() {
    with_folder(b"a\n".to_string());
}

#[test, expected_failure(abort_code = source::EFrameworkVersion)]
fun an_empty_version_is_refused() {
    with_version(text(0));
}

#[test, expected_failure(abort_code = source::EFrameworkVersion)]
fun a_version_of_51_characters_is_refused() {
    with_version(text(51));
}

#[test, expected_failure(abort_code = source::EFrameworkVersion)]
fun a_version_with_a_line_feed_is_refused() {
    with_version(b"1\n".to_string());
}

#[test, expected_failure(abort_code = source::EMeasurementsLength)]
fun a_digest_of_31_bytes_is_refused() {
    source::some(text(1), bytes(20), text(0), text(1), bytes(31));
}

#[test, expected_failure(abort_code = source::EMeasurementsLength)]
fun a_digest_of_33_bytes_is_refused() {
    source::some(text(1), bytes(20), text(0), text(1), bytes(33));
}

// === The source of a config ===

#[test]
fun a_new_config_has_and_announces_its_source() {
    let (cap, config) = config();
    assert_eq!(config.source(), source(b"1"));
    let fields = CreatedFields {
        config_id: object::id(&config),
        capability_id: object::id(&cap),
        name: b"test".to_string(),
        pcrs: pcrs::new(PCR, PCR, PCR),
        source: source(b"1"),
        config_version: 0,
    };
    let created = event::events_by_type<EnclaveConfigCreated<T>>();
    assert_eq!(bcs::to_bytes(&created), bcs::to_bytes(&vector[fields]));
    end(cap, config);
}

#[test]
fun update_image_replaces_the_source_and_update_pcrs_removes_it() {
    let (cap, mut config) = config();
    config.update_image(&cap, PCR, PCR, PCR, source(b"2"));
    assert_eq!(config.source(), source(b"2"));
    assert_eq!(config.current_config_version(), 1);
    assert_announced(&config, source(b"2"), option::none());
    config.update_pcrs(&cap, PCR, PCR, PCR);
    assert_eq!(config.source(), option::none());
    assert_announced(&config, option::none(), option::none());
    end(cap, config);
}

#[test]
fun an_overlap_replaces_the_source_and_its_end_keeps_it() {
    let (cap, mut config) = config();
    let clock = clock_tests::at(1);
    config.begin_overlap(&cap, PCR, PCR, PCR, source(b"2"), 2, &clock);
    assert_eq!(config.source(), source(b"2"));
    assert_announced(&config, source(b"2"), option::some(2));
    config.end_overlap(&cap);
    assert_eq!(config.source(), source(b"2"));
    config.begin_overlap(&cap, PCR, PCR, PCR, option::none(), 2, &clock);
    assert_eq!(config.source(), option::none());
    clock.destroy_for_testing();
    end(cap, config);
}

#[test]
fun a_rotation_replaces_the_source() {
    let (cap, mut config) = config();
    let rotation = config.begin_rotation(&cap, PCR, PCR, PCR, source(b"2"));
    assert_announced(&config, source(b"2"), option::none());
    let attested = attested::new(pcrs::new(PCR, PCR, PCR), KEY, 0);
    rotation.successor_of(&mut config, &cap, attested).destroy_enclave_for_testing();
    assert_eq!(config.source(), source(b"2"));
    end(cap, config);
}

#[test, expected_failure(abort_code = enclave::EInvalidCap)]
fun another_capability_cannot_set_a_source() {
    let (_cap, mut config) = config();
    let other_cap = enclave::new_cap_for_testing<T>(&mut tx_context::new_from_hint(@0xB, 1, 0, 0, 0));
    config.update_image(&other_cap, PCR, PCR, PCR, source(b"2"));
    abort
}

#[test, expected_failure(abort_code = enclave::ERetired)]
fun a_retired_config_keeps_its_source() {
    let (cap, mut config) = config();
    config.retire(&cap);
    config.update_image(&cap, PCR, PCR, PCR, source(b"2"));
    abort
}
