/// Values that a registered enclave signed.
module price::price;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use std::string::String;
use sui::clock::Clock;

const PRICE_INTENT: u8 = 0;
const MAX_AGE_MS: u64 = 60 * 1000;

/// The one-time witness of this module, and the type that its enclaves are registered for.
public struct PRICE has drop {}

/// What the server signs: the same fields in the same order.
public struct Price has copy, drop {
    pair: String,
    cents: u64,
}

fun init(otw: PRICE, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}

/// The value that an enclave signed at most a minute ago; aborts as `enclave::assert_signed` does.
public fun new(
    pair: String,
    cents: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    enclave: &Enclave<PRICE>,
    config: &EnclaveConfig<PRICE>,
    clock: &Clock,
): Price {
    let value = Price { pair, cents };
    enclave.assert_signed(config, clock, MAX_AGE_MS, PRICE_INTENT, timestamp_ms, value, sig);
    value
}

/// In cents.
public fun cents(value: &Price): u64 {
    value.cents
}

#[test_only]
public fun new_for_testing(pair: String, cents: u64): Price {
    Price { pair, cents }
}
