#[test_only]
module enclave::pcrs_tests;

use enclave::pcrs;
use std::unit_test::assert_eq;

const PCR0: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const PCR1: vector<u8> =
    x"b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";
const PCR2: vector<u8> =
    x"c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2";
const ZERO: vector<u8> =
    x"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
/// The lengths of SHA-256 and SHA-512: a document may have such registers, but a Nitro Enclave's never does.
const BYTES_32: vector<u8> = x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
const BYTES_64: vector<u8> =
    x"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

#[test]
fun three_registers_of_48_bytes_identify_an_image() {
    let pcrs = pcrs::new(PCR0, PCR1, PCR2);
    assert_eq!(*pcrs.pcr0(), PCR0);
    assert_eq!(*pcrs.pcr1(), PCR1);
    assert_eq!(*pcrs.pcr2(), PCR2);
}

#[test]
fun pcr1_and_pcr2_may_be_all_zero() {
    assert!(pcrs::new(PCR0, ZERO, ZERO) != pcrs::new(PCR0, PCR1, PCR2));
}

#[test, expected_failure(abort_code = pcrs::EPcrMissing)]
fun a_missing_pcr0_is_refused() {
    pcrs::new(x"", PCR1, PCR2);
}

#[test, expected_failure(abort_code = pcrs::EPcrMissing)]
fun a_missing_pcr1_is_refused() {
    pcrs::new(PCR0, x"", PCR2);
}

#[test, expected_failure(abort_code = pcrs::EPcrMissing)]
fun a_missing_pcr2_is_refused() {
    pcrs::new(PCR0, PCR1, x"");
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_pcr0_of_32_bytes_is_refused() {
    pcrs::new(BYTES_32, PCR1, PCR2);
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_pcr1_of_32_bytes_is_refused() {
    pcrs::new(PCR0, BYTES_32, PCR2);
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_pcr2_of_32_bytes_is_refused() {
    pcrs::new(PCR0, PCR1, BYTES_32);
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_pcr0_of_64_bytes_is_refused() {
    pcrs::new(BYTES_64, PCR1, PCR2);
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_pcr1_of_64_bytes_is_refused() {
    pcrs::new(PCR0, BYTES_64, PCR2);
}

#[test, expected_failure(abort_code = pcrs::EPcrLength)]
fun a_pcr2_of_64_bytes_is_refused() {
    pcrs::new(PCR0, PCR1, BYTES_64);
}

#[test, expected_failure(abort_code = pcrs::EDebugPcrs)]
fun registers_of_a_debug_enclave_are_refused() {
    pcrs::new(ZERO, ZERO, ZERO);
}

#[test, expected_failure(abort_code = pcrs::EDebugPcrs)]
fun a_pcr0_of_zeros_is_refused() {
    pcrs::new(ZERO, PCR1, PCR2);
}
