/** Reads the answers of an enclave's endpoints, member by member. */
import { bytesToHex, hexToBytes } from '@noble/curves/utils.js';
import type { SignedType } from '../wire/intent.ts';
import { IntentMismatchError, InvalidClientOptionError, MalformedAnswerError } from './errors.ts';

/** A signed answer, and the bytes whose signature it claims to bring. Not verified yet. */
export interface ReceivedAnswer<Data> {
  readonly data: Data;
  readonly intent: number;
  readonly timestampMs: bigint;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  /** BCS of the intent message, rebuilt from the answer. */
  readonly signedBytes: Uint8Array;
}

const SIGNATURE_SIZE = 64;

/**
 * `{"response": {"intent", "timestamp_ms", "data"}, "signature"}`; a u64 may come as decimal text.
 *
 * @param endpoint whose answer it is, for messages
 * @throws MalformedAnswerError, IntentMismatchError
 */
export function readAnswer<Data, Input>(
  endpoint: string,
  answer: unknown,
  schema: SignedType<Data, Input>,
): ReceivedAnswer<Data> {
  const unsigned = missingMember(answer, ['response', 'signature']);
  if (unsigned !== undefined) {
    throw new MalformedAnswerError(
      endpoint,
      `it is not signed ("${unsigned}" is missing). Only an endpoint that signs its answers can be asked here; ask others by fetch, and believe them no more than their host`,
    );
  }
  const { response, signature } = members(endpoint, answer, 'response', 'signature');
  const { intent, timestamp_ms, data } = members(endpoint, response, 'intent', 'timestamp_ms', 'data');
  if (typeof intent !== 'number') throw new MalformedAnswerError(endpoint, '"intent" is no number');
  if (intent !== schema.intent) throw new IntentMismatchError(intent, schema.intent);
  const signatureBytes = hex(endpoint, 'signature', signature);
  if (signatureBytes.length !== SIGNATURE_SIZE) {
    throw new MalformedAnswerError(endpoint, `"signature" has ${signatureBytes.length} bytes, not 64`);
  }
  const signedBytes = serialize(endpoint, schema, { intent, timestamp_ms, payload: data });
  // Read back: members of the answer that the schema does not know are not signed, and do not come through.
  const { payload, timestamp_ms: timestampMs } = schema.message.parse(signedBytes);
  return { data: payload, intent, timestampMs, signature: signatureBytes, signedBytes };
}

/**
 * The first member of the signed data that is not as `expect` says: equal in BCS, so that a u64 may be expected as a
 * number, a bigint or decimal text.
 *
 * @throws InvalidClientOptionError for what the schema can't have
 */
export function unexpectedMember<Data, Input>(
  { data, intent, timestampMs, signedBytes }: ReceivedAnswer<Data>,
  schema: SignedType<Data, Input>,
  expect: Readonly<Record<string, unknown>>,
): string | undefined {
  return Object.keys(expect).find((name) => {
    if (missingMember(data, [name]) !== undefined) {
      throw new InvalidClientOptionError(`"expect": ${schema.payload.name} has no ${JSON.stringify(name)}`);
    }
    const payload = { ...data, [name]: expect[name] };
    let bytes: Uint8Array;
    try {
      bytes = schema.message.serialize({ intent, timestamp_ms: timestampMs, payload } as never).toBytes();
    } catch (cause) {
      const what = `"expect": ${JSON.stringify(name)} can't be so in ${schema.payload.name}`;
      throw new InvalidClientOptionError(what, { cause });
    }
    return bytesToHex(bytes) !== bytesToHex(signedBytes);
  });
}

/** The document in `{"attestation": hex}`. */
export function readAttestation(answer: unknown): Uint8Array {
  const endpoint = 'get_attestation';
  return hex(endpoint, 'attestation', members(endpoint, answer, 'attestation')['attestation']);
}

function serialize<Data, Input>(
  endpoint: string,
  schema: SignedType<Data, Input>,
  message: unknown,
): Uint8Array {
  try {
    // The schema itself refuses what is not of its types.
    return schema.message.serialize(message as Parameters<typeof schema.message.serialize>[0]).toBytes();
  } catch (cause) {
    throw new MalformedAnswerError(endpoint, `its data is no ${schema.payload.name}`, { cause });
  }
}

function members<Name extends string>(
  endpoint: string,
  value: unknown,
  ...names: Name[]
): Record<Name, unknown> {
  const missing = missingMember(value, names);
  if (missing !== undefined) throw new MalformedAnswerError(endpoint, `"${missing}" is missing`);
  return value as Record<Name, unknown>;
}

function missingMember(value: unknown, names: readonly string[]): string | undefined {
  return names.find((name) => typeof value !== 'object' || value === null || !Object.hasOwn(value, name));
}

function hex(endpoint: string, name: string, value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^([0-9a-f]{2})*$/i.test(value)) {
    throw new MalformedAnswerError(endpoint, `"${name}" is no hexadecimal text`);
  }
  return hexToBytes(value);
}
