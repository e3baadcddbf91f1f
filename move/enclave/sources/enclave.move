/// Registers the AWS Nitro Enclaves that a contract trusts, and verifies their signatures.
///
/// An `EnclaveConfig` names the trusted image by its registers PCR0 to PCR2, with a version that increases when they
/// change. An `Enclave` is a running instance of that image, identified by its attested public key. The holder of the
/// `EnclaveCap` controls both, and may let a `RegistrarCap` register enclaves; anyone can read them, verify signatures
/// with them and destroy stale enclaves. In an overlap, enclaves of the version before are not stale yet. Under a config
/// that was created open, anyone may also register enclaves, on any host: see `new_open_enclave_config`.
///
/// Contracts verify an answer with `assert_signed`. An answer is a statement, not a command: while it is fresh, anyone
/// may submit it, and more than once. If an answer triggers something that must happen only once, verify it with
/// `enclave::once`; if it is for one account only, have the enclave sign that account's address in the payload.
module enclave::enclave;

use enclave::attested::{Self, Attested};
use enclave::pcrs::{Self, Pcrs};
use enclave::source::Source;
use std::bcs;
use std::string::String;
use sui::clock::Clock;
use sui::derived_object;
use sui::ed25519;
use sui::event;
use sui::nitro_attestation::NitroAttestationDocument;
use sui::package::Publisher;
use sui::vec_set::{Self, VecSet};

// Clients tell errors apart by these codes, which never change, or by the names: the number that a transaction aborts
// with also contains the source line.

#[error(code = 1)]
const ENotOneTimeWitness: vector<u8> = b"A capability takes its module's one-time witness";
#[error(code = 2)]
const EInvalidCap: vector<u8> = b"The capability is not the one that made this config";
#[error(code = 3)]
const EWrongConfig: vector<u8> = b"The enclave or registrar belongs to another config";
#[error(code = 4)]
const EInvalidPCRs: vector<u8> = b"The enclave runs another image than the config allows";
#[error(code = 5)]
const EInvalidPublicKey: vector<u8> = b"The document must attest an ed25519 public key of 32 bytes";
#[error(code = 6)]
const EAlreadyRegistered: vector<u8> = b"This key was registered at this version, perhaps destroyed since";
#[error(code = 7)]
const EInvalidConfigVersion: vector<u8> = b"The enclave is stale: the config's PCRs changed since";
#[error(code = 8)]
const ENotStale: vector<u8> = b"Only the capability's holder can destroy an enclave that is not stale";
#[error(code = 9)]
const ETooOld: vector<u8> = b"The signed timestamp is too far in the past";
#[error(code = 10)]
const EInFuture: vector<u8> = b"The signed timestamp is too far in the future";
#[error(code = 11)]
const EInvalidSignature: vector<u8> =
    b"The enclave did not sign these values, or the contract's types differ from the server's";
#[error(code = 12)]
const ENotPublisher: vector<u8> = b"The Publisher is not of the module that defines the application's type";
#[error(code = 13)]
const ERetired: vector<u8> = b"The config is retired";
#[error(code = 14)]
const ENotRegistrar: vector<u8> = b"The registrar was revoked, or never belonged to this config";
#[error(code = 15)]
const EKeyTooOld: vector<u8> = b"The enclave's key is older than the config allows";
#[error(code = 16)]
const EInvalidKeyAge: vector<u8> = b"The greatest age of keys must be more than 0 ms";
#[error(code = 17)]
const EInvalidOverlap: vector<u8> = b"An overlap must end in the future, and at most 24 hours from now";
#[error(code = 18)]
const EOverlapping: vector<u8> = b"The config has an overlap already: contracts never accept three versions";
#[error(code = 19)]
const ENoOverlap: vector<u8> = b"The config has no overlap";
#[error(code = 20)]
const EWrongPackageVersion: vector<u8> = b"The config is of another version of this package: call that one, or migrate";
#[error(code = 21)]
const ENotOlder: vector<u8> = b"The config is of this version of the package already, or of a newer one";
#[error(code = 22)]
const ENotOpen: vector<u8> = b"The config is not open: registering takes its capability or a registrar";
#[error(code = 23)]
const EDocumentTooOld: vector<u8> = b"Anyone may register only an attestation of the last 10 minutes: attest again";

/// The version of this package that new configs have. An upgrade raises it if the earlier versions must stop working for
/// configs that migrate.
const PACKAGE_VERSION: u64 = 1;
/// Size of an ed25519 public key.
const PUBLIC_KEY_BYTES: u64 = 32;
/// Maximum lead of the enclave's clock over the chain's.
const MAX_AHEAD_MS: u64 = 60_000;
/// Maximum length of an overlap: 24 hours.
const MAX_OVERLAP_MS: u64 = 24 * 60 * 60 * 1000;
/// Maximum age of an attestation that anyone may register: 10 minutes. A key can be registered once only, so with an old
/// document a stranger could use up most of the maximum age of another operator's key.
const MAX_OPEN_DOCUMENT_AGE_MS: u64 = 10 * 60 * 1000;

public use fun share_config as EnclaveConfig.share;
public use fun share_enclave as Enclave.share;

/// The image that enclaves of the application `T` must run: a shared object.
public struct EnclaveConfig<phantom T> has key {
    id: UID,
    name: String,
    pcrs: Pcrs,
    /// The source of the image with the present registers; nothing checks it.
    source: Option<Source>,
    capability_id: ID,
    config_version: u64,
    /// The overlap that began when the present registers were set, if any; it may be over.
    overlap: Option<Overlap>,
    max_key_age_ms: Option<u64>,
    /// The ids of the `RegistrarCap`s that may register.
    registrars: VecSet<ID>,
    is_retired: bool,
    /// The only version of this package that may verify by this config and change it: see `migrate`.
    package_version: u64,
    /// Whether anyone may register enclaves. Never changes.
    is_open: bool,
}

/// Before `until_ms`, in milliseconds since the Unix epoch, contracts also accept enclaves of the version before, which run
/// the image of these registers. From that time on, contracts refuse them.
public struct Overlap has copy, drop, store {
    pcrs: Pcrs,
    until_ms: u64,
}

/// One registered enclave of the application `T`: the attested public key of an instance that runs the image of its
/// config at one version. Shared, and never changed. Its address is derived from the config's by `EnclaveKey`.
public struct Enclave<phantom T> has key {
    id: UID,
    pk: vector<u8>,
    config_id: ID,
    config_version: u64,
    /// The time of the attestation that registered it, by the clock of the hypervisor that signed the document, in
    /// milliseconds since the Unix epoch. The chain accepts an attestation for about three hours.
    registered_at_ms: u64,
}

/// The right to decide which enclaves contracts accept for the application `T`. It governs only configs that it made.
///
/// If it is lost, its configs can never be changed. A thief can let contracts accept any image until their users move
/// to another config. Keep it at an address of a multisig.
public struct EnclaveCap<phantom T> has key, store {
    id: UID,
}

/// The right to register enclaves that run the present image of one config, and nothing else: for a machine that
/// restarts enclaves.
public struct RegistrarCap<phantom T> has key, store {
    id: UID,
    config_id: ID,
}

/// An unfinished rotation: the registers are updated, and the successor is not registered yet. Only `finish_rotation`
/// of the same transaction can consume it.
public struct Rotation<phantom T> {
    config_id: ID,
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

/// A capability was created.
public struct EnclaveCapCreated<phantom T> has copy, drop {
    capability_id: ID,
}

/// A config was created.
public struct EnclaveConfigCreated<phantom T> has copy, drop {
    config_id: ID,
    capability_id: ID,
    name: String,
    pcrs: Pcrs,
    source: Option<Source>,
    config_version: u64,
}

/// The config that was created just before is open: anyone may register enclaves under it, for as long as it exists.
public struct OpenConfigCreated<phantom T> has copy, drop {
    config_id: ID,
}

/// A config has new registers: enclaves of older versions are stale from now on. If there is `overlap_until_ms`, those of
/// the version before become stale only at that time.
public struct PcrsUpdated<phantom T> has copy, drop {
    config_id: ID,
    pcrs: Pcrs,
    source: Option<Source>,
    config_version: u64,
    overlap_until_ms: Option<u64>,
}

/// An overlap was ended, perhaps after its time had passed: all enclaves except those of this version are stale.
public struct OverlapEnded<phantom T> has copy, drop {
    config_id: ID,
    config_version: u64,
}

/// A config has a new name.
public struct NameUpdated<phantom T> has copy, drop {
    config_id: ID,
    name: String,
}

/// A config has another maximum key age.
public struct MaxKeyAgeUpdated<phantom T> has copy, drop {
    config_id: ID,
    max_key_age_ms: Option<u64>,
}

/// A config was retired: contracts no longer accept any of its enclaves.
public struct ConfigRetired<phantom T> has copy, drop {
    config_id: ID,
}

/// From now on only this version of the package verifies by the config and changes it.
public struct ConfigMigrated<phantom T> has copy, drop {
    config_id: ID,
    package_version: u64,
}

/// A registrar was created, and may register enclaves from now on.
public struct RegistrarCapCreated<phantom T> has copy, drop {
    config_id: ID,
    registrar_id: ID,
}

/// A registrar was revoked, and may no longer register enclaves. The enclaves that it registered remain.
public struct RegistrarCapRevoked<phantom T> has copy, drop {
    config_id: ID,
    registrar_id: ID,
}

/// An enclave was registered, and contracts accept its signatures. `registered_by` is the id of the capability or
/// registrar that was used, or the id of the config if it is open and neither was used.
public struct EnclaveRegistered<phantom T> has copy, drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
    registered_at_ms: u64,
    registered_by: ID,
}

/// An enclave was destroyed, and contracts no longer accept its signatures.
public struct EnclaveDestroyed<phantom T> has copy, drop {
    enclave_id: ID,
    config_id: ID,
    config_version: u64,
    pk: vector<u8>,
}

// === Capabilities ===

/// Returns the capability of an application. `otw` is the one-time witness that the application's `init` receives, so
/// this can be called only once.
public fun new_cap<T: drop>(otw: T, ctx: &mut TxContext): EnclaveCap<T> {
    assert!(sui::types::is_one_time_witness(&otw), ENotOneTimeWitness);
    create_cap(ctx)
}

/// Returns a capability of an application whose module is on chain already, or uses its one-time witness to claim its
/// Publisher. `T` is any type of the Publisher's module, also one that an upgrade of its package added.
///
/// The holder of the Publisher is an admin, who can create further capabilities, and with them further configs, at any
/// time. So a contract whose module has a Publisher must store the id of the config that it accepts, and compare it.
public fun new_cap_from_publisher<T>(publisher: &Publisher, ctx: &mut TxContext): EnclaveCap<T> {
    assert!(publisher.from_module<T>(), ENotPublisher);
    create_cap(ctx)
}

/// Returns a capability that may register enclaves of a config's present image until it is revoked.
public fun new_registrar_cap<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    ctx: &mut TxContext,
): RegistrarCap<T> {
    config.assert_admin(cap);
    let id = object::new(ctx);
    let config_id = object::id(config);
    config.registrars.insert(id.to_inner());
    event::emit(RegistrarCapCreated<T> { config_id, registrar_id: id.to_inner() });
    RegistrarCap { id, config_id }
}

/// Revokes a registrar, no matter which account holds it. The enclaves that it registered remain: each
/// `EnclaveRegistered` names the capability that was used.
public fun revoke_registrar_cap<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>, registrar_id: ID) {
    config.assert_governs(cap);
    assert!(config.is_registrar(registrar_id), ENotRegistrar);
    config.remove_registrar(registrar_id);
}

/// Destroys a registrar, revoked or not. Its holder can call this without the admin.
public fun destroy_registrar_cap<T>(registrar: RegistrarCap<T>, config: &mut EnclaveConfig<T>) {
    let RegistrarCap { id, config_id } = registrar;
    assert!(config_id == object::id(config), EWrongConfig);
    config.assert_version();
    if (config.is_registrar(id.to_inner())) config.remove_registrar(id.to_inner());
    id.delete();
}

// === Configs ===

/// Creates and shares a config at version 0, without a source. The registers are those of `out/nitro.pcrs`.
public fun create_enclave_config<T>(
    cap: &EnclaveCap<T>,
    name: String,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    ctx: &mut TxContext,
) {
    transfer::share_object(cap.new_enclave_config(name, pcr0, pcr1, pcr2, option::none(), ctx))
}

/// Creates a config as `create_enclave_config` does, with a source (see `enclave::source`), but returns it to the
/// transaction, which must pass it to `share_config` at the end.
public fun new_enclave_config<T>(
    cap: &EnclaveCap<T>,
    name: String,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
    ctx: &mut TxContext,
): EnclaveConfig<T> {
    cap.config_of(name, pcrs::new(pcr0, pcr1, pcr2), source, false, ctx)
}

/// Does what `new_enclave_config` does, for an image that several operators run: as long as the config exists, anyone may
/// register enclaves of its latest registers by `register_enclave_as_anyone`, without a capability.
///
/// Contracts accept each of these enclaves. Nothing says on whose host it runs: the host can't change what the image
/// computes, but it sees requests that are not sealed, may delay or drop requests and upstream answers, and may submit
/// only the answers that it likes. So an open config is not for an image that needs secrets, or whose host must be trusted.
///
/// Nobody owns an enclave: as under any config, only the capability's holder can destroy one that is not stale. A host that
/// misbehaves restarts its enclave and registers the new key, so destroying an enclave excludes a key, not a host.
public fun new_open_enclave_config<T>(
    cap: &EnclaveCap<T>,
    name: String,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
    ctx: &mut TxContext,
): EnclaveConfig<T> {
    cap.config_of(name, pcrs::new(pcr0, pcr1, pcr2), source, true, ctx)
}

#[allow(lint(share_owned))]
/// Shares a config of `new_enclave_config` or `new_open_enclave_config`, in the transaction that made it.
public fun share_config<T>(config: EnclaveConfig<T>) {
    transfer::share_object(config)
}

/// Replaces the trusted image: every enclave registered so far becomes stale at once. This also ends an overlap, and
/// removes the config's source.
public fun update_pcrs<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
) {
    config.update_image(cap, pcr0, pcr1, pcr2, option::none())
}

/// Does what `update_pcrs` does, with a source: see `enclave::source`.
public fun update_image<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
) {
    config.assert_admin(cap);
    config.set_pcrs(pcrs::new(pcr0, pcr1, pcr2), source, option::none());
}

/// Replaces the trusted image, but lets contracts accept enclaves of the present version until `until_ms`, in
/// milliseconds since the Unix epoch: at most 24 hours from now. Only enclaves of the new image can be registered from
/// now on. Until `until_ms`, only the capability's holder can destroy an enclave of the version before.
///
/// Call this only while the present image is still trusted. If it is not, call `update_pcrs`.
///
/// Aborts in an overlap: the enclaves of the oldest version would become stale before the time that was set for them.
public fun begin_overlap<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
    until_ms: u64,
    clock: &Clock,
) {
    config.assert_admin(cap);
    assert!(!config.is_overlapping(clock), EOverlapping);
    let now = clock.timestamp_ms();
    assert!(until_ms > now && until_ms - now <= MAX_OVERLAP_MS, EInvalidOverlap);
    let overlap = Overlap { pcrs: config.pcrs, until_ms };
    config.set_pcrs(pcrs::new(pcr0, pcr1, pcr2), source, option::some(overlap));
}

/// Ends the overlap at once: enclaves of the version before are stale from now on. After its time, this frees the storage
/// of the overlap.
public fun end_overlap<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_admin(cap);
    assert!(config.overlap.is_some(), ENoOverlap);
    config.overlap = option::none();
    event::emit(OverlapEnded<T> { config_id: object::id(config), config_version: config.config_version });
}

/// Renames a config. Only people read the name: nothing depends on it.
public fun update_name<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>, name: String) {
    config.assert_admin(cap);
    config.name = name;
    event::emit(NameUpdated<T> { config_id: object::id(config), name });
}

/// Sets the maximum key age in milliseconds since the attestation, which applies to registered enclaves too. With `none`,
/// keys may have any age, as in a new config.
public fun update_max_key_age<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>, max_key_age_ms: Option<u64>) {
    config.assert_admin(cap);
    max_key_age_ms.do_ref!(|age| assert!(*age > 0, EInvalidKeyAge));
    config.max_key_age_ms = max_key_age_ms;
    event::emit(MaxKeyAgeUpdated<T> { config_id: object::id(config), max_key_age_ms });
}

/// Retires a config permanently: from now on nothing can be registered under it, `assert_signed` aborts, anyone can
/// destroy its enclaves, and it can't be changed.
public fun retire<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_admin(cap);
    config.is_retired = true;
    event::emit(ConfigRetired<T> { config_id: object::id(config) });
}

/// Ends the earlier versions of this package for this config: their functions that verify by it or change it abort from
/// now on. Contracts that were compiled with an earlier version accept no answers under it until they are upgraded too.
///
/// Before this call, the functions of this version abort for the config. Earlier versions end for one config at a time, so
/// that each application's admin chooses when. A retired config can be migrated too.
public fun migrate<T>(config: &mut EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_cap(cap);
    assert!(config.package_version < PACKAGE_VERSION, ENotOlder);
    config.package_version = PACKAGE_VERSION;
    event::emit(ConfigMigrated<T> { config_id: object::id(config), package_version: PACKAGE_VERSION });
}

// === Enclaves ===

/// Registers and shares the enclave of an attestation document, which `sui::nitro_attestation` has verified in the
/// same transaction. The enclave must run the image of the config's latest registers.
///
/// An enclave's key is lost when its process ends. To replace an enclave, register another, then call `destroy_enclave`.
public fun register_enclave<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    document: NitroAttestationDocument,
) {
    transfer::share_object(config.new_enclave(cap, document))
}

/// Registers an enclave and returns it to the transaction, which must pass it to `share_enclave` at the end.
public fun new_enclave<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    document: NitroAttestationDocument,
): Enclave<T> {
    config.enclave_of(cap, attested::of_document(&document))
}

/// Does what `register_enclave` does, with a registrar that is not revoked.
public fun register_enclave_as_registrar<T>(
    config: &mut EnclaveConfig<T>,
    registrar: &RegistrarCap<T>,
    document: NitroAttestationDocument,
) {
    transfer::share_object(config.enclave_of_registrar(registrar, attested::of_document(&document)))
}

/// Does what `register_enclave` does, for anyone, if the config is open and the attestation is of the last 10 minutes.
///
/// A document is public, so a stranger may register another operator's enclave. The registration is the same that its
/// operator would have made: the stranger gets no right over the enclave, and pays for it. The operator's own transaction
/// then aborts with `EAlreadyRegistered`.
public fun register_enclave_as_anyone<T>(
    config: &mut EnclaveConfig<T>,
    document: NitroAttestationDocument,
    clock: &Clock,
) {
    transfer::share_object(config.enclave_of_anyone(attested::of_document(&document), clock))
}

#[allow(lint(share_owned))]
/// Shares an enclave of `new_enclave`, in the transaction that registered it.
public fun share_enclave<T>(enclave: Enclave<T>) {
    transfer::share_object(enclave)
}

/// Does what `update_image` does, in a transaction that must also register an enclave of the new image: the transaction is
/// invalid without `finish_rotation`. So the application is never left without an enclave.
///
/// Every older enclave is stale from then on, and transactions with its earlier answers abort: have users ask again, or
/// call `begin_overlap` and `register_enclave` instead. A rotation does not destroy the stale enclaves.
public fun begin_rotation<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
): Rotation<T> {
    config.update_image(cap, pcr0, pcr1, pcr2, source);
    Rotation { config_id: object::id(config) }
}

/// Registers and shares the successor, and ends the rotation of this config.
public fun finish_rotation<T>(
    rotation: Rotation<T>,
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    document: NitroAttestationDocument,
) {
    transfer::share_object(rotation.successor_of(config, cap, attested::of_document(&document)))
}

/// Destroys any enclave of a config, stale or not. Its key can't be registered at that version again.
public fun destroy_enclave<T>(enclave: Enclave<T>, config: &EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_governs(cap);
    enclave.assert_config(config);
    enclave.destroy()
}

/// Destroys an enclave that is stale, or whose config is retired. Anyone may call it.
///
/// An enclave whose key is merely too old can't be destroyed like this: the capability's holder may raise the maximum age.
public fun destroy_old_enclave<T>(enclave: Enclave<T>, config: &EnclaveConfig<T>, clock: &Clock) {
    config.assert_version();
    assert!(enclave.is_stale(config, clock) || config.is_retired, ENotStale);
    enclave.destroy()
}

// === Verification ===

/// Accepts only values that an enclave of this config signed recently. The enclave must be of the latest version or, in
/// an overlap, of the version before. Aborts if the enclave belongs to another config or is stale; if the config is
/// retired, or of another version of this package; if the key is older than the config allows; if `timestamp_ms` is more
/// than `max_age_ms` before the Clock, or more than a minute ahead of it; or if the signature is not the enclave's
/// signature of exactly these values.
///
/// Accept `Enclave` and `EnclaveConfig` of your own application's `T`, not of any `T`: anyone can publish a module and
/// register enclaves for it. The capability's holder may have several configs; this accepts each until it is retired.
/// To accept only one config, store its id and compare it.
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
    config.assert_version();
    assert!(!enclave.is_stale(config, clock), EInvalidConfigVersion);
    assert!(!config.is_retired, ERetired);
    let now = clock.timestamp_ms();
    assert!(!enclave.is_key_too_old(config, now), EKeyTooOld);
    // Neither subtraction can underflow, whatever timestamp was signed.
    if (timestamp_ms > now) assert!(timestamp_ms - now <= MAX_AHEAD_MS, EInFuture)
    else assert!(now - timestamp_ms <= max_age_ms, ETooOld);
    assert!(enclave.verify_signature(intent, timestamp_ms, payload, signature), EInvalidSignature);
}

/// Returns whether this enclave's key ever signed these values. It sees no config, so it checks neither that the
/// enclave is of the config's latest version, nor that the config is not retired, nor how old the key or the timestamp
/// is: it accepts answers of an enclave whose image is no longer trusted, and answers from last year. Use
/// `assert_signed`.
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

/// Returns the human-readable name.
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

/// Returns the source of the image, if the capability's holder set one with the registers: see `enclave::source`.
public fun source<T>(config: &EnclaveConfig<T>): Option<Source> {
    config.source
}

/// Returns the number of changes of the registers: 0 in a new config.
public fun current_config_version<T>(config: &EnclaveConfig<T>): u64 {
    config.config_version
}

/// Returns whether contracts also accept enclaves of the version before the latest: see `begin_overlap`.
public fun is_overlapping<T>(config: &EnclaveConfig<T>, clock: &Clock): bool {
    config.overlap.is_some_and!(|overlap| clock.timestamp_ms() < overlap.until_ms)
}

/// Returns the time at which the last overlap ends or ended, in milliseconds since the Unix epoch: see `begin_overlap`.
/// None if no overlap began when the present registers were set, or if `end_overlap` has removed it.
public fun overlap_until_ms<T>(config: &EnclaveConfig<T>): Option<u64> {
    config.overlap.map_ref!(|overlap| overlap.until_ms)
}

/// Returns the registers of the version before the latest, for as long as `overlap_until_ms` returns a time.
public fun overlap_pcrs<T>(config: &EnclaveConfig<T>): Option<Pcrs> {
    config.overlap.map_ref!(|overlap| overlap.pcrs)
}

/// Returns the maximum key age in milliseconds, if there is one: see `update_max_key_age`.
public fun max_key_age_ms<T>(config: &EnclaveConfig<T>): Option<u64> {
    config.max_key_age_ms
}

/// Returns whether the config is retired: see `retire`.
public fun is_retired<T>(config: &EnclaveConfig<T>): bool {
    config.is_retired
}

/// Returns the only version of this package that may verify by the config and change it: see `migrate`.
public fun package_version<T>(config: &EnclaveConfig<T>): u64 {
    config.package_version
}

/// Returns whether the `RegistrarCap` with this id may register enclaves.
public fun is_registrar<T>(config: &EnclaveConfig<T>, registrar_id: ID): bool {
    config.registrars.contains(&registrar_id)
}

/// Returns whether anyone may register enclaves: see `new_open_enclave_config`. It never changes.
public fun is_open<T>(config: &EnclaveConfig<T>): bool {
    config.is_open
}

/// Returns the id of the capability that governs the config.
public fun capability_id<T>(config: &EnclaveConfig<T>): ID {
    config.capability_id
}

/// Returns whether an enclave with this key was registered at the config's latest version, even if destroyed since.
public fun was_registered<T>(config: &EnclaveConfig<T>, pk: vector<u8>): bool {
    derived_object::exists(&config.id, EnclaveKey { config_version: config.config_version, pk })
}

/// Returns the ed25519 public key, 32 bytes.
public fun pk<T>(enclave: &Enclave<T>): &vector<u8> {
    &enclave.pk
}

/// Returns the id of the config that the enclave belongs to.
public fun config_id<T>(enclave: &Enclave<T>): ID {
    enclave.config_id
}

/// Returns the version of the config at which the enclave was registered.
public fun config_version<T>(enclave: &Enclave<T>): u64 {
    enclave.config_version
}

/// Returns the time of the enclave's attestation, in milliseconds since the Unix epoch.
public fun registered_at_ms<T>(enclave: &Enclave<T>): u64 {
    enclave.registered_at_ms
}

/// Returns the id of the config whose enclaves the registrar may register.
public fun registrar_config_id<T>(registrar: &RegistrarCap<T>): ID {
    registrar.config_id
}

/// Returns whether the registers changed since the enclave was registered, and no overlap lets contracts accept it
/// nevertheless. Aborts if the config is not the enclave's.
public fun is_stale<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>, clock: &Clock): bool {
    enclave.assert_config(config);
    let versions_behind = config.config_version - enclave.config_version;
    versions_behind > 1 || (versions_behind == 1 && !config.is_overlapping(clock))
}

// === Configs and registration, on plain values ===

/// Does what `new_enclave_config` or `new_open_enclave_config` does, with registers that are checked already.
public(package) fun config_of<T>(
    cap: &EnclaveCap<T>,
    name: String,
    pcrs: Pcrs,
    source: Option<Source>,
    is_open: bool,
    ctx: &mut TxContext,
): EnclaveConfig<T> {
    let id = object::new(ctx);
    let capability_id = object::id(cap);
    let config_version = 0;
    event::emit(EnclaveConfigCreated<T> {
        config_id: id.to_inner(),
        capability_id,
        name,
        pcrs,
        source,
        config_version,
    });
    if (is_open) event::emit(OpenConfigCreated<T> { config_id: id.to_inner() });
    EnclaveConfig {
        id,
        name,
        pcrs,
        source,
        capability_id,
        config_version,
        overlap: option::none(),
        max_key_age_ms: option::none(),
        registrars: vec_set::empty(),
        is_retired: false,
        package_version: PACKAGE_VERSION,
        is_open,
    }
}

/// Does what `new_enclave` does, with the values of a document.
public(package) fun enclave_of<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    attested: Attested,
): Enclave<T> {
    config.assert_governs(cap);
    config.register(object::id(cap), attested)
}

/// Does what `register_enclave_as_registrar` does, with the values of a document, but returns the enclave.
public(package) fun enclave_of_registrar<T>(
    config: &mut EnclaveConfig<T>,
    registrar: &RegistrarCap<T>,
    attested: Attested,
): Enclave<T> {
    config.assert_version();
    assert!(config.is_registrar(object::id(registrar)), ENotRegistrar);
    config.register(object::id(registrar), attested)
}

/// Does what `register_enclave_as_anyone` does, with the values of a document, but returns the enclave.
public(package) fun enclave_of_anyone<T>(
    config: &mut EnclaveConfig<T>,
    attested: Attested,
    clock: &Clock,
): Enclave<T> {
    config.assert_version();
    assert!(config.is_open, ENotOpen);
    let now = clock.timestamp_ms();
    let at_ms = attested.at_ms();
    // The hypervisor's clock may be ahead of the chain's.
    assert!(at_ms >= now || now - at_ms <= MAX_OPEN_DOCUMENT_AGE_MS, EDocumentTooOld);
    let registered_by = object::id(config);
    config.register(registered_by, attested)
}

/// Does what `finish_rotation` does, with the values of a document, but returns the enclave.
public(package) fun successor_of<T>(
    rotation: Rotation<T>,
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    attested: Attested,
): Enclave<T> {
    let Rotation { config_id } = rotation;
    assert!(config_id == object::id(config), EWrongConfig);
    config.enclave_of(cap, attested)
}

fun create_cap<T>(ctx: &mut TxContext): EnclaveCap<T> {
    let id = object::new(ctx);
    event::emit(EnclaveCapCreated<T> { capability_id: id.to_inner() });
    EnclaveCap { id }
}

/// Sets the registers. The caller has checked the capability, and the overlap if there is one.
fun set_pcrs<T>(
    config: &mut EnclaveConfig<T>,
    pcrs: Pcrs,
    source: Option<Source>,
    overlap: Option<Overlap>,
) {
    config.pcrs = pcrs;
    config.source = source;
    config.overlap = overlap;
    config.config_version = config.config_version + 1;
    event::emit(PcrsUpdated<T> {
        config_id: object::id(config),
        pcrs,
        source,
        config_version: config.config_version,
        overlap_until_ms: config.overlap_until_ms(),
    });
}

fun remove_registrar<T>(config: &mut EnclaveConfig<T>, registrar_id: ID) {
    config.registrars.remove(&registrar_id);
    event::emit(RegistrarCapRevoked<T> { config_id: object::id(config), registrar_id });
}

/// Registers an enclave. The caller has checked that `registered_by` is allowed to register.
fun register<T>(config: &mut EnclaveConfig<T>, registered_by: ID, attested: Attested): Enclave<T> {
    let (pcrs, pk, registered_at_ms) = attested.unpack();
    assert!(!config.is_retired, ERetired);
    assert!(pcrs == config.pcrs, EInvalidPCRs);
    assert!(pk.length() == PUBLIC_KEY_BYTES, EInvalidPublicKey);
    assert!(!config.was_registered(pk), EAlreadyRegistered);
    let config_id = object::id(config);
    let config_version = config.config_version;
    let id = derived_object::claim(&mut config.id, EnclaveKey { config_version, pk });
    event::emit(EnclaveRegistered<T> {
        enclave_id: id.to_inner(),
        config_id,
        config_version,
        pk,
        registered_at_ms,
        registered_by,
    });
    Enclave { id, pk, config_id, config_version, registered_at_ms }
}

fun destroy<T>(enclave: Enclave<T>) {
    let Enclave { id, pk, config_id, config_version, .. } = enclave;
    event::emit(EnclaveDestroyed<T> { enclave_id: id.to_inner(), config_id, config_version, pk });
    id.delete();
}

fun assert_cap<T>(config: &EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    assert!(object::id(cap) == config.capability_id, EInvalidCap);
}

fun assert_version<T>(config: &EnclaveConfig<T>) {
    assert!(config.package_version == PACKAGE_VERSION, EWrongPackageVersion);
}

/// Asserts that the capability made this config, and that this version of the package may change it.
fun assert_governs<T>(config: &EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_cap(cap);
    config.assert_version();
}

/// Asserts the same, and that the config is not retired: a retired config can't be changed.
fun assert_admin<T>(config: &EnclaveConfig<T>, cap: &EnclaveCap<T>) {
    config.assert_governs(cap);
    assert!(!config.is_retired, ERetired);
}

fun is_key_too_old<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>, now: u64): bool {
    let attested_at_ms = enclave.registered_at_ms;
    // The hypervisor's clock may be ahead of the chain's.
    config.max_key_age_ms.is_some_and!(|max| now > attested_at_ms && now - attested_at_ms > *max)
}

fun assert_config<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>) {
    assert!(enclave.config_id == object::id(config), EWrongConfig);
}

fun signed_bytes<P: drop>(intent: u8, timestamp_ms: u64, payload: P): vector<u8> {
    bcs::to_bytes(&IntentMessage { intent, timestamp_ms, payload })
}

// === For the tests of packages that use this one ===

#[test_only]
/// Returns a capability without a witness.
public fun new_cap_for_testing<T>(ctx: &mut TxContext): EnclaveCap<T> {
    EnclaveCap { id: object::new(ctx) }
}

#[test_only]
/// Returns a config that is not shared. Each byte of its registers is 1.
public fun new_config_for_testing<T>(cap: &EnclaveCap<T>, ctx: &mut TxContext): EnclaveConfig<T> {
    let pcr =
        x"010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101";
    cap.new_enclave_config(b"testing".to_string(), pcr, pcr, pcr, option::none(), ctx)
}

#[test_only]
/// Does what `new_config_for_testing` does, but the config is open.
public fun new_open_config_for_testing<T>(cap: &EnclaveCap<T>, ctx: &mut TxContext): EnclaveConfig<T> {
    let pcr =
        x"010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101";
    cap.new_open_enclave_config(b"testing".to_string(), pcr, pcr, pcr, option::none(), ctx)
}

#[test_only]
/// Returns an enclave that is not shared, with this public key and the config's latest version, attested at time 0.
public fun new_enclave_for_testing<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pk: vector<u8>,
): Enclave<T> {
    config.new_enclave_attested_at_for_testing(cap, pk, 0)
}

#[test_only]
/// Does what `new_enclave_for_testing` does, with a time of attestation in milliseconds since the Unix epoch.
public fun new_enclave_attested_at_for_testing<T>(
    config: &mut EnclaveConfig<T>,
    cap: &EnclaveCap<T>,
    pk: vector<u8>,
    registered_at_ms: u64,
): Enclave<T> {
    let pcrs = config.pcrs;
    config.enclave_of(cap, attested::new(pcrs, pk, registered_at_ms))
}

#[test_only]
/// Gives a config another package version, to test what this version of the package then refuses.
public fun set_package_version_for_testing<T>(config: &mut EnclaveConfig<T>, package_version: u64) {
    config.package_version = package_version;
}

#[test_only]
/// Returns the bytes that the enclave signs for these values: compare them with the bytes that your server signs.
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
