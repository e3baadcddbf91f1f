/// Values that a registered enclave signed.
module price::price;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use price::signed::{Self, Quote};
use std::string::String;
use sui::clock::Clock;

const MAX_AGE_MS: u64 = 60 * 1000;

/// The one-time witness of this module, and the type that its enclaves are registered for.
public struct PRICE has drop {}

fun init(otw: PRICE, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}

/// Returns the value that an enclave signed at most a minute ago. Aborts as `enclave::assert_signed` does.
public fun new(
    pair: String,
    cents: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    enclave: &Enclave<PRICE>,
    config: &EnclaveConfig<PRICE>,
    clock: &Clock,
): Quote {
    let value = signed::new_quote(pair, cents);
    let intent = signed::intent_of_quote();
    enclave.assert_signed(config, clock, MAX_AGE_MS, intent, timestamp_ms, value, sig);
    value
}
