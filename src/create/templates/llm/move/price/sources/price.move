/// What an API answered to a prompt, as a registered enclave signed it. It proves what the API answered, not which
/// model ran, nor that the answer is right.
module price::price;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use price::signed;
use std::string::String;
use sui::clock::Clock;

const MAX_AGE_MS: u64 = 5 * 60 * 1000;

/// The one-time witness of this module, and the type that its enclaves are registered for.
public struct PRICE has drop {}

/// A signed completion on chain. Who has a text and its salt can prove that it is the one.
public struct Record has key, store {
    id: UID,
    model: String,
    prompt_hash: vector<u8>,
    answer_hash: vector<u8>,
    finish_reason: String,
    timestamp_ms: u64,
}

fun init(otw: PRICE, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}

/// Keeps a completion that an enclave signed at most five minutes ago; aborts as `enclave::assert_signed` does. Anyone
/// may submit it, several times.
public fun new(
    model: String,
    prompt_hash: vector<u8>,
    answer_hash: vector<u8>,
    finish_reason: String,
    timestamp_ms: u64,
    sig: &vector<u8>,
    enclave: &Enclave<PRICE>,
    config: &EnclaveConfig<PRICE>,
    clock: &Clock,
    ctx: &mut TxContext,
): Record {
    let completion = signed::new_completion(model, prompt_hash, answer_hash, finish_reason);
    let intent = signed::intent_of_completion();
    enclave.assert_signed(config, clock, MAX_AGE_MS, intent, timestamp_ms, completion, sig);
    Record { id: object::new(ctx), model, prompt_hash, answer_hash, finish_reason, timestamp_ms }
}

/// SHA-256 over a salt of 32 bytes and the text of the answer.
public fun answer_hash(record: &Record): vector<u8> {
    record.answer_hash
}

/// SHA-256 over another salt and the text of the prompt.
public fun prompt_hash(record: &Record): vector<u8> {
    record.prompt_hash
}

/// The model id that the API reported.
public fun model(record: &Record): &String {
    &record.model
}

/// Time of the answer, in milliseconds since the Unix epoch.
public fun timestamp_ms(record: &Record): u64 {
    record.timestamp_ms
}
