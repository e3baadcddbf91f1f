// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:6e6b86656f9764103020d70a23e9fc58ec92ba75b04ef600a9acf24aace5d9ec
/// What the application signs: the same fields, in the same order, as in its app.ts.
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

/// For `enclave::assert_signed`.
public fun intent_of_temperature(): u8 {
    TEMPERATURE_INTENT
}

/// A value that nobody has verified yet.
public(package) fun new_temperature(place: String, tenths_plus_100000: u64): Temperature {
    Temperature { place, tenths_plus_100000 }
}

public fun temperature_place(self: &Temperature): &String {
    &self.place
}

public fun temperature_tenths_plus_100000(self: &Temperature): u64 {
    self.tenths_plus_100000
}
