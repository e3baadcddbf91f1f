// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:a712cb9264843b9b720237b8d56ad3954c1da464e48fb7bf11444c80e1472028
/// What the application signs: the same fields, in the same order, as in its app.ts.
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

/// For `enclave::assert_signed`.
public fun intent_of_quote(): u8 {
    QUOTE_INTENT
}

/// A value that nobody has verified yet.
public(package) fun new_quote(pair: String, cents: u64): Quote {
    Quote { pair, cents }
}

public fun quote_pair(self: &Quote): &String {
    &self.pair
}

public fun quote_cents(self: &Quote): u64 {
    self.cents
}
