// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:156a4e5573b62b26064ce6ff8942064f334f9af7f6080a1bb33a7fb4e4ef518a
/// What the application signs: the same fields, in the same order, as in its app.ts.
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

/// For `enclave::assert_signed`.
public fun intent_of_quote(): u8 {
    QUOTE_INTENT
}

/// A value that nobody has verified yet.
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
