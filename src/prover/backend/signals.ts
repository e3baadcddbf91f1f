/** Lists the circuit's input signals, and checks an input against them. */
import { bn254_Fr } from '@noble/curves/bn254.js';
import type { CircuitInput } from '../input.ts';
import { type CircuitProfile, type CircuitSize, PROFILES } from '../profile.ts';
import { BackendError } from './errors.ts';

/**
 * Number of field elements of each signal, by the signal's name. A list has several; any other signal has
 * one.
 */
export type Signals = Readonly<Record<string, number>>;

/** Number of limbs of 64 bits in an RSA-2048 value. */
const LIMBS = 32;

export function countSignals(profile: CircuitProfile): Signals {
  return {
    padded_unsigned_jwt: profile.paddedUnsignedJwt,
    payload_start_index: 1,
    num_sha2_blocks: 1,
    payload_len: 1,
    signature: LIMBS,
    modulus: LIMBS,
    ...countClaimSignals('kc', profile.extendedSubject),
    kc_name_length: 1,
    kc_value_length: 1,
    ...countClaimSignals('nonce', profile.extendedNonce),
    eph_public_key: 2,
    max_epoch: 1,
    jwt_randomness: 1,
    ...countClaimSignals('ev', profile.extendedEmailVerified),
    ev_name_length: 1,
    ev_value_length: 1,
    ...countClaimSignals('aud', profile.extendedAudience),
    aud_value_length: 1,
    iss_index_b64: 1,
    iss_length_b64: 1,
    salt: 1,
    all_inputs_hash: 1,
  };
}

function countClaimSignals(prefix: string, characters: number): Signals {
  return {
    [`ext_${prefix}`]: characters,
    [`ext_${prefix}_length`]: 1,
    [`${prefix}_index_b64`]: 1,
    [`${prefix}_length_b64`]: 1,
    [`${prefix}_colon_index`]: 1,
    [`${prefix}_value_index`]: 1,
  };
}

/** Name of the signal that is the proof's public input. */
export const PUBLIC_SIGNAL = 'all_inputs_hash';

/** Number of digits of the field's order. Decimals with fewer digits are below the order. */
const ORDER_DIGITS = String(bn254_Fr.ORDER).length;

/**
 * Checks that an input has exactly the signals of a circuit. Each value must be a decimal string below the
 * order of BN254.
 *
 * @throws BACKEND_INPUT, which names the signal
 */
export function checkInput(input: unknown, size: CircuitSize): CircuitInput {
  const signals = countSignals(PROFILES[size]);
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw invalid('the input must be an object with the signals of the circuit');
  }
  const signalsByName = input as Readonly<Record<string, unknown>>;
  for (const [name, count] of Object.entries(signals)) {
    if (!Object.hasOwn(signalsByName, name)) throw invalid(`the signal ${name} is missing`);
    checkSignal(name, signalsByName[name], count, size);
  }
  if (Object.keys(signalsByName).length > Object.keys(signals).length) {
    throw invalid(`the input has an unknown signal: pass only ${Object.keys(signals).join(', ')}`);
  }
  return signalsByName as CircuitInput;
}

function checkSignal(name: string, value: unknown, count: number, size: CircuitSize): void {
  if (count === 1) {
    if (!isElement(value)) throw invalid(`${name} must be ${ELEMENT}`);
    return;
  }
  if (!Array.isArray(value) || value.length !== count) {
    throw invalid(`${name} must be a list of ${count} items: this service has the circuit of ${size} size`);
  }
  const index = value.findIndex((element) => !isElement(element));
  if (index !== -1) throw invalid(`${name}[${index}] must be ${ELEMENT}`);
}

const ELEMENT = 'an integer below the order of BN254, as a decimal string';

function isElement(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > ORDER_DIGITS || !/^(0|[1-9][0-9]*)$/.test(value))
    return false;
  return value.length < ORDER_DIGITS || BigInt(value) < bn254_Fr.ORDER;
}

function invalid(message: string): BackendError {
  return new BackendError('BACKEND_INPUT', message);
}
