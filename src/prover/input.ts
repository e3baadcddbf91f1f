/** Turns a request for a proof into the witness generator's input, and checks every limit of the profile. */
import { genAddressSeed, poseidonHash } from '@mysten/sui/zklogin';
import { valueFault } from 'sui-enclave/token/claims';
import { normalizeIssuer } from 'sui-enclave/token/issuer';
import {
  type BigNumber,
  EXTENDED_KEY_SIZES,
  isNumber,
  readNumber,
  SALT_SIZE,
} from 'sui-enclave/zklogin/numbers';
import type { ProofRequest } from 'sui-enclave/zklogin/services';
import { KeyClaimError, ProverError } from './errors.ts';
import { type PayloadProperty, parseProperties } from './payload.ts';
import { type CircuitProfile, PROFILES } from './profile.ts';
import { computePublicInput, splitKey } from './public_input.ts';

/** Key that signed the token, in the form that an issuer publishes (RFC 7517). */
export interface SigningKey {
  readonly kty?: unknown;
  /** Modulus of the key in base64url. */
  readonly n?: unknown;
  /** Exponent of the key in base64url. */
  readonly e?: unknown;
}

/** Input of the witness generator: decimal integers by the name of the circuit's signal. It is private. */
export type CircuitInput = Readonly<Record<string, string | readonly string[]>>;

export interface BuiltInput {
  readonly circuit: CircuitInput;
  readonly publicInput: bigint;
  readonly addressSeed: bigint;
  /** Property of the service's answer, like `headerBase64`. */
  readonly issBase64Details: { readonly value: string; readonly indexMod4: number };
  readonly headerBase64: string;
}

interface Token {
  readonly unsigned: string;
  readonly headerBase64: string;
  /** Index of the payload in `unsigned`. */
  readonly payloadStart: number;
  readonly payloadLength: number;
  readonly signature: bigint;
  readonly properties: Map<string, PayloadProperty>;
}

/** Numbers of a request, as integers. */
export interface Numbers {
  readonly key: bigint;
  readonly maxEpoch: bigint;
  readonly randomness: bigint;
  readonly salt: bigint;
}

const RSA_BITS = 2048;
const LIMB_BITS = 64;
/** Exponent 65537 in base64url. */
const EXPONENT = 'AQAB';
/** Minimum padding of SHA-256 in bytes: one byte, and 8 bytes of length (FIPS 180-4, section 5.1.1). */
const MIN_PADDING = 9;
const BLOCK = 64;
const MAX_EPOCH = 2n ** 64n - 1n;

/**
 * Builds the input for a token whose signature, algorithm and time have already been checked. Of these three,
 * the circuit proves only the signature.
 *
 * @throws ProverError
 */
export function buildInput(request: ProofRequest, key: SigningKey, profile: CircuitProfile): BuiltInput {
  const numbers = readNumbers(request);
  const token = readToken(request.jwt, profile);
  const modulus = readModulus(key);
  if (token.signature >= modulus)
    throw new ProverError('PROVER_TOKEN', "the token's signature was not made with this key");

  const keyClaim = requireKeyClaim(token.properties, request.keyClaimName, profile);
  const audience = requireTextClaim(
    token.properties,
    'aud',
    profile.audience,
    profile.extendedAudience,
    profile,
  );
  const nonce = requireNonce(token.properties, numbers, profile);
  const emailVerified =
    request.keyClaimName === 'email' ? requireEmailVerified(token.properties, profile) : nonce;
  const issuer = requireIssuer(token, profile);
  const addressSeed = genAddressSeed(
    numbers.salt,
    request.keyClaimName,
    keyClaim.value as string,
    audience.value as string,
  );

  const { headerBase64 } = token;
  const { index, length } = computePosition(issuer, token);
  const issBase64Details = {
    value: token.unsigned.slice(index, index + length),
    indexMod4: (index - token.payloadStart) % 4,
  };
  const { key: extendedEphemeralPublicKey, maxEpoch } = numbers;
  const publicInput = computePublicInput(
    { extendedEphemeralPublicKey, addressSeed, maxEpoch, issBase64Details, headerBase64, modulus },
    profile,
  );
  return {
    circuit: {
      ...buildMessageSignals(token, profile),
      signature: splitLimbs(token.signature),
      modulus: splitLimbs(modulus),
      ...buildClaimSignals('kc', keyClaim, token, profile.extendedSubject),
      kc_name_length: String(keyClaim.nameLength),
      kc_value_length: String(keyClaim.valueLength),
      ...buildClaimSignals('nonce', nonce, token, profile.extendedNonce),
      eph_public_key: splitKey(numbers.key).map(String),
      max_epoch: String(maxEpoch),
      jwt_randomness: String(numbers.randomness),
      ...buildClaimSignals('ev', emailVerified, token, profile.extendedEmailVerified),
      ev_name_length: String(emailVerified.nameLength),
      ev_value_length: String(emailVerified.valueLength),
      ...buildClaimSignals('aud', audience, token, profile.extendedAudience),
      aud_value_length: String(audience.valueLength),
      iss_index_b64: String(index),
      iss_length_b64: String(length),
      salt: String(numbers.salt),
      all_inputs_hash: String(publicInput),
    },
    publicInput,
    addressSeed,
    issBase64Details,
    headerBase64,
  };
}

// --- The request ---

/**
 * Reads the numbers by the wallet's rules (src/library/zklogin/numbers.ts).
 *
 * @throws ProverError: PROVER_REQUEST
 */
export function readNumbers(request: ProofRequest): Numbers {
  if (typeof request.jwt !== 'string') throw new ProverError('PROVER_REQUEST', 'jwt must be a string');
  if (typeof request.keyClaimName !== 'string') {
    throw new ProverError('PROVER_REQUEST', 'keyClaimName must be a string, for example "sub"');
  }
  const epoch = String(request.maxEpoch);
  if (!/^(0|[1-9][0-9]{0,19})$/.test(epoch) || BigInt(epoch) > MAX_EPOCH) {
    throw new ProverError('PROVER_REQUEST', 'maxEpoch must be an epoch: an integer below 2^64');
  }
  return {
    key: readKey(request.extendedEphemeralPublicKey),
    maxEpoch: BigInt(epoch),
    randomness: readSized('jwtRandomness', request.jwtRandomness, SALT_SIZE),
    salt: readSized('salt', request.salt, SALT_SIZE),
  };
}

/**
 * Reads a public key with its flag: 0 for ed25519, 1 for secp256k1, 2 for secp256r1, Sui's schemes with a
 * single key.
 */
function readKey(value: BigNumber): bigint {
  const size = EXTENDED_KEY_SIZES.find((bytes) => isNumber(value, bytes));
  const key = size === undefined ? undefined : readNumber('extendedEphemeralPublicKey', value, size);
  // The flag precedes 32 bytes of ed25519, or 33 bytes of the other schemes.
  const isEd25519 = size !== 34 && key !== undefined && key >> 256n === 0n;
  const isOther = size === 34 && key !== undefined && [1n, 2n].includes(key >> 264n);
  if (key === undefined || !(isEd25519 || isOther)) {
    throw new ProverError(
      'PROVER_REQUEST',
      'extendedEphemeralPublicKey must be a public key with its scheme flag: 33 bytes with flag 0 (ed25519; 32 bytes without it are accepted too), or 34 bytes with flag 1 or 2 (secp256k1, secp256r1), in decimal or base64',
    );
  }
  return key;
}

/** Reads a number of at most `size` bytes. @throws ProverError: PROVER_REQUEST */
function readSized(name: string, value: BigNumber, size: number): bigint {
  if (!isNumber(value, size)) {
    throw new ProverError(
      'PROVER_REQUEST',
      `${name} must be an integer of at most ${size} bytes in decimal, or of ${size} bytes in base64`,
    );
  }
  return readNumber(name, value, size);
}

// --- The token ---

function readToken(jwt: string, profile: CircuitProfile): Token {
  const [, headerBase64, payloadBase64, signatureBase64] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(jwt) ?? [];
  if (headerBase64 === undefined || payloadBase64 === undefined || signatureBase64 === undefined) {
    throw new ProverError(
      'PROVER_TOKEN',
      'the token is not a JWT: it must be three parts of base64url, separated by dots',
    );
  }
  if (headerBase64.length > profile.header) {
    throw new ProverError(
      'PROVER_PROFILE',
      `the token's header has ${headerBase64.length} characters; ${profile.name} accepts ${profile.header}`,
    );
  }
  const unsigned = `${headerBase64}.${payloadBase64}`;
  const blocks = countBlocks(unsigned);
  if (blocks > profile.blocks) {
    throw new ProverError(
      'PROVER_PROFILE',
      `the token has ${BLOCK * blocks} bytes to hash; ${profile.name} accepts ${BLOCK * profile.blocks}${remedyFor(blocks)}`,
    );
  }
  const signature = decode(signatureBase64, 'signature');
  if (signature.length !== RSA_BITS / 8) {
    throw new ProverError(
      'PROVER_TOKEN',
      `the token's signature must have ${RSA_BITS / 8} bytes (RS256, RSA-2048)`,
    );
  }
  return {
    unsigned,
    headerBase64,
    payloadStart: headerBase64.length + 1,
    payloadLength: payloadBase64.length,
    signature: toInteger(signature),
    properties: parseProperties(decode(payloadBase64, 'payload')),
  };
}

const countBlocks = (unsigned: string) => Math.ceil((unsigned.length + MIN_PADDING) / BLOCK);

/** Decodes base64url, which must be canonical, since the circuit and validators read it bit by bit. */
function decode(base64url: string, label: string): Buffer {
  const bytes = Buffer.from(base64url, 'base64url');
  if (bytes.toString('base64url') !== base64url) {
    throw new ProverError('PROVER_TOKEN', `the token's ${label} is not canonical base64url`);
  }
  return bytes;
}

const toInteger = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`);

function readModulus({ kty, n, e }: SigningKey): bigint {
  if (kty !== 'RSA' || typeof n !== 'string' || !/^[\w-]+$/.test(n)) {
    throw new ProverError('PROVER_KEY', 'the key that signed the token is not an RSA key');
  }
  const modulus = toInteger(Buffer.from(n, 'base64url'));
  if (e !== EXPONENT || modulus.toString(2).length !== RSA_BITS) {
    throw new ProverError(
      'PROVER_KEY',
      `the key that signed the token must be an RSA-${RSA_BITS} key with e = 65537`,
    );
  }
  return modulus;
}

// --- The claims ---

type Properties = Token['properties'];

function requireProperty(properties: Properties, claim: string): PayloadProperty {
  const property = properties.get(claim);
  if (!property) throw new KeyClaimError(claim, 'is missing');
  if (property.text.slice(0, property.nameLength) !== `"${claim}"`) {
    throw new KeyClaimError(claim, 'has a name with escapes: no proof can be made for it');
  }
  return property;
}

/** Returns a claim that is a string without escapes, and that fits the profile's sizes. */
function requireTextClaim(
  properties: Properties,
  claim: string,
  maxQuoted: number,
  maxExtended: number,
  profile: CircuitProfile,
): PayloadProperty {
  const property = requireProperty(properties, claim);
  if (typeof property.value !== 'string') {
    const problem = Array.isArray(property.value) ? 'is a list' : 'is not a string';
    throw new KeyClaimError(claim, `${problem}: the circuit accepts a single string`);
  }
  const fault = valueFault(property.value, maxQuoted);
  if (fault !== null) throw new KeyClaimError(claim, `${fault}: no proof can be made for it`);
  if (sliceValue(property) !== `"${property.value}"`) {
    throw new KeyClaimError(claim, 'has escapes: no proof can be made for it');
  }
  return requireFit(property, maxExtended, profile);
}

/**
 * Returns advice for a token that is too long. The small size, for development, refuses tokens that the full
 * size accepts.
 */
function remedyFor(blocks: number): string {
  return blocks <= PROFILES.full.blocks ? ': a service of full size (make prover SIZE=full) accepts it' : '';
}

/** Returns the property, which must fit the profile's sizes. @throws ProverError: PROVER_PROFILE */
function requireFit(
  property: PayloadProperty,
  maxExtended: number,
  profile: CircuitProfile,
): PayloadProperty {
  const { name, text, nameLength, valueLength } = property;
  if (text.length > maxExtended) {
    throw new ProverError(
      'PROVER_PROFILE',
      `the token's "${name}" has ${text.length} characters with its name; ${profile.name} accepts ${maxExtended}`,
    );
  }
  // The colon and the terminator take 2 characters.
  const spaces = text.length - nameLength - valueLength - 2;
  if (spaces > profile.whiteSpace) {
    throw new ProverError(
      'PROVER_PROFILE',
      `the token's "${name}" has ${spaces} characters of white space; ${profile.name} accepts ${profile.whiteSpace}`,
    );
  }
  return property;
}

const sliceValue = ({ text, valueIndex, valueLength }: PayloadProperty) =>
  text.slice(valueIndex, valueIndex + valueLength);

function requireKeyClaim(properties: Properties, name: string, profile: CircuitProfile): PayloadProperty {
  const fault = valueFault(name, profile.keyClaimName);
  if (fault !== null) throw new ProverError('PROVER_REQUEST', `keyClaimName ${fault}`);
  return requireTextClaim(properties, name, profile.subject, profile.extendedSubject, profile);
}

function requireNonce(properties: Properties, numbers: Numbers, profile: CircuitProfile): PayloadProperty {
  const { key, maxEpoch, randomness } = numbers;
  const hash = poseidonHash([...splitKey(key), maxEpoch, randomness]);
  const expected = Buffer.from(hash.toString(16).padStart(64, '0').slice(-40), 'hex').toString('base64url');
  const claim = requireProperty(properties, 'nonce');
  if (claim.value !== expected) {
    throw new ProverError(
      'PROVER_NONCE',
      "the token's nonce does not match extendedEphemeralPublicKey, maxEpoch and jwtRandomness: log in again",
    );
  }
  return requireTextClaim(properties, 'nonce', expected.length + 2, profile.extendedNonce, profile);
}

function requireEmailVerified(properties: Properties, profile: CircuitProfile): PayloadProperty {
  const claim = requireProperty(properties, 'email_verified');
  if (!['true', '"true"'].includes(sliceValue(claim))) {
    throw new KeyClaimError('email_verified', "is not true, so the email can't identify the user");
  }
  return requireFit(claim, profile.extendedEmailVerified, profile);
}

/** Returns the issuer. It may have escapes, such as `https:\/\/`, since validators decode it. */
function requireIssuer(token: Token, profile: CircuitProfile): PayloadProperty {
  const property = requireProperty(token.properties, 'iss');
  if (typeof property.value !== 'string') throw new KeyClaimError('iss', 'is not a string');
  // The proof contains the token's spelling of the issuer, and validators do not normalize it.
  const issuer = normalizeIssuer(property.value);
  if (property.value !== issuer) {
    throw new KeyClaimError(
      'iss',
      `has no scheme, and validators accept only ${issuer}: get a token whose issuer is this URL`,
    );
  }
  return requireFit(property, profile.extendedIssuer, profile);
}

// --- Signals ---

function buildMessageSignals({ unsigned, payloadStart, payloadLength }: Token, profile: CircuitProfile) {
  const blocks = countBlocks(unsigned);
  const padded = Buffer.alloc(BLOCK * profile.blocks);
  padded.write(unsigned, 'latin1');
  padded[unsigned.length] = 0x80;
  padded.writeBigUInt64BE(8n * BigInt(unsigned.length), BLOCK * blocks - 8);
  return {
    padded_unsigned_jwt: Array.from(padded, String),
    payload_start_index: String(payloadStart),
    num_sha2_blocks: String(blocks),
    payload_len: String(payloadLength),
  };
}

/** Returns the range of base64 characters in the unsigned token that encode a property. */
function computePosition({ start, text }: PayloadProperty, { payloadStart }: Token) {
  const first = Math.floor((8 * start) / 6);
  const last = Math.floor((8 * (start + text.length) - 1) / 6);
  return { index: payloadStart + first, length: last - first + 1 };
}

function buildClaimSignals(prefix: string, property: PayloadProperty, token: Token, maxExtended: number) {
  const { index, length } = computePosition(property, token);
  const text = Buffer.alloc(maxExtended);
  text.write(property.text, 'latin1');
  return {
    [`ext_${prefix}`]: Array.from(text, String),
    [`ext_${prefix}_length`]: String(property.text.length),
    [`${prefix}_index_b64`]: String(index),
    [`${prefix}_length_b64`]: String(length),
    [`${prefix}_colon_index`]: String(property.colonIndex),
    [`${prefix}_value_index`]: String(property.valueIndex),
  };
}

/** Splits an integer into limbs, the least significant first. */
function splitLimbs(value: bigint): string[] {
  const mask = (1n << BigInt(LIMB_BITS)) - 1n;
  return Array.from({ length: RSA_BITS / LIMB_BITS }, (_, index) =>
    String((value >> BigInt(LIMB_BITS * index)) & mask),
  );
}
