// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:f4ab7db3ee977246b15e938b0f774f4a8b2770095041d5603f65e2f1ac1f76e0
/// Checks that Move encodes the signed types to the same bytes as vectors.json.
#[test_only]
module price::signed_vectors;

use enclave::enclave;
use price::signed;
use std::unit_test::assert_eq;

#[test]
fun completion_zeros() {
    let value = signed::new_completion(
        x"".to_string(),
        x"",
        x"",
        x"".to_string(),
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_completion(), 0, value),
        x"00000000000000000000000000",
    );
}

#[test]
fun completion_different() {
    let value = signed::new_completion(
        x"5ac3bc72696368203120e69db1e4baac20f09f8ca4".to_string(),
        x"0200",
        x"0300",
        x"5ac3bc72696368203420e69db1e4baac20f09f8ca4".to_string(),
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_completion(), 1700000000000, value),
        x"000068e5cf8b010000155ac3bc72696368203120e69db1e4baac20f09f8ca4020200020300155ac3bc72696368203420e69db1e4baac20f09f8ca4",
    );
}

#[test]
fun completion_largest() {
    let value = signed::new_completion(
        x"61616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161".to_string(),
        x"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        x"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        x"61616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161".to_string(),
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_completion(), 18446744073709551615, value),
        x"00ffffffffffffffff8201616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161618201ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff8201ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff820161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161",
    );
}
