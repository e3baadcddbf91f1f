// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:00b774c19afd6318d22f39641453e1b2181197cf8e7b240e76ce7d433c8cd7d2
/// The types that the application signs, with the same fields in the same order as in its app.ts.
module price::signed;

use std::string::String;

public use fun temperature_place as Temperature.place;
public use fun temperature_tenths_plus_100000 as Temperature.tenths_plus_100000;

/// The intent code of `Temperature`.
const TEMPERATURE_INTENT: u8 = 0;

public struct Temperature has copy, drop {
    place: String,
    tenths_plus_100000: u64,
}

/// Returns the intent code, which `enclave::assert_signed` requires.
public fun intent_of_temperature(): u8 {
    TEMPERATURE_INTENT
}

/// Creates a value. No signature has been verified yet.
public(package) fun new_temperature(place: String, tenths_plus_100000: u64): Temperature {
    Temperature { place, tenths_plus_100000 }
}

public fun temperature_place(self: &Temperature): &String {
    &self.place
}

public fun temperature_tenths_plus_100000(self: &Temperature): u64 {
    self.tenths_plus_100000
}
