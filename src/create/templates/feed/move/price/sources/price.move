/// A feed of SUI in US dollars, whose values registered enclaves sign.
module price::price;

use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig};
use feed::feed::{Self, Feed};
use price::signed;
use std::string::String;
use sui::clock::Clock;

#[error(code = 0)]
const EOtherQuote: vector<u8> = b"The enclave signed another symbol or number of decimals";

const DECIMALS: u8 = 6;
/// A tenth of a cent.
const MIN_VALUE: u64 = 1000;
/// A thousand dollars.
const MAX_VALUE: u64 = 1_000_000_000;
const MAX_AGE_MS: u64 = 3 * 60 * 1000;
const MIN_INTERVAL_MS: u64 = 10 * 1000;
/// Half a percent. A value that has moved less is written only when the heartbeat is due.
const MIN_MOVE_BPS: u64 = 50;
const HEARTBEAT_MS: u64 = 60 * 1000;

/// The one-time witness of this module, and the type that its enclaves and its feed are for.
public struct PRICE has drop {}

fun init(otw: PRICE, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}

/// Creates and shares a feed of the values that enclaves of this config sign. Contracts that read the feed pin its id.
public fun open(cap: &EnclaveCap<PRICE>, config: &EnclaveConfig<PRICE>, ctx: &mut TxContext) {
    let rules = feed::new_rules(
        signed::intent_of_quote(),
        b"SUI/USD".to_string(),
        DECIMALS,
        MIN_VALUE,
        MAX_VALUE,
        MAX_AGE_MS,
        MIN_INTERVAL_MS,
        MIN_MOVE_BPS,
        HEARTBEAT_MS,
        1,
        vector[object::id(config)],
    );
    feed::create(cap, rules, ctx)
}

/// Writes a quote that an enclave signed. The parameters have the order in which `submit` and the poster pass them.
/// Aborts with `EOtherQuote`, or as `feed::update` does.
public fun update(
    symbol: String,
    decimals: u8,
    value: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    feed: &mut Feed<PRICE>,
    enclave: &Enclave<PRICE>,
    config: &EnclaveConfig<PRICE>,
    clock: &Clock,
) {
    let rules = feed.rules();
    assert!(symbol == *rules.symbol() && decimals == rules.decimals(), EOtherQuote);
    feed.update(enclave, config, clock, timestamp_ms, value, sig)
}
