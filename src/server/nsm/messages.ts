/**
 * The CBOR messages of the NSM: one object per operation, with an encoder for the request and a decoder for
 * the answer.
 *
 * Names, types and limits are those of AWS's NSM API (`Request`, `Response`) and its description of the
 * attestation document. A decoder returns only values that it has checked. It rejects unknown fields, except
 * in `DescribeNSM`, which newer firmware may extend.
 */
import { type DecodeOptions, decode, encode, Tokenizer, Type } from 'cborg';
import { badArgument, refusal, unusableAnswer } from './errors.ts';

/** The driver's limits in bytes, `NSM_REQUEST_MAX_SIZE` and `NSM_RESPONSE_MAX_SIZE` in `linux/nsm.h`. */
export const MAX_REQUEST_BYTES = 0x1000;
export const MAX_ANSWER_BYTES = 0x3000;

const MAX_PUBLIC_KEY_BYTES = 1024;
const MAX_USER_DATA_BYTES = 512;
const MAX_NONCE_BYTES = 512;
const MAX_RANDOM_BYTES = 256;
const PCR_COUNT = 32;
const DIGESTS = ['SHA256', 'SHA384', 'SHA512'] as const;
const DIGEST_BYTES = [32, 48, 64];

/** The fields to include in the attestation document; `null` omits a field. */
export interface AttestationRequest {
  /** The public key, 1 to 1024 bytes. */
  publicKey: Uint8Array | null;
  /** The nonce, at most 512 bytes. */
  nonce: Uint8Array | null;
  /** The user data, at most 512 bytes. */
  userData: Uint8Array | null;
}

export interface NsmDescription {
  versionMajor: number;
  versionMinor: number;
  versionPatch: number;
  /** Instance id and enclave id, never empty, for example `i-0123456789abcdef0-enc0123456789abcdef`. */
  moduleId: string;
  maxPcrs: number;
  /** Indices of the locked registers: ascending, without duplicates, each below `maxPcrs`. */
  lockedPcrs: number[];
  /** The hash function of the PCRs. */
  digest: (typeof DIGESTS)[number];
}

export interface PcrDescription {
  /** True if the register can no longer be extended. */
  lock: boolean;
  /** The register's value: 32, 48 or 64 bytes. */
  data: Uint8Array;
}

/** A COSE_Sign1 attestation document as the NSM wrote it: its content is unchecked. */
export const attestation = {
  encode({ publicKey, nonce, userData }: AttestationRequest): Uint8Array {
    return encodeRequest({
      Attestation: {
        user_data: optionalBytes('userData', userData, 0, MAX_USER_DATA_BYTES),
        nonce: optionalBytes('nonce', nonce, 0, MAX_NONCE_BYTES),
        public_key: optionalBytes('publicKey', publicKey, 1, MAX_PUBLIC_KEY_BYTES),
      },
    });
  },
  decode(answer: Uint8Array): Uint8Array {
    const { document } = readFields('Attestation', answer, ['document']);
    return answeredBytes('document', document, (length) => length >= 1);
  },
};

export const getRandom = {
  encode: (): Uint8Array => encodeRequest('GetRandom'),
  decode(answer: Uint8Array): Uint8Array {
    const { random } = readFields('GetRandom', answer, ['random']);
    return answeredBytes('random', random, (length) => length >= 1 && length <= MAX_RANDOM_BYTES);
  },
};

export const describeNsm = {
  encode: (): Uint8Array => encodeRequest('DescribeNSM'),
  decode(answer: Uint8Array): NsmDescription {
    const fields = readAllFields('DescribeNSM', answer);
    const maxPcrs = answeredUint16('max_pcrs', fields['max_pcrs']);
    const digest = DIGESTS.find((name) => name === fields['digest']);
    if (digest === undefined) {
      throw unusableAnswer('digest is not SHA256, SHA384 or SHA512');
    }
    return {
      versionMajor: answeredUint16('version_major', fields['version_major']),
      versionMinor: answeredUint16('version_minor', fields['version_minor']),
      versionPatch: answeredUint16('version_patch', fields['version_patch']),
      moduleId: answeredText('module_id', fields['module_id']),
      maxPcrs,
      lockedPcrs: answeredIndexes('locked_pcrs', fields['locked_pcrs'], maxPcrs),
      digest,
    };
  },
};

export const describePcr = {
  encode: (index: number): Uint8Array => encodeRequest({ DescribePCR: { index: pcrIndex(index) } }),
  decode(answer: Uint8Array): PcrDescription {
    const { lock, data } = readFields('DescribePCR', answer, ['lock', 'data']);
    if (typeof lock !== 'boolean') {
      throw unusableAnswer('lock is not a boolean');
    }
    return { lock, data: answeredPcr(data) };
  },
};

export const extendPcr = {
  encode(index: number, data: Uint8Array): Uint8Array {
    return encodeRequest({
      ExtendPCR: { index: pcrIndex(index), data: bytes('data', data, 1, MAX_REQUEST_BYTES) },
    });
  },
  /** The register's new value. */
  decode: (answer: Uint8Array): Uint8Array => answeredPcr(readFields('ExtendPCR', answer, ['data'])['data']),
};

export const lockPcr = {
  encode: (index: number): Uint8Array => encodeRequest({ LockPCR: { index: pcrIndex(index) } }),
  decode: (answer: Uint8Array): void => expectBare('LockPCR', answer),
};

export const lockPcrs = {
  /** Locks the registers 0 to `range` - 1. */
  encode(range: number): Uint8Array {
    if (!Number.isInteger(range) || range < 1 || range > PCR_COUNT) {
      throw badArgument(`range must be an integer from 1 to ${PCR_COUNT}`);
    }
    return encodeRequest({ LockPCRs: { range } });
  },
  decode: (answer: Uint8Array): void => expectBare('LockPCRs', answer),
};

function encodeRequest(request: unknown): Uint8Array {
  // Fields in the order of AWS's client; cborg would sort them.
  const encoded = encode(request, { mapSorter: () => 0 });
  if (encoded.length > MAX_REQUEST_BYTES) {
    throw badArgument(`the encoded request is ${encoded.length} bytes long, over ${MAX_REQUEST_BYTES}`);
  }
  return encoded;
}

function pcrIndex(index: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= PCR_COUNT) {
    throw badArgument(`the PCR index must be an integer from 0 to ${PCR_COUNT - 1}`);
  }
  return index;
}

function bytes(name: string, value: Uint8Array, min: number, max: number): Uint8Array {
  if (!(value instanceof Uint8Array) || value.length < min || value.length > max) {
    throw badArgument(`${name} must be ${min} to ${max} bytes`);
  }
  return value;
}

function optionalBytes(name: string, value: Uint8Array | null, min: number, max: number): Uint8Array | null {
  return value === null ? null : bytes(`${name}, unless null,`, value, min, max);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Rejects what cborg reads too leniently. cborg turns the float 1.0 and the integer 1 into the same number.
 * It also drops a byte order mark and replaces invalid UTF-8 in a string, so that two different strings
 * become equal.
 */
class AnswerTokenizer extends Tokenizer {
  override next() {
    const token = super.next();
    if (Type.equals(token.type, Type.float)) {
      throw new Error('floating-point number');
    }
    if (token.byteValue !== undefined && utf8.decode(token.byteValue) !== token.value) {
      throw new Error('string that is not plain UTF-8');
    }
    return token;
  }
}

const decoding: DecodeOptions = {
  strict: true,
  allowIndefinite: true,
  allowBigInt: true,
  allowUndefined: false,
  rejectDuplicateMapKeys: true,
  retainStringBytes: true,
};

/**
 * Returns the content of the answer: only a name, or a name with one value. Throws if the answer is an error.
 */
function open(operation: string, answer: Uint8Array): { name: string; value?: unknown } {
  if (!(answer instanceof Uint8Array) || answer.length > MAX_ANSWER_BYTES) {
    throw unusableAnswer(`${operation} was not answered with at most ${MAX_ANSWER_BYTES} bytes`);
  }
  let decoded: unknown;
  try {
    decoded = decode(answer, { ...decoding, tokenizer: new AnswerTokenizer(answer, decoding) });
  } catch (cause) {
    throw unusableAnswer(`${operation} was not answered with one well-formed CBOR item`, { cause });
  }
  if (typeof decoded === 'string') {
    return { name: decoded };
  }
  const entries = isFields(decoded) ? Object.entries(decoded) : [];
  const [entry] = entries;
  if (entry === undefined || entries.length !== 1) {
    throw unusableAnswer(`${operation} was not answered with a name or a map of one name`);
  }
  const [name, value] = entry;
  if (name === 'Error' && typeof value === 'string') {
    throw refusal(operation, value);
  }
  return { name, value };
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function readAllFields(operation: string, answer: Uint8Array): Record<string, unknown> {
  const { name, value } = open(operation, answer);
  // cborg passes on a stray "break" as a symbol instead of a value.
  if (name !== operation || !isFields(value) || Object.values(value).some((v) => typeof v === 'symbol')) {
    throw unusableAnswer(`${operation} was not answered with its own fields`);
  }
  return value;
}

function readFields<Name extends string>(
  operation: string,
  answer: Uint8Array,
  names: Name[],
): Record<Name, unknown> {
  const fields = readAllFields(operation, answer);
  if (Object.keys(fields).length !== names.length || !names.every((name) => Object.hasOwn(fields, name))) {
    throw unusableAnswer(`${operation} was not answered with exactly the fields ${names.join(', ')}`);
  }
  return fields;
}

function expectBare(operation: string, answer: Uint8Array): void {
  const { name, value } = open(operation, answer);
  if (name !== operation || value !== undefined) {
    throw unusableAnswer(`${operation} was not answered with its bare name`);
  }
}

function answeredBytes(name: string, value: unknown, fits: (length: number) => boolean): Uint8Array {
  if (!(value instanceof Uint8Array) || !fits(value.length)) {
    throw unusableAnswer(`${name} is not bytes of an allowed length`);
  }
  return value;
}

function answeredPcr(value: unknown): Uint8Array {
  return answeredBytes('data', value, (length) => DIGEST_BYTES.includes(length));
}

function answeredUint16(name: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 0xffff) {
    throw unusableAnswer(`${name} is not an integer from 0 to 65535`);
  }
  return value;
}

function answeredText(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') {
    throw unusableAnswer(`${name} is not a non-empty string`);
  }
  return value;
}

function answeredIndexes(name: string, value: unknown, below: number): number[] {
  if (!Array.isArray(value)) {
    throw unusableAnswer(`${name} is not a list`);
  }
  const indexes = value.map((index) => answeredUint16(name, index)).sort((a, b) => a - b);
  if (indexes.some((index, at) => index >= below || index === indexes[at - 1])) {
    throw unusableAnswer(`${name} contains a duplicate or out-of-range index`);
  }
  return indexes;
}
