/** Parses the answers of an enclave's endpoints. */

import { bytesToHex, hexToBytes } from '@noble/curves/utils.js';
import { findFailingProperty } from '../wire/failing_property.ts';
import type { SignedType } from '../wire/intent.ts';
import { quantity } from '../wording.ts';
import { ClientError } from './errors.ts';
import { invalidOption, malformedAnswer } from './http.ts';

/** A signed answer and its signed bytes, not verified yet. */
export interface ReceivedAnswer<Data> {
  readonly data: Data;
  readonly intent: number;
  readonly timestampMs: bigint;
  /** The Ed25519 signature, 64 bytes. */
  readonly signature: Uint8Array;
  /** BCS of the intent message, rebuilt from the answer. */
  readonly signedBytes: Uint8Array;
  /** Content that the enclave did not sign; undefined if the answer has none. */
  readonly unsigned: unknown;
}

const SIGNATURE_SIZE = 64;

/**
 * Reads `{"response": {"intent", "timestamp_ms", "data"}, "signature"}`, with or without `"unsigned"` next to
 * them. A u64 may be a decimal string.
 *
 * @param endpoint name of the endpoint that gave the answer, for messages
 * @throws ClientError: CLIENT_MALFORMED_ANSWER, CLIENT_INTENT
 */
export function readAnswer<Data, Input>(
  endpoint: string,
  answer: unknown,
  schema: SignedType<Data, Input>,
): ReceivedAnswer<Data> {
  const missing = findMissingProperty(answer, ['response', 'signature']);
  if (missing !== undefined) {
    throw malformedAnswer(
      endpoint,
      `it is not signed ("${missing}" is missing). Only an endpoint that signs its answers can be called here: call others by fetch, and trust them no more than their host`,
    );
  }
  const { response, signature } = requireProperties(endpoint, answer, 'response', 'signature');
  const { intent, timestamp_ms, data } = requireProperties(
    endpoint,
    response,
    'intent',
    'timestamp_ms',
    'data',
  );
  if (typeof intent !== 'number') throw malformedAnswer(endpoint, '"intent" is not a number');
  if (intent !== schema.intent) {
    const message = `the answer has the intent ${intent}, but the schema's is ${schema.intent}`;
    throw new ClientError('CLIENT_INTENT', message);
  }
  const signatureBytes = readHex(endpoint, 'signature', signature);
  if (signatureBytes.length !== SIGNATURE_SIZE) {
    throw malformedAnswer(endpoint, `"signature" has ${quantity(signatureBytes.length, 'byte')}, not 64`);
  }
  const signedBytes = serialize(endpoint, schema, { intent, timestamp_ms, payload: data });
  // Parsing the signed bytes drops properties that the schema doesn't have, since these are not signed.
  const { payload, timestamp_ms: timestampMs } = schema.message.parse(signedBytes);
  const unsigned =
    findMissingProperty(answer, ['unsigned']) === undefined
      ? requireProperties(endpoint, answer, 'unsigned').unsigned
      : undefined;
  return { data: payload, intent, timestampMs, signature: signatureBytes, signedBytes, unsigned };
}

/**
 * Returns the first property of the signed data that differs from `expect`. Compares in BCS, so that a u64
 * may be given as a number, a bigint or a decimal string.
 *
 * @throws ClientError: CLIENT_OPTION for a property or value that the schema can't have
 */
export function findUnexpectedProperty<Data, Input>(
  { data, intent, timestampMs, signedBytes }: ReceivedAnswer<Data>,
  schema: SignedType<Data, Input>,
  expect: Readonly<Record<string, unknown>>,
): string | undefined {
  return Object.keys(expect).find((name) => {
    if (findMissingProperty(data, [name]) !== undefined) {
      throw invalidOption(`"expect": ${schema.payload.name} has no ${JSON.stringify(name)}`);
    }
    const payload = { ...data, [name]: expect[name] };
    let bytes: Uint8Array;
    try {
      bytes = encodeValue(schema, { intent, timestamp_ms: timestampMs, payload });
    } catch (cause) {
      const problem = `"expect": ${schema.payload.name} can't have this value for ${JSON.stringify(name)}`;
      throw invalidOption(problem, { cause });
    }
    return bytesToHex(bytes) !== bytesToHex(signedBytes);
  });
}

/** Returns the document in `{"attestation": hex}`. @throws ClientError: CLIENT_MALFORMED_ANSWER */
export function readAttestation(answer: unknown): Uint8Array {
  const endpoint = 'get_attestation';
  return readHex(endpoint, 'attestation', requireProperties(endpoint, answer, 'attestation')['attestation']);
}

/** The part of a signed type that serializes messages, and throws for values of other types. */
interface Serializer {
  readonly payload: { readonly name: string };
  readonly message: { serialize(value: unknown): { toBytes(): Uint8Array } };
}

/** @throws Error for a value that the type can't have */
function encodeValue({ message }: Serializer, value: unknown): Uint8Array {
  return message.serialize(value).toBytes();
}

function serialize(endpoint: string, schema: Serializer, message: unknown): Uint8Array {
  try {
    return encodeValue(schema, message);
  } catch (cause) {
    const property = findFailingProperty((value) => encodeValue(schema, value), message as object);
    const problem = describeMismatch(property, message);
    throw malformedAnswer(
      endpoint,
      `its data does not match ${schema.payload.name}${problem}. If the application has changed, its schema has, too: generate the signed types again`,
      { cause },
    );
  }
}

/** Maximum number of an answer's property names that a message lists. */
const MAX_NAMES = 8;
/** Maximum length of each listed name, in characters. */
const MAX_NAME_LENGTH = 64;

/**
 * Returns a colon and the fault of a property of an intent message, such as `payload.cents`; an empty string
 * if no property is at fault.
 */
function describeMismatch(property: string, message: unknown): string {
  const path = property.split('.');
  const name = path.pop() ?? '';
  const parent = path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], message);
  if (name === '' || typeof parent !== 'object' || parent === null) return '';
  const label = property.replace(/^payload\./, '');
  if (Object.hasOwn(parent, name)) return `: "${label}" has a value of another type`;
  const names = Object.keys(parent)
    .slice(0, MAX_NAMES)
    .map((key) => JSON.stringify(key.slice(0, MAX_NAME_LENGTH)));
  return `: "${label}" is missing, and there are ${names.join(', ') || 'no fields'}`;
}

function requireProperties<Name extends string>(
  endpoint: string,
  value: unknown,
  ...names: Name[]
): Record<Name, unknown> {
  const missing = findMissingProperty(value, names);
  if (missing !== undefined) throw malformedAnswer(endpoint, `"${missing}" is missing`);
  return value as Record<Name, unknown>;
}

function findMissingProperty(value: unknown, names: readonly string[]): string | undefined {
  return names.find((name) => typeof value !== 'object' || value === null || !Object.hasOwn(value, name));
}

function readHex(endpoint: string, name: string, value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^([0-9a-f]{2})*$/i.test(value)) {
    throw malformedAnswer(endpoint, `"${name}" is not a hexadecimal string`);
  }
  return hexToBytes(value);
}
