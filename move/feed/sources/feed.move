/// A value on chain, such as a price, that registered enclaves sign and anyone may write.
///
/// The holder of an `EnclaveCap` creates a `Feed` with `Rules`. Every update is checked against them, and nobody can change
/// them or delete the feed. Its value is the median of the values that enclaves of at least `threshold` configs
/// signed. A config is one image under one admin: two enclaves of one config may have one operator, so a config has one
/// value in an update. Two configs may also have one admin: no contract can tell who holds their capabilities.
///
/// A reader must pin the id of its feed: the holder of a capability of `T` can create another feed of `T` with lax rules,
/// and anyone can create one of a type of their own. See `read` and `read_checked`.
///
/// A writer chooses among the signed values that the rules allow, and may write several of them in one transaction:
/// the rules compare the signed times, and no rule knows when a value was written.
module feed::feed;

use enclave::enclave::{Enclave, EnclaveCap, EnclaveConfig};
use std::string::String;
use sui::clock::Clock;
use sui::event;

// Clients tell errors apart by these codes, which never change, or by the names.

#[error(code = 1)]
const EInvalidSymbol: vector<u8> = b"A symbol is 1 to 32 printable ASCII characters";
#[error(code = 2)]
const EInvalidDecimals: vector<u8> = b"A value has at most 18 decimals";
#[error(code = 3)]
const EInvalidBounds: vector<u8> = b"The bounds must be more than 0, the lower one first";
#[error(code = 4)]
const EInvalidTimes: vector<u8> =
    b"The interval must be at most the heartbeat, and the heartbeat less than the maximum age";
#[error(code = 5)]
const EInvalidMove: vector<u8> = b"The least move is at most 10000 basis points";
#[error(code = 6)]
const EInvalidConfigs: vector<u8> = b"A feed accepts 1 to 16 different configs";
#[error(code = 7)]
const EInvalidThreshold: vector<u8> = b"The threshold is from 1 to the number of configs";
#[error(code = 8)]
const EWrongFeed: vector<u8> = b"The round or check was begun with another feed";
#[error(code = 9)]
const EConfigNotListed: vector<u8> = b"The feed does not accept this config";
#[error(code = 10)]
const EConfigRepeated: vector<u8> = b"The round has a value of this config already";
#[error(code = 11)]
const EOutOfBounds: vector<u8> = b"The value is outside of the feed's bounds";
#[error(code = 12)]
const EAheadOfClock: vector<u8> = b"The time of the value is more than 10 seconds ahead of the clock";
#[error(code = 13)]
const ETooFewValues: vector<u8> = b"The feed needs values of more configs";
#[error(code = 14)]
const ENotNewer: vector<u8> = b"The value is not newer than the feed's";
#[error(code = 15)]
const ETooSoon: vector<u8> = b"The feed has a value of less than the minimum interval before";
#[error(code = 16)]
const ENotDue: vector<u8> = b"The value has hardly moved, and the heartbeat is not due";
#[error(code = 17)]
const ENoValue: vector<u8> = b"The feed has no value yet";
#[error(code = 18)]
const ETooOld: vector<u8> = b"The feed's value is older than its maximum age";
#[error(code = 19)]
const EConfigRetired: vector<u8> = b"The config of a value in the last update is retired";
#[error(code = 20)]
const EVersionNotAccepted: vector<u8> = b"The config no longer accepts the version that signed a value of the last update";
#[error(code = 21)]
const EConfigNotChecked: vector<u8> = b"The config of a value in the last update was not checked";
#[error(code = 22)]
const EUpdatedSince: vector<u8> = b"The feed was updated after the check began";

const MAX_SYMBOL_BYTES: u64 = 32;
/// With 18 decimals, a `u64` can hold values up to 18.
const MAX_DECIMALS: u8 = 18;
const MAX_CONFIGS: u64 = 16;
const BASIS_POINTS: u64 = 10_000;
/// Maximum lead of a value over the chain's clock. `enclave::assert_signed` allows a minute; here, a lead makes a value
/// seem younger than it is, and delays the next one.
const MAX_AHEAD_MS: u64 = 10_000;

/// A value of the application `T`, with the rules of its updates. Shared, and never deleted.
public struct Feed<phantom T> has key {
    id: UID,
    rules: Rules,
    last: Option<Update>,
}

/// The rules against which a feed checks updates. Times are in milliseconds.
public struct Rules has copy, drop, store {
    intent: u8,
    symbol: String,
    decimals: u8,
    min_value: u64,
    max_value: u64,
    max_age_ms: u64,
    min_interval_ms: u64,
    min_move_bps: u64,
    heartbeat_ms: u64,
    threshold: u64,
    config_ids: vector<ID>,
}

/// An update: the median of the values, the time of the oldest value, and every signed value.
public struct Update has copy, drop, store {
    value: u64,
    timestamp_ms: u64,
    signed: vector<SignedValue>,
}

/// A value that an enclave signed, and the version of the config at which the enclave was registered.
public struct SignedValue has copy, drop, store {
    config_id: ID,
    config_version: u64,
    enclave_id: ID,
    value: u64,
    timestamp_ms: u64,
}

/// The payload that an enclave signs. BCS has no names: the order and the types are the format.
public struct Quote has copy, drop {
    symbol: String,
    decimals: u8,
    value: u64,
}

/// An unfinished update. Only `finish` of the same transaction can consume it.
public struct Round<phantom T> {
    feed_id: ID,
    signed: vector<SignedValue>,
}

/// The configs of the last update that were checked in this transaction: see `begin_check`.
public struct Check<phantom T> has drop {
    feed_id: ID,
    timestamp_ms: u64,
    config_ids: vector<ID>,
}

/// A feed was created.
public struct FeedCreated<phantom T> has copy, drop {
    feed_id: ID,
    capability_id: ID,
    rules: Rules,
}

/// A feed has a new value.
public struct FeedUpdated<phantom T> has copy, drop {
    feed_id: ID,
    value: u64,
    timestamp_ms: u64,
    signed: vector<SignedValue>,
}

// === Creation ===

/// Returns rules for `create`.
///
/// Enclaves sign a `Quote` with this intent, which they use for nothing else, and with this symbol and number of decimals.
/// A value is a multiple of 10 to the power of minus `decimals`, from `min_value` to `max_value`: never 0, so that readers
/// can divide by it.
///
/// A value older than `max_age_ms` by the `Clock` can be neither written nor read. An update must be at least
/// `min_interval_ms` newer than the last. Unless it is `heartbeat_ms` newer, its value must also differ from the last value
/// by at least `min_move_bps` hundredths of a percent. The interval and the heartbeat compare the signed timestamps.
///
/// An update has values of at least `threshold` configs among `config_ids`. To withstand `f` configs that lie, the
/// threshold must be 2 `f` + 1: the median is then within the honest values. With a threshold of 2, the value can
/// be the mean of two values: a single config that lies then moves the mean by half of its error.
public fun new_rules(
    intent: u8,
    symbol: String,
    decimals: u8,
    min_value: u64,
    max_value: u64,
    max_age_ms: u64,
    min_interval_ms: u64,
    min_move_bps: u64,
    heartbeat_ms: u64,
    threshold: u64,
    config_ids: vector<ID>,
): Rules {
    assert!(is_symbol(&symbol), EInvalidSymbol);
    assert!(decimals <= MAX_DECIMALS, EInvalidDecimals);
    assert!(min_value > 0 && min_value <= max_value, EInvalidBounds);
    assert!(min_interval_ms <= heartbeat_ms && heartbeat_ms < max_age_ms, EInvalidTimes);
    assert!(min_move_bps <= BASIS_POINTS, EInvalidMove);
    assert!(is_config_list(&config_ids), EInvalidConfigs);
    assert!(threshold > 0 && threshold <= config_ids.length(), EInvalidThreshold);
    Rules {
        intent,
        symbol,
        decimals,
        min_value,
        max_value,
        max_age_ms,
        min_interval_ms,
        min_move_bps,
        heartbeat_ms,
        threshold,
        config_ids,
    }
}

/// Creates and shares a feed without a value. Any capability of `T` may create one, so readers pin its id.
///
/// Nothing checks here that the ids in the rules are ids of configs. No update can have a value for another id.
public fun create<T>(cap: &EnclaveCap<T>, rules: Rules, ctx: &mut TxContext) {
    let id = object::new(ctx);
    event::emit(FeedCreated<T> { feed_id: id.to_inner(), capability_id: object::id(cap), rules });
    transfer::share_object(Feed<T> { id, rules, last: option::none() });
}

// === Updates ===

/// Writes the value of one enclave, for a feed whose threshold is 1. See `add` and `finish` for what aborts.
public fun update<T>(
    feed: &mut Feed<T>,
    enclave: &Enclave<T>,
    config: &EnclaveConfig<T>,
    clock: &Clock,
    timestamp_ms: u64,
    value: u64,
    signature: &vector<u8>,
) {
    let mut round = feed.begin();
    round.add(feed, enclave, config, clock, timestamp_ms, value, signature);
    round.finish(feed);
}

/// Begins an update: `add` adds values to it, and `finish` writes it. Anyone may call these: only the signatures matter.
public fun begin<T>(feed: &Feed<T>): Round<T> {
    Round { feed_id: object::id(feed), signed: vector[] }
}

/// Adds the value that an enclave signed for this feed's symbol at `timestamp_ms`, in milliseconds since the Unix epoch:
/// the time of the oldest source that it used.
///
/// Aborts as `enclave::assert_signed` does, with the feed's intent and maximum age; if the feed doesn't accept the config;
/// if the round already has a value of the config; if the value is out of bounds; or if its time is more than 10 seconds
/// ahead of the Clock.
public fun add<T>(
    round: &mut Round<T>,
    feed: &Feed<T>,
    enclave: &Enclave<T>,
    config: &EnclaveConfig<T>,
    clock: &Clock,
    timestamp_ms: u64,
    value: u64,
    signature: &vector<u8>,
) {
    assert!(round.feed_id == object::id(feed), EWrongFeed);
    let config_id = object::id(config);
    let rules = &feed.rules;
    assert!(rules.config_ids.contains(&config_id), EConfigNotListed);
    assert!(!has_value_of(&round.signed, config_id), EConfigRepeated);
    assert!(value >= rules.min_value && value <= rules.max_value, EOutOfBounds);
    let now = clock.timestamp_ms();
    assert!(timestamp_ms <= now || timestamp_ms - now <= MAX_AHEAD_MS, EAheadOfClock);
    let quote = Quote { symbol: rules.symbol, decimals: rules.decimals, value };
    enclave.assert_signed(config, clock, rules.max_age_ms, rules.intent, timestamp_ms, quote, signature);
    round.signed.push_back(SignedValue {
        config_id,
        config_version: enclave.config_version(),
        enclave_id: object::id(enclave),
        value,
        timestamp_ms,
    });
}

/// Writes the median of the values, with the time of the oldest. The median of an even number of values is the mean of the
/// middle two, rounded down.
///
/// Aborts if there are fewer values than the threshold; if the time is not newer than the feed's; if it is newer by
/// less than the minimum interval; or if the median has moved by less than the minimum move and the heartbeat is not due.
public fun finish<T>(round: Round<T>, feed: &mut Feed<T>) {
    let Round { feed_id, signed } = round;
    assert!(feed_id == object::id(feed), EWrongFeed);
    assert!(signed.length() >= feed.rules.threshold, ETooFewValues);
    let value = median(&signed);
    let timestamp_ms = oldest(&signed);
    feed.last.do_ref!(|last| assert_due(&feed.rules, last, value, timestamp_ms));
    event::emit(FeedUpdated<T> { feed_id, value, timestamp_ms, signed });
    feed.last = option::some(Update { value, timestamp_ms, signed });
}

// === Reading ===

/// Returns the value, and its time in milliseconds since the Unix epoch. Aborts before the first update, and if
/// the value is older than the maximum age; the age of a value with a time ahead of the Clock is 0.
///
/// It checks no config: a value from an image that is no longer trusted can be read until it is too old. `read_trusted`
/// and `read_checked` refuse such a value.
///
/// Pin the feed: store its id, and compare it with `object::id(feed)` before you call this.
public fun read<T>(feed: &Feed<T>, clock: &Clock): (u64, u64) {
    assert!(feed.last.is_some(), ENoValue);
    let Update { value, timestamp_ms, .. } = feed.last.borrow();
    let now = clock.timestamp_ms();
    assert!(*timestamp_ms >= now || now - *timestamp_ms <= feed.rules.max_age_ms, ETooOld);
    (*value, *timestamp_ms)
}

/// Does what `read_checked` does, for a feed whose last update has the value of one config only.
public fun read_trusted<T>(feed: &Feed<T>, config: &EnclaveConfig<T>, clock: &Clock): (u64, u64) {
    let mut check = feed.begin_check();
    check.check_config(feed, config, clock);
    check.read_checked(feed, clock)
}

/// Begins a check of the configs of the last update. Call `check_config` for each of them, then `read_checked`.
///
/// Aborts if the feed has no value.
public fun begin_check<T>(feed: &Feed<T>): Check<T> {
    assert!(feed.last.is_some(), ENoValue);
    let timestamp_ms = feed.last.borrow().timestamp_ms;
    Check { feed_id: object::id(feed), timestamp_ms, config_ids: vector[] }
}

/// Aborts if the last update has a value of this config, and the config is retired or no longer accepts the version that
/// signed the value. A config without a value in the last update changes nothing, so a reader can always pass every config
/// that the feed lists.
///
/// Destroying an enclave does not invalidate its value: for that, retire the config or update its registers.
public fun check_config<T>(check: &mut Check<T>, feed: &Feed<T>, config: &EnclaveConfig<T>, clock: &Clock) {
    check.assert_current(feed);
    let config_id = object::id(config);
    feed.last.borrow().signed.do_ref!(|signed| if (signed.config_id == config_id) {
        assert!(!config.is_retired(), EConfigRetired);
        assert!(is_accepted(signed.config_version, config, clock), EVersionNotAccepted);
    });
    check.config_ids.push_back(config_id);
}

/// Does what `read` does, after the config of every value in the last update was checked in this transaction.
public fun read_checked<T>(check: Check<T>, feed: &Feed<T>, clock: &Clock): (u64, u64) {
    check.assert_current(feed);
    feed.last.borrow().signed.do_ref!(|signed| {
        assert!(check.config_ids.contains(&signed.config_id), EConfigNotChecked);
    });
    feed.read(clock)
}

/// Returns the rules against which the feed checks updates.
public fun rules<T>(feed: &Feed<T>): &Rules {
    &feed.rules
}

/// Returns whether the feed has a value, of whatever age.
public fun has_value<T>(feed: &Feed<T>): bool {
    feed.last.is_some()
}

/// Returns the values of the last update; empty before the first update.
public fun signed_values<T>(feed: &Feed<T>): vector<SignedValue> {
    if (feed.last.is_some()) feed.last.borrow().signed else vector[]
}

/// Returns the intent with which enclaves sign.
public fun intent(rules: &Rules): u8 {
    rules.intent
}

/// Returns the symbol that enclaves sign.
public fun symbol(rules: &Rules): &String {
    &rules.symbol
}

/// Returns the number of decimals of a value.
public fun decimals(rules: &Rules): u8 {
    rules.decimals
}

/// Returns the lowest value.
public fun min_value(rules: &Rules): u64 {
    rules.min_value
}

/// Returns the highest value.
public fun max_value(rules: &Rules): u64 {
    rules.max_value
}

/// Returns the maximum age of a value that is written or read, in milliseconds.
public fun max_age_ms(rules: &Rules): u64 {
    rules.max_age_ms
}

/// Returns the minimum time between two updates, in milliseconds.
public fun min_interval_ms(rules: &Rules): u64 {
    rules.min_interval_ms
}

/// Returns the minimum move of an update before the heartbeat is over, in hundredths of a percent.
public fun min_move_bps(rules: &Rules): u64 {
    rules.min_move_bps
}

/// Returns the time since the last update after which the next needs no minimum move, in milliseconds.
public fun heartbeat_ms(rules: &Rules): u64 {
    rules.heartbeat_ms
}

/// Returns the number of configs from which an update needs values.
public fun threshold(rules: &Rules): u64 {
    rules.threshold
}

/// Returns the ids of the configs whose enclaves may sign.
public fun config_ids(rules: &Rules): &vector<ID> {
    &rules.config_ids
}

/// Returns the id of the config of the enclave that signed.
public fun config_id(signed: &SignedValue): ID {
    signed.config_id
}

/// Returns the version of the config at which the enclave was registered.
public fun config_version(signed: &SignedValue): u64 {
    signed.config_version
}

/// Returns the id of the enclave that signed.
public fun enclave_id(signed: &SignedValue): ID {
    signed.enclave_id
}

/// Returns the value that the enclave signed.
public fun value(signed: &SignedValue): u64 {
    signed.value
}

/// Returns the time of the oldest source of the value, in milliseconds since the Unix epoch.
public fun timestamp_ms(signed: &SignedValue): u64 {
    signed.timestamp_ms
}

// === Checks ===

fun is_symbol(symbol: &String): bool {
    let mut is_printable = symbol.length() > 0 && symbol.length() <= MAX_SYMBOL_BYTES;
    symbol.as_bytes().do_ref!(|byte| if (*byte < 0x20 || *byte > 0x7e) is_printable = false);
    is_printable
}

/// Returns whether there are 1 to 16 ids, and none twice.
fun is_config_list(config_ids: &vector<ID>): bool {
    let length = config_ids.length();
    if (length == 0 || length > MAX_CONFIGS) return false;
    let mut i = 0;
    while (i < length) {
        let (_, first) = config_ids.index_of(&config_ids[i]);
        if (first != i) return false;
        i = i + 1;
    };
    true
}

fun has_value_of(signed: &vector<SignedValue>, config_id: ID): bool {
    let mut has_value = false;
    signed.do_ref!(|value| if (value.config_id == config_id) has_value = true);
    has_value
}

/// Aborts if the update may not follow the last one.
fun assert_due(rules: &Rules, last: &Update, value: u64, timestamp_ms: u64) {
    assert!(timestamp_ms > last.timestamp_ms, ENotNewer);
    let elapsed_ms = timestamp_ms - last.timestamp_ms;
    assert!(elapsed_ms >= rules.min_interval_ms, ETooSoon);
    assert!(elapsed_ms >= rules.heartbeat_ms || has_moved(last.value, value, rules.min_move_bps), ENotDue);
}

/// Returns whether a value moved enough. Each product is of a `u64` and a number of at most 10000, so none overflows.
fun has_moved(before: u64, after: u64, min_move_bps: u64): bool {
    let difference = if (after > before) after - before else before - after;
    (difference as u128) * (BASIS_POINTS as u128) >= (before as u128) * (min_move_bps as u128)
}

/// Applies the rule of `enclave::is_stale`, which needs the enclave itself, to a version alone.
fun is_accepted<T>(config_version: u64, config: &EnclaveConfig<T>, clock: &Clock): bool {
    let versions_behind = config.current_config_version() - config_version;
    versions_behind == 0 || (versions_behind == 1 && config.is_overlapping(clock))
}

fun assert_current<T>(check: &Check<T>, feed: &Feed<T>) {
    assert!(check.feed_id == object::id(feed), EWrongFeed);
    // No two updates have the same time.
    assert!(check.timestamp_ms == feed.last.borrow().timestamp_ms, EUpdatedSince);
}

fun oldest(signed: &vector<SignedValue>): u64 {
    let mut oldest = signed[0].timestamp_ms;
    signed.do_ref!(|value| if (value.timestamp_ms < oldest) oldest = value.timestamp_ms);
    oldest
}

fun median(signed: &vector<SignedValue>): u64 {
    let values = sorted_values(signed);
    let middle = values.length() / 2;
    let upper = values[middle];
    if (values.length() % 2 == 1) return upper;
    let lower = values[middle - 1];
    // The sum of both could overflow.
    lower + (upper - lower) / 2
}

/// Returns the values, the lowest first.
fun sorted_values(signed: &vector<SignedValue>): vector<u64> {
    let mut values = vector[];
    signed.do_ref!(|value| {
        values.push_back(value.value);
        let mut i = values.length() - 1;
        while (i > 0 && values[i - 1] > values[i]) {
            values.swap(i - 1, i);
            i = i - 1;
        }
    });
    values
}

// === For the tests of packages that use this one ===

#[test_only]
/// Returns the payload that an enclave signs for a feed with these rules.
public fun new_quote_for_testing(rules: &Rules, value: u64): Quote {
    Quote { symbol: rules.symbol, decimals: rules.decimals, value }
}

#[test_only]
/// Returns the median of the values of an update.
public fun median_for_testing(values: vector<u64>): u64 {
    let id = object::id_from_address(@0x0);
    median(&values.map!(|value| SignedValue {
        config_id: id,
        config_version: 0,
        enclave_id: id,
        value,
        timestamp_ms: 0,
    }))
}

#[test_only]
/// Returns whether a value has moved enough to be written before the heartbeat.
public fun has_moved_for_testing(before: u64, after: u64, min_move_bps: u64): bool {
    has_moved(before, after, min_move_bps)
}
