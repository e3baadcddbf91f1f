// Generated from test/vectors by test/move/vectors.ts: `npx vitest run test/move -u` regenerates it.
#[test_only]
module app::vectors;

use app::weather;
use enclave::enclave;
use std::string::String;
use std::unit_test::assert_eq;

// The parts of an answer that a production enclave signed.
public fun public_key(): vector<u8> {
    x"e8e62201dbe293b703c759f653107acbc2c911fa1d2e66f2c747bec95971a2af"
}

public fun intent(): u8 {
    0
}

public fun timestamp_ms(): u64 {
    1744683300000
}

public fun location(): String {
    x"53616e204672616e636973636f".to_string()
}

public fun temperature(): u64 {
    13
}

public fun signature(): vector<u8> {
    x"77b6d8be225440d00f3d6eb52e91076a8927cebfb520e58c19daf31ecf06b3798ec3d3ce9630a9eceee46d24f057794a60dd781657cb06d952269cfc5ae19500"
}

// The parts of an award that counts once, signed by two enclaves.
public fun once_intent(): u8 {
    3
}

public fun once_timestamp_ms(): u64 {
    1744683300000
}

public fun nonce(): vector<u8> {
    x"00112233445566778899aabbccddeeff"
}

public fun recipient(): address {
    @0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
}

public fun points(): u64 {
    250
}

public fun once_bytes(): vector<u8> {
    x"03a0743a37960100001000112233445566778899aabbccddeeffa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1fa00000000000000"
}

public fun once_key(): vector<u8> {
    x"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
}

public fun once_signature(): vector<u8> {
    x"c68bc7d04a023866d985f0e46ef965fbd01e592111a5e17a45d307ccb0686afdead41362d5654a76159e6ee229775dd15e6ca105ac48e8022227d41d7a5d5207"
}

public fun other_once_key(): vector<u8> {
    x"1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca"
}

public fun other_once_signature(): vector<u8> {
    x"4f19e02c3f188b799a9d622bc205d3f67a74cb07f8fe6dbe0e8012c5f63553e3b9731ce6b3017a2b7576a17625dc29c116014d4794262c5b89a82eb93e6beb03"
}

// The parts of a reading below 0 °C in tenths of a degree, signed by an enclave with another key.
public fun temperature_key(): vector<u8> {
    x"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
}

public fun temperature_location(): String {
    x"4f736c6f".to_string()
}

public fun tenths_plus_100000(): u64 {
    99996
}

public fun temperature_timestamp_ms(): u64 {
    1744683300000
}

public fun temperature_signature(): vector<u8> {
    x"e90455260d594e7266b30c4f66d5cc75453e6859ee8b0d2f6a99926663784cb3cb0cdab9f4c72a57b27c53926407b6a3e975381b94eb29b5db05527d127b380d"
}

#[test]
fun bcs_of_san_francisco() {
    let response = weather::new_response_for_testing(x"53616e204672616e636973636f".to_string(), 13);
    assert_eq!(
        enclave::signed_bytes_for_testing(0, 1744038900000, response),
        x"0020b1d110960100000d53616e204672616e636973636f0d00000000000000",
    );
}

#[test]
fun bcs_of_zeros_and_an_empty_text() {
    let response = weather::new_response_for_testing(x"".to_string(), 0);
    assert_eq!(
        enclave::signed_bytes_for_testing(0, 0, response),
        x"000000000000000000000000000000000000",
    );
}

#[test]
fun bcs_of_the_largest_values() {
    let response = weather::new_response_for_testing(x"51".to_string(), 18446744073709551615);
    assert_eq!(
        enclave::signed_bytes_for_testing(255, 18446744073709551615, response),
        x"ffffffffffffffffff0151ffffffffffffffff",
    );
}

#[test]
fun bcs_of_beyond_exact_numbers() {
    let response = weather::new_response_for_testing(x"51".to_string(), 9007199254740993);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 9007199254740993, response),
        x"01010000000000200001510100000000002000",
    );
}

#[test]
fun bcs_of_a_text_beyond_ascii() {
    let response = weather::new_response_for_testing(x"5ac3bc7269636820e69db1e4baac20f09f8ca4".to_string(), 2);
    assert_eq!(
        enclave::signed_bytes_for_testing(0, 1, response),
        x"000100000000000000135ac3bc7269636820e69db1e4baac20f09f8ca40200000000000000",
    );
}

#[test]
fun bcs_of_a_text_of_127_bytes() {
    let response = weather::new_response_for_testing(x"61616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161".to_string(), 2);
    assert_eq!(
        enclave::signed_bytes_for_testing(0, 1, response),
        x"0001000000000000007f616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161610200000000000000",
    );
}

#[test]
fun bcs_of_a_text_of_128_bytes() {
    let response = weather::new_response_for_testing(x"6161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161".to_string(), 2);
    assert_eq!(
        enclave::signed_bytes_for_testing(0, 1, response),
        x"000100000000000000800161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161610200000000000000",
    );
}

#[test]
fun bcs_of_temperature_below_zero() {
    let response = weather::new_temperature_for_testing(x"4f736c6f".to_string(), 99996);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 1744683300000, response),
        x"01a0743a3796010000044f736c6f9c86010000000000",
    );
}

#[test]
fun bcs_of_temperature_deep_frost() {
    let response = weather::new_temperature_for_testing(x"4f796d79616b6f6e".to_string(), 99323);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 1744683300000, response),
        x"01a0743a3796010000084f796d79616b6f6efb83010000000000",
    );
}

#[test]
fun bcs_of_temperature_zero() {
    let response = weather::new_temperature_for_testing(x"5ac3bc72696368".to_string(), 100000);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 1744683300000, response),
        x"01a0743a3796010000075ac3bc72696368a086010000000000",
    );
}

#[test]
fun bcs_of_temperature_warm() {
    let response = weather::new_temperature_for_testing(x"53616e204672616e636973636f".to_string(), 100139);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 1744683300000, response),
        x"01a0743a37960100000d53616e204672616e636973636f2b87010000000000",
    );
}

#[test]
fun bcs_of_temperature_the_coldest() {
    let response = weather::new_temperature_for_testing(x"51".to_string(), 99000);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 1744683300000, response),
        x"01a0743a37960100000151b882010000000000",
    );
}

#[test]
fun bcs_of_temperature_the_warmest() {
    let response = weather::new_temperature_for_testing(x"51".to_string(), 101000);
    assert_eq!(
        enclave::signed_bytes_for_testing(1, 1744683300000, response),
        x"01a0743a37960100000151888a010000000000",
    );
}
