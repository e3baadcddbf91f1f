// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:08f4ea22a768a3d97a696809db3a8685439cfa3d3966e603e20d4b4d59817490
/// The types that the application signs, with the same fields in the same order as in its app.ts.
module price::signed;

use std::string::String;

public use fun quote_symbol as Quote.symbol;
public use fun quote_decimals as Quote.decimals;
public use fun quote_value as Quote.value;

/// The intent code of `Quote`.
const QUOTE_INTENT: u8 = 0;

public struct Quote has copy, drop {
    symbol: String,
    decimals: u8,
    value: u64,
}

/// Returns the intent code, which `enclave::assert_signed` requires.
public fun intent_of_quote(): u8 {
    QUOTE_INTENT
}

/// Creates a value. No signature has been verified yet.
public(package) fun new_quote(symbol: String, decimals: u8, value: u64): Quote {
    Quote { symbol, decimals, value }
}

public fun quote_symbol(self: &Quote): &String {
    &self.symbol
}

public fun quote_decimals(self: &Quote): u8 {
    self.decimals
}

public fun quote_value(self: &Quote): u64 {
    self.value
}
