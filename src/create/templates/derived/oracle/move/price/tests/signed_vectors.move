// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:561bef513d56056f9ca18fb41b5dbf9eb91545c69a02d77cd82d68726a1b4569
/// Checks that Move encodes the signed types to the same bytes as vectors.json.
#[test_only]
module price::signed_vectors;

use enclave::enclave;
use price::signed;
use std::unit_test::assert_eq;

#[test]
fun quote_zeros() {
    let value = signed::new_quote(
        x"".to_string(),
        0,
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_quote(), 0, value),
        x"000000000000000000000000000000000000",
    );
}

#[test]
fun quote_different() {
    let value = signed::new_quote(
        x"5ac3bc72696368203120e69db1e4baac20f09f8ca4".to_string(),
        2,
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_quote(), 1700000000000, value),
        x"000068e5cf8b010000155ac3bc72696368203120e69db1e4baac20f09f8ca40200000000000000",
    );
}

#[test]
fun quote_largest() {
    let value = signed::new_quote(
        x"61616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161".to_string(),
        18446744073709551615,
    );
    assert_eq!(
        enclave::signed_bytes_for_testing(signed::intent_of_quote(), 18446744073709551615, value),
        x"00ffffffffffffffff820161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161ffffffffffffffff",
    );
}
