/// Answers that count once, for actions that must not be repeated: a mint, a payment, a prize.
///
/// An application keeps a `Claims` inside a shared object of its own, so that only its functions can claim. The server
/// signs a nonce as the first field of the payload: bytes that name the action, such as the id of an order.
///
/// A claim is kept until its answer is too old to be submitted. Then `remove_expired` can remove it; its caller gets
/// the storage rebate. An application that signs a nonce again at a later time must not offer `remove_expired`: without
/// the claim, the later answer is a new one.
module enclave::once;

use enclave::enclave::{Enclave, EnclaveConfig};
use sui::clock::Clock;
use sui::table::{Self, Table};

// Clients tell errors apart by these codes, which never change, or by the names.

#[error(code = 1)]
const EAlreadyClaimed: vector<u8> = b"An answer with this nonce was claimed before";
#[error(code = 2)]
const ENonceLength: vector<u8> = b"A nonce is 16 to 64 bytes";
#[error(code = 3)]
const ENotClaimed: vector<u8> = b"There is no claim of this nonce";
#[error(code = 4)]
const ENotExpired: vector<u8> = b"The claim is kept while its answer could be submitted again";

/// Shorter nonces could collide by chance.
const MIN_NONCE_BYTES: u64 = 16;
const MAX_NONCE_BYTES: u64 = 64;

/// The answers that an application `T` has used, and the maximum age at which it accepts one. The age never changes:
/// with a higher age, removed answers would be accepted again.
public struct Claims<phantom T> has store {
    max_age_ms: u64,
    /// The signed timestamp of each answer.
    timestamps: Table<Claim, u64>,
}

/// A claimed answer. It names neither the enclave that signed nor a config of `T`: an answer counts only once, even if its
/// enclave's key is registered under several configs.
public struct Claim has copy, drop, store {
    intent: u8,
    nonce: vector<u8>,
}

/// The signed payload: the nonce, then the fields of `P`.
public struct Once<P: drop> has copy, drop {
    nonce: vector<u8>,
    payload: P,
}

/// Returns an empty `Claims`. `max_age_ms` is the parameter of `enclave::assert_signed`. Have one `Claims` for each action:
/// a second `Claims` would accept the same answers again.
public fun new<T>(max_age_ms: u64, ctx: &mut TxContext): Claims<T> {
    Claims { max_age_ms, timestamps: table::new(ctx) }
}

/// Verifies an answer with `enclave::assert_signed`, and claims it. The signed payload must start with this nonce (in BCS a
/// vector of bytes). Aborts if an answer with the same intent and nonce is claimed already, under any config of `T`.
public fun claim<T, P: drop>(
    claims: &mut Claims<T>,
    enclave: &Enclave<T>,
    config: &EnclaveConfig<T>,
    clock: &Clock,
    intent: u8,
    timestamp_ms: u64,
    nonce: vector<u8>,
    payload: P,
    signature: &vector<u8>,
) {
    let length = nonce.length();
    assert!(length >= MIN_NONCE_BYTES && length <= MAX_NONCE_BYTES, ENonceLength);
    let signed = Once { nonce, payload };
    enclave.assert_signed(config, clock, claims.max_age_ms, intent, timestamp_ms, signed, signature);
    let claim = Claim { intent, nonce };
    assert!(!claims.timestamps.contains(claim), EAlreadyClaimed);
    claims.timestamps.add(claim, timestamp_ms);
}

/// Removes a claim whose answer `claim` would refuse as too old.
public fun remove_expired<T>(claims: &mut Claims<T>, intent: u8, nonce: vector<u8>, clock: &Clock) {
    let claim = Claim { intent, nonce };
    assert!(claims.timestamps.contains(claim), ENotClaimed);
    let timestamp_ms = claims.timestamps.remove(claim);
    let now = clock.timestamp_ms();
    assert!(now > timestamp_ms && now - timestamp_ms > claims.max_age_ms, ENotExpired);
}

/// Returns whether an answer with this nonce is claimed.
public fun is_claimed<T>(claims: &Claims<T>, intent: u8, nonce: vector<u8>): bool {
    claims.timestamps.contains(Claim { intent, nonce })
}

/// Returns the number of claims that are kept.
public fun length<T>(claims: &Claims<T>): u64 {
    claims.timestamps.length()
}

/// Returns the maximum age of an answer, in milliseconds.
public fun max_age_ms<T>(claims: &Claims<T>): u64 {
    claims.max_age_ms
}

/// Destroys a `Claims` from which all claims have been removed.
public fun destroy_empty<T>(claims: Claims<T>) {
    let Claims { timestamps, .. } = claims;
    timestamps.destroy_empty();
}
