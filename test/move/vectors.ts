/** Vectors that TypeScript and Move share, and the Move modules that are generated from them. */
import { readFileSync } from 'node:fs';
import { bcs } from '@mysten/sui/bcs';
import { ed25519 } from '@noble/curves/ed25519.js';

export interface Values {
  readonly intent: number;
  readonly timestamp_ms: string;
  readonly location: string;
  readonly temperature: string;
}

export interface TemperatureVector {
  readonly name: string;
  readonly timestamp_ms: string;
  readonly location: string;
  readonly celsius: number;
  readonly tenths_plus_100000: string;
  readonly bytes: string;
  readonly signature: string;
}

export interface Vectors {
  readonly messages: readonly (Values & { readonly name: string; readonly bytes: string })[];
  readonly signed: Values & { readonly public_key: string; readonly signature: string };
  /** Readings in tenths of a degree, signed by the key of the ed25519 seed of 32 bytes 07. */
  readonly temperatures: {
    readonly public_key: string;
    readonly readings: readonly TemperatureVector[];
  };
  /** An award for `enclave::once`, signed by two keys: ed25519 seeds of 32 bytes 07 and 08. */
  readonly once: {
    readonly intent: number;
    readonly timestamp_ms: string;
    readonly nonce: string;
    readonly recipient: string;
    readonly points: string;
    readonly bytes: string;
    readonly keys: readonly { readonly public_key: string; readonly signature: string }[];
  };
}

export const VECTORS: Vectors = JSON.parse(
  readFileSync(new URL('../vectors/bcs.json', import.meta.url), 'utf8'),
);

/** Formats a text as a Move expression of type `String`. */
export function moveText(text: string): string {
  return `x"${Buffer.from(text).toString('hex')}".to_string()`;
}

const HEADER =
  '// Generated from test/vectors by test/move/vectors.ts: `npx vitest run test/move -u` regenerates it.';

function signedValues(): string {
  const { public_key, intent, timestamp_ms, location, temperature, signature } = VECTORS.signed;
  return `// The parts of an answer that a production enclave signed.
public fun public_key(): vector<u8> {
    x"${public_key}"
}

public fun intent(): u8 {
    ${intent}
}

public fun timestamp_ms(): u64 {
    ${timestamp_ms}
}

public fun location(): String {
    ${moveText(location)}
}

public fun temperature(): u64 {
    ${temperature}
}

public fun signature(): vector<u8> {
    x"${signature}"
}
`;
}

/** Formats the award of `enclave::once`, as one function for each argument. */
function onceValues(): string {
  const { intent, timestamp_ms, nonce, recipient, points, bytes, keys } = VECTORS.once;
  const [first, second] = keys;
  return `
// The parts of an award that counts once, signed by two enclaves.
public fun once_intent(): u8 {
    ${intent}
}

public fun once_timestamp_ms(): u64 {
    ${timestamp_ms}
}

public fun nonce(): vector<u8> {
    x"${nonce}"
}

public fun recipient(): address {
    @0x${recipient}
}

public fun points(): u64 {
    ${points}
}

public fun once_bytes(): vector<u8> {
    x"${bytes}"
}

public fun once_key(): vector<u8> {
    x"${first?.public_key}"
}

public fun once_signature(): vector<u8> {
    x"${first?.signature}"
}

public fun other_once_key(): vector<u8> {
    x"${second?.public_key}"
}

public fun other_once_signature(): vector<u8> {
    x"${second?.signature}"
}
`;
}

/**
 * Formats the first reading in tenths of a degree, which is below zero, as one function for each argument.
 */
function temperatureValues(): string {
  const { public_key, readings } = VECTORS.temperatures;
  const [first] = readings;
  return `
// The parts of a reading below 0 °C in tenths of a degree, signed by an enclave with another key.
public fun temperature_key(): vector<u8> {
    x"${public_key}"
}

public fun temperature_location(): String {
    ${moveText(first?.location ?? '')}
}

public fun tenths_plus_100000(): u64 {
    ${first?.tenths_plus_100000}
}

public fun temperature_timestamp_ms(): u64 {
    ${first?.timestamp_ms}
}

public fun temperature_signature(): vector<u8> {
    x"${first?.signature}"
}
`;
}

/** Returns the content of `move/enclave/tests/vectors.move`. */
export function enclaveVectors(): string {
  return `${HEADER}
#[test_only]
module enclave::vectors;

use std::string::String;

${signedValues()}${onceValues()}`;
}

/** Returns the content of `move/weather/tests/vectors.move`. */
export function weatherVectors(): string {
  const tests = VECTORS.messages.map(
    ({ name, intent, timestamp_ms, location, temperature, bytes }) => `
#[test]
fun bcs_of_${name}() {
    let response = weather::new_response_for_testing(${moveText(location)}, ${temperature});
    assert_eq!(
        enclave::signed_bytes_for_testing(${intent}, ${timestamp_ms}, response),
        x"${bytes}",
    );
}
`,
  );
  const temperatures = VECTORS.temperatures.readings.map(
    ({ name, timestamp_ms, location, tenths_plus_100000, bytes }) => `
#[test]
fun bcs_of_temperature_${name}() {
    let response = weather::new_temperature_for_testing(${moveText(location)}, ${tenths_plus_100000});
    assert_eq!(
        enclave::signed_bytes_for_testing(1, ${timestamp_ms}, response),
        x"${bytes}",
    );
}
`,
  );
  return `${HEADER}
#[test_only]
module app::vectors;

use app::weather;
use enclave::enclave;
use std::string::String;
use std::unit_test::assert_eq;

${signedValues()}${onceValues()}${temperatureValues()}${[...tests, ...temperatures].join('')}`;
}

/** The message that an enclave signs for a `Feed`: the payload is `feed::feed::Quote`. */
export const FeedMessage = bcs.struct('IntentMessage', {
  intent: bcs.u8(),
  timestamp_ms: bcs.u64(),
  symbol: bcs.string(),
  decimals: bcs.u8(),
  value: bcs.u64(),
});

/** Time of the first signed quote, in milliseconds since the Unix epoch. */
const FEED_MS = 1_700_000_000_000;

/** Signed quotes: the signer's index, milliseconds after `FEED_MS`, and the value. */
const QUOTES: readonly (readonly [signer: number, offsetMs: number, value: bigint])[] = [
  [0, 0, 1_000_000n],
  [0, 1_000, 1_500_000n],
  [0, 4_999, 2_000_000n],
  [0, 5_000, 1_004_999n],
  [0, 5_000, 1_005_000n],
  [0, 5_000, 995_001n],
  [0, 5_000, 995_000n],
  [0, 29_999, 1_000_000n],
  [0, 30_000, 1_000_000n],
  [0, 0, 999n],
  [0, 0, 1_000n],
  [0, 0, 10_000_000n],
  [0, 0, 10_000_001n],
  [0, 0, 2n ** 64n - 1n],
  [0, 5_000, 1n],
  [1, 0, 2n ** 64n - 2n],
  [1, 0, 1_100_000n],
  [1, 0, 1_000_001n],
  [1, 5_000, 1_200_000n],
  [2, 1_000, 1_300_000n],
  [2, 5_000, 1_300_000n],
];

function encodeQuote(_signer: number, offsetMs: number, value: bigint): Uint8Array {
  const timestamp_ms = FEED_MS + offsetMs;
  const message = { intent: 3, timestamp_ms, symbol: 'SUI/USD', decimals: 6, value };
  return FeedMessage.serialize(message).toBytes();
}

/** Returns the content of `move/feed/tests/vectors.move`. */
export function feedVectors(): string {
  const keys = [7, 8, 9].map((byte) => new Uint8Array(32).fill(byte));
  const publicKeys = keys.map((key, signer) => {
    const hex = Buffer.from(ed25519.getPublicKey(key)).toString('hex');
    return `    if (signer == ${signer}) return x"${hex}";`;
  });
  const signatures = QUOTES.map(([signer, offsetMs, value]) => {
    const key = keys[signer] ?? new Uint8Array(32);
    const signature = ed25519.sign(encodeQuote(signer, offsetMs, value), key);
    const isQuote = `signer == ${signer} && offset_ms == ${offsetMs} && value == ${value}`;
    return `    if (${isQuote}) return\n        x"${Buffer.from(signature).toString('hex')}";`;
  });
  return `${HEADER}
#[test_only]
/// Quotes of SUI/USD with 6 decimals, signed with the intent 3 by the ed25519 keys whose seeds are 32 bytes 07, 08 or 09.
module feed::vectors;

/// The time of the first quote.
public fun start_ms(): u64 {
    ${FEED_MS}
}

/// The signed bytes of the first quote.
public fun message(): vector<u8> {
    x"${Buffer.from(encodeQuote(...(QUOTES[0] ?? [0, 0, 0n]))).toString('hex')}"
}

public fun public_key(signer: u64): vector<u8> {
${publicKeys.join('\n')}
    abort
}

/// Returns the signature of a value that was signed this many milliseconds after the first quote.
public fun signature(signer: u64, offset_ms: u64, value: u64): vector<u8> {
${signatures.join('\n')}
    abort
}
`;
}

/** Returns the content of `move/enclave/tests/real_document_cli_tests.move`. */
export function realDocumentTests(): string {
  const document = readFileSync(new URL('../vectors/nautilus-weather.hex', import.meta.url), 'utf8').trim();
  return `${HEADER}
/// Registers the attestation document of a production enclave, as the chain would have done at that time. Only the
/// VM of the Sui CLI can verify a document, so only \`sui move test\` runs this.
#[test_only]
module enclave::real_document_cli_tests;

use enclave::enclave::{Self, Enclave, EnclaveConfig};
use enclave::pcrs;
use enclave::vectors;
use std::unit_test::assert_eq;
use sui::clock;
use sui::nitro_attestation;
use sui::test_scenario;

public struct REAL_DOCUMENT_CLI_TESTS has drop {}

/// A time within the lifetime of the document's certificates, in milliseconds.
const NOW_MS: u64 = 1744684007462;
/// The time of the document, in milliseconds.
const MADE_AT_MS: u64 = 1744683923696;
const PCR0_AND_PCR1: vector<u8> =
    x"cbe1afb6ed0ff89f10295af0b802247ec5670da8f886e71a4226373b032c322f4e42c9c98288e7211682b258684505a2";
const PCR2: vector<u8> =
    x"21b9efbc184807662e966d34f390821309eeac6802309798826296bf3e8bec7c10edb30948c90ba67310f7b964fc500a";

#[test]
fun the_registers_and_the_key_are_those_of_the_document() {
    let mut scenario = test_scenario::begin(@0xA);
    let mut clock = clock::create_for_testing(scenario.ctx());
    clock.set_for_testing(NOW_MS);
    let cap = enclave::new_cap_for_testing<REAL_DOCUMENT_CLI_TESTS>(scenario.ctx());
    cap.create_enclave_config(b"real".to_string(), PCR0_AND_PCR1, PCR0_AND_PCR1, PCR2, scenario.ctx());

    scenario.next_tx(@0xA);
    let mut config = scenario.take_shared<EnclaveConfig<REAL_DOCUMENT_CLI_TESTS>>();
    let document = nitro_attestation::load_nitro_attestation(DOCUMENT, &clock);
    assert_eq!(pcrs::of_document(&document), pcrs::new(PCR0_AND_PCR1, PCR0_AND_PCR1, PCR2));
    config.register_enclave(&cap, document);

    scenario.next_tx(@0xA);
    let enclave = scenario.take_shared<Enclave<REAL_DOCUMENT_CLI_TESTS>>();
    assert_eq!(*enclave.pk(), vectors::public_key());
    assert_eq!(enclave.registered_at_ms(), MADE_AT_MS);

    test_scenario::return_shared(enclave);
    test_scenario::return_shared(config);
    cap.destroy_cap_for_testing();
    clock.destroy_for_testing();
    scenario.end();
}

#[test, expected_failure(abort_code = enclave::EInvalidPCRs)]
fun another_image_is_refused() {
    let mut ctx = tx_context::dummy();
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(NOW_MS);
    let cap = enclave::new_cap_for_testing<REAL_DOCUMENT_CLI_TESTS>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    config.register_enclave(&cap, nitro_attestation::load_nitro_attestation(DOCUMENT, &clock));
    abort
}

#[test]
fun one_transaction_creates_and_shares_a_config_and_an_enclave() {
    let mut scenario = test_scenario::begin(@0xA);
    let mut clock = clock::create_for_testing(scenario.ctx());
    clock.set_for_testing(NOW_MS);
    let cap = enclave::new_cap_for_testing<REAL_DOCUMENT_CLI_TESTS>(scenario.ctx());
    let mut config = cap.new_enclave_config(
        b"real".to_string(),
        PCR0_AND_PCR1,
        PCR0_AND_PCR1,
        PCR2,
        option::none(),
        scenario.ctx(),
    );
    config.new_enclave(&cap, nitro_attestation::load_nitro_attestation(DOCUMENT, &clock)).share();
    config.share();

    scenario.next_tx(@0xA);
    assert!(test_scenario::has_most_recent_shared<EnclaveConfig<REAL_DOCUMENT_CLI_TESTS>>());
    assert!(test_scenario::has_most_recent_shared<Enclave<REAL_DOCUMENT_CLI_TESTS>>());
    cap.destroy_cap_for_testing();
    clock.destroy_for_testing();
    scenario.end();
}

#[test]
fun a_registrar_registers_the_document() {
    let mut ctx = tx_context::dummy();
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(NOW_MS);
    let cap = enclave::new_cap_for_testing<REAL_DOCUMENT_CLI_TESTS>(&mut ctx);
    let mut config = cap.new_enclave_config(
        b"real".to_string(),
        PCR0_AND_PCR1,
        PCR0_AND_PCR1,
        PCR2,
        option::none(),
        &mut ctx,
    );
    let registrar = config.new_registrar_cap(&cap, &mut ctx);
    config.register_enclave_as_registrar(
        &registrar,
        nitro_attestation::load_nitro_attestation(DOCUMENT, &clock),
    );
    assert!(config.was_registered(vectors::public_key()));
    registrar.destroy_registrar_cap(&mut config);
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    clock.destroy_for_testing();
}

#[test]
fun anyone_registers_the_document_under_an_open_config() {
    let mut ctx = tx_context::dummy();
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(NOW_MS);
    let cap = enclave::new_cap_for_testing<REAL_DOCUMENT_CLI_TESTS>(&mut ctx);
    let mut config = cap.new_open_enclave_config(
        b"real".to_string(),
        PCR0_AND_PCR1,
        PCR0_AND_PCR1,
        PCR2,
        option::none(),
        &mut ctx,
    );
    config.register_enclave_as_anyone(nitro_attestation::load_nitro_attestation(DOCUMENT, &clock), &clock);
    assert!(config.was_registered(vectors::public_key()));
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    clock.destroy_for_testing();
}

#[test]
fun a_rotation_registers_the_successor() {
    let mut ctx = tx_context::dummy();
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(NOW_MS);
    let cap = enclave::new_cap_for_testing<REAL_DOCUMENT_CLI_TESTS>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let document = nitro_attestation::load_nitro_attestation(DOCUMENT, &clock);
    let rotation = config.begin_rotation(&cap, PCR0_AND_PCR1, PCR0_AND_PCR1, PCR2, option::none());
    rotation.finish_rotation(&mut config, &cap, document);
    assert_eq!(config.current_config_version(), 1);
    assert!(config.was_registered(vectors::public_key()));
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
    clock.destroy_for_testing();
}

const DOCUMENT: vector<u8> =
    x"${document}";
`;
}
