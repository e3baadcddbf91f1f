// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:bce5589bc64dc9e1e0478a6429fc4c01451073f3df25b044f4322151729f3efa
/// Checks that Move encodes the signed types to the same bytes as vectors.json.
#[test_only]
module price::signed_vectors;

use enclave::enclave;
use price::signed;
use std::unit_test::assert_eq;

#[test]
fun temperature_zeros() {
    let value = signed::new_temperature(
        x"".to_string(),
        0,
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_temperature(), 0, value),
        x"000000000000000000000000000000000000",
    );
}

#[test]
fun temperature_different() {
    let value = signed::new_temperature(
        x"5ac3bc72696368203120e69db1e4baac20f09f8ca4".to_string(),
        2,
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_temperature(), 1700000000000, value),
        x"000068e5cf8b010000155ac3bc72696368203120e69db1e4baac20f09f8ca40200000000000000",
    );
}

#[test]
fun temperature_largest() {
    let value = signed::new_temperature(
        x"61616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161".to_string(),
        18446744073709551615,
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_temperature(), 18446744073709551615, value),
        x"00ffffffffffffffff820161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161ffffffffffffffff",
    );
}
