/// Records of the answers of an API to prompts, which registered enclaves signed. A record proves that the API gave
/// this answer. It does not prove which model ran, nor that the answer is right.
module price::price;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use price::signed;
use std::string::String;
use sui::clock::Clock;

const MAX_AGE_MS: u64 = 5 * 60 * 1000;

/// The one-time witness of this module, and the type that its enclaves are registered for.
public struct PRICE has drop {}

/// A signed completion on chain. Anyone who has the prompt or the answer, with its salt, can prove that it was hashed.
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

/// Creates a record of a completion that an enclave signed at most five minutes ago. Aborts as `enclave::assert_signed`
/// does. Anyone may submit the same completion several times.
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

/// Returns the SHA-256 of a salt of 32 bytes followed by the answer.
public fun answer_hash(record: &Record): vector<u8> {
    record.answer_hash
}

/// Returns the SHA-256 of another salt of 32 bytes followed by the prompt.
public fun prompt_hash(record: &Record): vector<u8> {
    record.prompt_hash
}

/// Returns the model id that the API reported.
public fun model(record: &Record): &String {
    &record.model
}

/// Returns the time of the answer, in milliseconds since the Unix epoch.
public fun timestamp_ms(record: &Record): u64 {
    record.timestamp_ms
}
