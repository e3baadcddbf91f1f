/// Mints objects with the temperatures that registered enclaves have signed.
module price::price;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use price::signed;
use std::string::String;
use sui::clock::Clock;

/// The application signs readings of the past hour; this leaves half an hour to submit one.
const MAX_AGE_MS: u64 = 90 * 60 * 1000;

/// The one-time witness of this module, and the type that its enclaves are registered for.
public struct PRICE has drop {}

/// A signed reading on chain.
public struct Reading has key, store {
    id: UID,
    place: String,
    tenths_plus_100000: u64,
    timestamp_ms: u64,
}

fun init(otw: PRICE, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}

/// Mints a reading that an enclave signed. Aborts as `enclave::assert_signed` does. Anyone may submit the same reading
/// several times, until it is too old.
public fun new(
    place: String,
    tenths_plus_100000: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    enclave: &Enclave<PRICE>,
    config: &EnclaveConfig<PRICE>,
    clock: &Clock,
    ctx: &mut TxContext,
): Reading {
    let temperature = signed::new_temperature(place, tenths_plus_100000);
    let intent = signed::intent_of_temperature();
    enclave.assert_signed(config, clock, MAX_AGE_MS, intent, timestamp_ms, temperature, sig);
    Reading { id: object::new(ctx), place, tenths_plus_100000, timestamp_ms }
}

/// Returns the place, as requested.
public fun place(reading: &Reading): &String {
    &reading.place
}

/// Returns tenths of a degree Celsius, plus 100000: 99996 is -0.4 °C.
public fun tenths_plus_100000(reading: &Reading): u64 {
    reading.tenths_plus_100000
}

/// Returns the time of the reading, in milliseconds since the Unix epoch.
public fun timestamp_ms(reading: &Reading): u64 {
    reading.timestamp_ms
}
