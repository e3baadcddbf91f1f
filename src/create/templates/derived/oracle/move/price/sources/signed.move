// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:a0310f58646dcf3dd5ca08e6853712100e822d3596cf165b81d5f90b9ae633fa
/// The types that the application signs, with the same fields in the same order as in its app.ts.
module price::signed;

use std::string::String;

public use fun quote_pair as Quote.pair;
public use fun quote_cents as Quote.cents;

/// The intent code of `Quote`.
const QUOTE_INTENT: u8 = 0;

public struct Quote has copy, drop {
    pair: String,
    cents: u64,
}

/// Returns the intent code, which `enclave::assert_signed` requires.
public fun intent_of_quote(): u8 {
    QUOTE_INTENT
}

/// Creates a value. No signature has been verified yet.
public(package) fun new_quote(pair: String, cents: u64): Quote {
    Quote { pair, cents }
}

public fun quote_pair(self: &Quote): &String {
    &self.pair
}

public fun quote_cents(self: &Quote): u64 {
    self.cents
}
