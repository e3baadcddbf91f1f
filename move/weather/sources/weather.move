/// Weather that a registered enclave read and signed, as an NFT.
module app::weather;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use std::string::String;
use sui::clock::Clock;

/// The intent code of `WeatherResponse` on the server.
const WEATHER_INTENT: u8 = 0;
/// The intent code of `Temperature`.
const TEMPERATURE_INTENT: u8 = 1;
/// The server's readings are at most an hour old, so a sender has at least half an hour to submit one.
const MAX_AGE_MS: u64 = 90 * 60 * 1000;

/// The one-time witness of this module. It is also the type that names the application of its enclaves.
public struct WEATHER has drop {}

/// The payload that the server signs. BCS has no names: the order and the types are the format.
public struct WeatherResponse has copy, drop {
    location: String,
    temperature: u64,
}

/// The payload of `POST /temperature`: tenths of a degree Celsius, plus 100000, so that readings below 0 °C fit.
public struct Temperature has copy, drop {
    location: String,
    tenths_plus_100000: u64,
}

/// A signed reading on chain.
public struct WeatherNFT has key, store {
    id: UID,
    location: String,
    temperature: u64,
    timestamp_ms: u64,
}

/// A signed reading in tenths of a degree.
public struct TemperatureNFT has key, store {
    id: UID,
    location: String,
    tenths_plus_100000: u64,
    timestamp_ms: u64,
}

/// Sends the capability to the publisher. It creates no config, since a config needs the registers of a built image.
fun init(otw: WEATHER, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}

/// Mints a reading that an enclave of the latest version signed at most 90 minutes ago; see `enclave::assert_signed`
/// for everything that aborts.
///
/// It accepts any config of this application that is not retired. To accept one config only, a contract stores the
/// config's id and compares it: see "Once, and for one config" in src/library/sui/README.md.
///
/// A reading is true no matter who submits it: several senders may use the same signature, several times, until it is too
/// old.
public fun update_weather(
    location: String,
    temperature: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    enclave: &Enclave<WEATHER>,
    config: &EnclaveConfig<WEATHER>,
    clock: &Clock,
    ctx: &mut TxContext,
): WeatherNFT {
    let response = WeatherResponse { location, temperature };
    enclave.assert_signed(config, clock, MAX_AGE_MS, WEATHER_INTENT, timestamp_ms, response, sig);
    WeatherNFT { id: object::new(ctx), location, temperature, timestamp_ms }
}

/// Mints a reading in tenths of a degree, which may be below 0 °C, under the same conditions as `update_weather`. The
/// intents differ, so neither accepts what was signed for the other.
public fun update_temperature(
    location: String,
    tenths_plus_100000: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    enclave: &Enclave<WEATHER>,
    config: &EnclaveConfig<WEATHER>,
    clock: &Clock,
    ctx: &mut TxContext,
): TemperatureNFT {
    let response = Temperature { location, tenths_plus_100000 };
    enclave.assert_signed(config, clock, MAX_AGE_MS, TEMPERATURE_INTENT, timestamp_ms, response, sig);
    TemperatureNFT { id: object::new(ctx), location, tenths_plus_100000, timestamp_ms }
}

/// Returns the place, as requested.
public fun location(nft: &WeatherNFT): &String {
    &nft.location
}

/// Returns the temperature in whole degrees Celsius.
public fun temperature(nft: &WeatherNFT): u64 {
    nft.temperature
}

/// Returns the time of the reading, in milliseconds since the Unix epoch.
public fun timestamp_ms(nft: &WeatherNFT): u64 {
    nft.timestamp_ms
}

public use fun temperature_location as TemperatureNFT.location;

/// Returns the place, as requested.
public fun temperature_location(nft: &TemperatureNFT): &String {
    &nft.location
}

/// Returns the temperature in tenths of a degree Celsius, plus 100000: 99996 is -0.4 °C.
public fun tenths_plus_100000(nft: &TemperatureNFT): u64 {
    nft.tenths_plus_100000
}

public use fun temperature_timestamp_ms as TemperatureNFT.timestamp_ms;

/// Returns the time of the reading, in milliseconds since the Unix epoch.
public fun temperature_timestamp_ms(nft: &TemperatureNFT): u64 {
    nft.timestamp_ms
}

#[test_only]
/// Calls `init`, as publishing does.
public fun init_for_testing(otw: WEATHER, ctx: &mut TxContext) {
    init(otw, ctx)
}

#[test_only]
/// Returns a response as an enclave signs it.
public fun new_response_for_testing(location: String, temperature: u64): WeatherResponse {
    WeatherResponse { location, temperature }
}

#[test_only]
/// Returns a response of `POST /temperature` as an enclave signs it.
public fun new_temperature_for_testing(location: String, tenths_plus_100000: u64): Temperature {
    Temperature { location, tenths_plus_100000 }
}
