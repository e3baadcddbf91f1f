/// Registers the AWS Nitro Enclaves that a contract trusts, and verifies their signatures.
///
/// An `EnclaveConfig` names the trusted image by its registers PCR0 to PCR2, with a version that increases when they
/// change. An `Enclave` is a running instance of that image, identified by its attested public key. The holder of the
/// `EnclaveCap` controls both; anyone can read them, verify signatures with them and destroy stale enclaves.
///
/// Contracts verify an answer with `assert_signed`. An answer is a statement, not a command: while it is fresh, anyone
/// may submit it, and more than once. If an answer triggers something that must happen only once, or for one account
/// only, have the enclave sign a nonce of the request or the sender's address in the payload, and check it.
module enclave::enclave;

use enclave::pcrs::{Self, Pcrs};
use std::bcs;
use std::string::String;
use sui::clock::Clock;
use sui::derived_object;
use sui::ed25519;
use sui::event;
use sui::nitro_attestation::NitroAttestationDocument;

// The abort codes of these errors contain the source line: match them by name, never by number.

#[error]
const ENotOneTimeWitness: vector<u8> = b"A capability takes its module's one-time witness";
#[error]
const EInvalidCap: vector<u8> = b"The capability is not the one that made this config";
#[error]
const EWrongConfig: vector<u8> = b"The enclave was registered under another config";
#[error]
const EInvalidPCRs: vector<u8> = b"The enclave runs another image than the config allows";
#[error]
const EInvalidPublicKey: vector<u8> = b"The document must attest an ed25519 public key of 32 bytes";
#[error]
const EAlreadyRegistered: vector<u8> = b"This key was registered at this version, perhaps destroyed since";
#[error]
const EInvalidConfigVersion: vector<u8> = b"The enclave is stale: the config's PCRs changed since";
#[error]
const ENotStale: vector<u8> = b"Only the capability's holder can destroy an enclave that is not stale";
#[error]
const ETooOld: vector<u8> = b"The signed timestamp is too far in the past";
#[error]
const EInFuture: vector<u8> = b"The signed timestamp is too far in the future";
#[error]
const EInvalidSignature: vector<u8> =
    b"The enclave did not sign these values, or the contract's types differ from the server's";

/// ed25519.
const PUBLIC_KEY_BYTES: u64 = 32;
/// Maximum lead of the enclave's clock over the chain's.
const MAX_AHEAD_MS: u64 = 60_000;

/// The image that enclaves of the application `T` must run. Shared.
public struct EnclaveConfig<phantom T> has key {
    id: UID,
    name: String,
    pcrs: Pcrs,
    capability_id: ID,
    version: u64,
}

/// One registered enclave of the application `T`: the attested public key of an instance that runs the image of its
/// config at one version. Shared, and never changed. Its address is derived from the config's by `EnclaveKey`.
public struct Enclave<phantom T> has key {
    id: UID,
    pk: vector<u8>,
    config_id: ID,
    config_version: u64,
}

/// The right to decide which enclaves speak for the application `T`.
public struct EnclaveCap<phantom T> has key, store {
    id: UID,
}

/// The key of `sui::derived_object` with which an Enclave's address is derived from its config.
public struct EnclaveKey has copy, drop, store {
    config_version: u64,
    pk: vector<u8>,
}

/// The message that an enclave signs, in BCS.
public struct IntentMessage<T: drop> has copy, drop {
    intent: u8,
    timestamp_ms: u64,
    payload: T,
}

/// A config was created.
public struct EnclaveConfigCreated<phantom T> has copy, drop {
    config_id: ID,
    capability_id: ID,
    name: String,
    pcrs: Pcrs,
    version: u64,
}

/// A config has new registers: enclaves of older versions are stale from now on.
public struct PcrsUpdated<phantom T> has copy, drop {
    config_id: ID,
    pcrs: Pcrs,
    version: u64,
}

/// An enclave was registered, and may speak for the application.
public struct EnclaveRegistered<phantom T> has copy, drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
}

/// An enclave was destroyed, and no longer speaks for the application.
public struct EnclaveDestroyed<phantom T> has copy, drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
}

// === Configs ===

/// The one capability of an application. `otw` is the one-time witness that the application's `init` receives.
public fun new_cap<T: drop>(otw: T, ctx: &mut TxContext): EnclaveCap<T> {
    assert!(sui::types::is_one_time_witness(&otw), ENotOneTimeWitness);
    EnclaveCap { id: object::new(ctx) }
}

/// Creates and shares a config at version 0. The registers are those of `out/nitro.pcrs`.
public fun create_enclave_config<T>(
    cap: &EnclaveCap<T>,
    name: String,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    ctx: &mut TxContext,
) {
    transfer::share_object(cap.new_config(name, pcrs::new(pcr0, pcr1, pcr2), ctx))
}

/// Replaces the trusted image: every enclave registered so far becomes stale.
public fun update_pcrs<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
) {
    config.assert_cap(cap);
    config.pcrs = pcrs::new(pcr0, pcr1, pcr2);
    config.version = config.version + 1;
    let config_id = object::id(config);
    event::emit(PcrsUpdated<T> { config_id, pcrs: config.pcrs, version: config.version });
}

/// Renames a config. The name is for people; nothing depends on it.
public fun update_name<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>, name: String) {
    config.assert_cap(cap);
    config.name = name;
}

// === Enclaves ===

/// Registers and shares the enclave of an attestation document, which `sui::nitro_attestation` has verified in the
/// same transaction. It must run the image of the config's latest registers.
///
/// An enclave's key lives and dies with its process: to replace one, register its successor, then `destroy_enclave`.
public fun register_enclave<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    document: NitroAttestationDocument,
) {
    let pk = (*document.public_key()).destroy_with_default(vector[]);
    transfer::share_object(config.new_enclave(cap, pcrs::of_document(&document), pk))
}

/// Destroys any enclave of a config, stale or not. Its key can't be registered at that version again.
public fun destroy_enclave<T>(enclave: Enclave<T>, config: &EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_cap(cap);
    enclave.assert_config(config);
    enclave.destroy()
}

/// Destroys a stale enclave. Anyone may call it.
public fun destroy_old_enclave<T>(enclave: Enclave<T>, config: &EnclaveConfig<T>) {
    assert!(enclave.is_stale(config), ENotStale);
    enclave.destroy()
}

// === Verification ===

/// Accepts only values that an enclave of this config's latest version signed recently: aborts when the enclave
/// belongs to another config or is stale, when `timestamp_ms` is more than `max_age_ms` before the Clock or more than
/// a minute ahead of it, or when the signature is not the enclave's for exactly these values.
///
/// Accept `Enclave` and `EnclaveConfig` of your own application's `T`, not of any `T`: anyone can publish a module and
/// register enclaves for it.
public fun assert_signed<T, P: drop>(
    enclave: &Enclave<T>,
    config: &EnclaveConfig<T>,
    clock: &Clock,
    max_age_ms: u64,
    intent: u8,
    timestamp_ms: u64,
    payload: P,
    signature: &vector<u8>,
) {
    assert!(!enclave.is_stale(config), EInvalidConfigVersion);
    let now = clock.timestamp_ms();
    // Neither subtraction can underflow, whatever timestamp was signed.
    if (timestamp_ms > now) assert!(timestamp_ms - now <= MAX_AHEAD_MS, EInFuture)
    else assert!(now - timestamp_ms <= max_age_ms, ETooOld);
    assert!(enclave.verify_signature(intent, timestamp_ms, payload, signature), EInvalidSignature);
}

/// Returns whether this enclave's key ever signed these values. It checks neither that the enclave is of its config's
/// latest version, nor how old the timestamp is: it accepts answers of an enclave whose image is no longer trusted,
/// and answers from last year. Use `assert_signed`.
public fun verify_signature<T, P: drop>(
    enclave: &Enclave<T>,
    intent: u8,
    timestamp_ms: u64,
    payload: P,
    signature: &vector<u8>,
): bool {
    ed25519::ed25519_verify(signature, &enclave.pk, &signed_bytes(intent, timestamp_ms, payload))
}

// === Reading ===

/// The human-readable name.
public fun name<T>(config: &EnclaveConfig<T>): &String {
    &config.name
}

/// See `enclave::pcrs`.
public fun pcr0<T>(config: &EnclaveConfig<T>): &vector<u8> {
    config.pcrs.pcr0()
}

/// See `enclave::pcrs`.
public fun pcr1<T>(config: &EnclaveConfig<T>): &vector<u8> {
    config.pcrs.pcr1()
}

/// See `enclave::pcrs`.
public fun pcr2<T>(config: &EnclaveConfig<T>): &vector<u8> {
    config.pcrs.pcr2()
}

/// The number of changes of the registers: 0 in a new config.
public fun version<T>(config: &EnclaveConfig<T>): u64 {
    config.version
}

/// The id of the capability that governs the config.
public fun capability_id<T>(config: &EnclaveConfig<T>): ID {
    config.capability_id
}

/// Returns whether an enclave with this key was registered at the config's latest version, even if destroyed since.
public fun was_registered<T>(config: &EnclaveConfig<T>, pk: vector<u8>): bool {
    derived_object::exists(&config.id, EnclaveKey { config_version: config.version, pk })
}

/// The ed25519 public key, 32 bytes.
public fun pk<T>(enclave: &Enclave<T>): &vector<u8> {
    &enclave.pk
}

/// The id of the config that the enclave belongs to.
public fun config_id<T>(enclave: &Enclave<T>): ID {
    enclave.config_id
}

/// The version of the config that the enclave was registered at.
public fun config_version<T>(enclave: &Enclave<T>): u64 {
    enclave.config_version
}

/// Returns whether the registers changed since the enclave was registered. Aborts if the config is not the enclave's.
public fun is_stale<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>): bool {
    enclave.assert_config(config);
    enclave.config_version < config.version
}

// === Configs and registration, on plain values ===

/// `create_enclave_config` without sharing the config.
public(package) fun new_config<T>(
    cap: &EnclaveCap<T>,
    name: String,
    pcrs: Pcrs,
    ctx: &mut TxContext,
): EnclaveConfig<T> {
    let id = object::new(ctx);
    let capability_id = object::id(cap);
    let version = 0;
    event::emit(EnclaveConfigCreated<T> {
        config_id: id.to_inner(),
        capability_id,
        name,
        pcrs,
        version,
    });
    EnclaveConfig { id, name, pcrs, capability_id, version }
}

/// `register_enclave` without extracting these values from the document and without sharing the enclave. A document
/// without a public key has empty bytes.
public(package) fun new_enclave<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pcrs: Pcrs,
    pk: vector<u8>,
): Enclave<T> {
    config.assert_cap(cap);
    assert!(pcrs == config.pcrs, EInvalidPCRs);
    assert!(pk.length() == PUBLIC_KEY_BYTES, EInvalidPublicKey);
    assert!(!config.was_registered(pk), EAlreadyRegistered);
    let config_id = object::id(config);
    let config_version = config.version;
    let id = derived_object::claim(&mut config.id, EnclaveKey { config_version, pk });
    event::emit(EnclaveRegistered<T> { enclave_id: id.to_inner(), config_id, config_version, pk });
    Enclave { id, pk, config_id, config_version }
}

fun destroy<T>(enclave: Enclave<T>) {
    let Enclave { id, pk, config_id, config_version } = enclave;
    event::emit(EnclaveDestroyed<T> { enclave_id: id.to_inner(), config_id, config_version, pk });
    id.delete();
}

fun assert_cap<T>(config: &EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    assert!(object::id(cap) == config.capability_id, EInvalidCap);
}

fun assert_config<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>) {
    assert!(enclave.config_id == object::id(config), EWrongConfig);
}

fun signed_bytes<P: drop>(intent: u8, timestamp_ms: u64, payload: P): vector<u8> {
    bcs::to_bytes(&IntentMessage { intent, timestamp_ms, payload })
}

// === For the tests of packages that use this one ===

#[test_only]
/// A capability without a witness.
public fun new_cap_for_testing<T>(ctx: &mut TxContext): EnclaveCap<T> {
    EnclaveCap { id: object::new(ctx) }
}

#[test_only]
/// A config that is not shared, with registers of the byte 1.
public fun new_config_for_testing<T>(cap: &EnclaveCap<T>, ctx: &mut TxContext): EnclaveConfig<T> {
    let pcr =
        x"010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101";
    cap.new_config(b"testing".to_string(), pcrs::new(pcr, pcr, pcr), ctx)
}

#[test_only]
/// An enclave with this public key at the config's latest version, that is not shared.
public fun new_enclave_for_testing<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pk: vector<u8>,
): Enclave<T> {
    let pcrs = config.pcrs;
    config.new_enclave(cap, pcrs, pk)
}

#[test_only]
/// The bytes that the enclave signs for these values: compare them with those that your server signs.
public fun signed_bytes_for_testing<P: drop>(intent: u8, timestamp_ms: u64, payload: P): vector<u8> {
    signed_bytes(intent, timestamp_ms, payload)
}

#[test_only]
/// Destroys a capability.
public fun destroy_cap_for_testing<T>(cap: EnclaveCap<T>) {
    let EnclaveCap { id } = cap;
    id.delete();
}

#[test_only]
/// Destroys a config; its enclaves remain.
public fun destroy_config_for_testing<T>(config: EnclaveConfig<T>) {
    let EnclaveConfig { id, .. } = config;
    id.delete();
}

#[test_only]
/// Destroys an enclave without checks or an event.
public fun destroy_enclave_for_testing<T>(enclave: Enclave<T>) {
    let Enclave { id, .. } = enclave;
    id.delete();
}
