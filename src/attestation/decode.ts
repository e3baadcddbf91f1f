/**
 * Reads an attestation document (COSE_Sign1, RFC 9052 section 4.2; payload: AWS Nitro Enclaves user guide,
 * "Cryptographic attestation") without trusting it. The numbers are those of the rules in `README.md`.
 */
import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import { type CborItem, CborMap, CborTag, readCbor } from './cbor.ts';
import { PROTECTED_HEADER } from './cose.ts';
import {
  CoseTagError,
  DigestError,
  DocumentSizeError,
  DuplicateKeyError,
  FieldError,
  FieldSizeError,
  NotCoseSign1Error,
  PayloadSizeError,
  ProtectedHeaderError,
  RegisterIndexError,
  RegisterSizeError,
  SignatureSizeError,
  TrailingBytesError,
  UnprotectedHeaderError,
} from './errors.ts';

/** An attestation document as it was read. Nothing in it is true until `verifyAttestation` says so. */
export interface AttestationDocument {
  /** The enclave: `i-<instance>-enc<enclave>`. */
  readonly moduleId: string;
  /** When the NSM made the document, in milliseconds since 1970. */
  readonly timestamp: number;
  /** The hash of the registers: always this one. */
  readonly digest: 'SHA384';
  /** Register values of 32, 48 or 64 bytes by index 0 to 31. */
  readonly pcrs: ReadonlyMap<number, Uint8Array>;
  /** DER of the leaf, whose key signed the document. */
  readonly certificate: Uint8Array;
  /** DER of the authorities, root first. */
  readonly cabundle: readonly Uint8Array[];
  /** Up to 1024 bytes; null when null, empty or left out. */
  readonly publicKey: Uint8Array | null;
  /** Up to 512 bytes; null when null, empty or left out. */
  readonly userData: Uint8Array | null;
  /** Up to 512 bytes; null when null, empty or left out. */
  readonly nonce: Uint8Array | null;
  /** What the signature covers: the payload's CBOR as it was received. */
  readonly payload: Uint8Array;
  /** r ‖ s, 48 bytes each, big-endian. */
  readonly signature: Uint8Array;
}

/** Tag 18, COSE_Sign1 (RFC 9052 section 2), in its only short form. */
const COSE_SIGN1_TAG_BYTE = 0xd2;
const MAX_PAYLOAD_SIZE = 16_383;
const SIGNATURE_SIZE = 96;
/** Twice what the largest document takes: bounds the work, while smaller faults get errors of their own. */
const MAX_DOCUMENT_SIZE = 32_768;
const MAX_REGISTERS = 32;
const REGISTER_SIZES = [32, 48, 64];
const MAX_CERTIFICATE_SIZE = 1024;
const MAX_BUNDLE_LENGTH = 10;
const MAX_PUBLIC_KEY_SIZE = 1024;
const MAX_USER_DATA_SIZE = 512;
const MAX_NONCE_SIZE = 512;
/** The latest time that JavaScript's Date can tell (ECMA-262, "Time Values and Time Range"). */
const MAX_TIME = 8_640_000_000_000_000;

/**
 * Reads a document and checks its form and sizes (rules 1 to 20).
 *
 * @param bytes the binary document, not its hexadecimal form
 * @throws a subclass of AttestationError for each rule
 */
export function decodeAttestation(bytes: Uint8Array): AttestationDocument {
  // [1]
  if (!(bytes instanceof Uint8Array)) {
    throw new DocumentSizeError('an attestation document is given as a Uint8Array of its bytes');
  }
  if (bytes.length === 0 || bytes.length > MAX_DOCUMENT_SIZE) {
    throw new DocumentSizeError(
      `an attestation document has 1 to ${MAX_DOCUMENT_SIZE} bytes, but ${bytes.length} were given`,
    );
  }
  const { payload, signature } = decodeEnvelope(bytes);
  return { ...decodePayload(payload), payload, signature };
}

function decodeEnvelope(bytes: Uint8Array): { payload: Uint8Array; signature: Uint8Array } {
  const untagged = bytes[0] === COSE_SIGN1_TAG_BYTE ? bytes.subarray(1) : bytes;
  const { item, length } = readCbor(untagged, 'strict'); // [2] [3]
  if (item instanceof CborTag) throw new CoseTagError(); // [4]
  if (!Array.isArray(item)) throw new NotCoseSign1Error('it is no array'); // [5]
  if (item.length !== 4) throw new NotCoseSign1Error(`it is an array of ${item.length}`);
  const [protectedHeader, unprotectedHeader, payload, signature] = item;
  if (!(protectedHeader instanceof Uint8Array)) throw new NotCoseSign1Error('its first item is not bytes');
  if (!(unprotectedHeader instanceof CborMap)) throw new NotCoseSign1Error('its second item is no map');
  if (!(payload instanceof Uint8Array)) throw new NotCoseSign1Error('its third item is not bytes');
  if (!(signature instanceof Uint8Array)) throw new NotCoseSign1Error('its fourth item is not bytes');
  const trailing = untagged.length - length;
  if (trailing > 0) throw new TrailingBytesError('the document', trailing); // [6]
  // [7]
  if (!equalBytes(protectedHeader, PROTECTED_HEADER)) {
    throw new ProtectedHeaderError(bytesToHex(protectedHeader));
  }
  if (unprotectedHeader.entries.length > 0) throw new UnprotectedHeaderError(); // [8]
  // [9]
  if (payload.length === 0 || payload.length > MAX_PAYLOAD_SIZE) {
    throw new PayloadSizeError(payload.length, MAX_PAYLOAD_SIZE);
  }
  if (signature.length !== SIGNATURE_SIZE) throw new SignatureSizeError(signature.length); // [10]
  return { payload, signature };
}

function decodePayload(payload: Uint8Array): Omit<AttestationDocument, 'payload' | 'signature'> {
  const { item, length } = readCbor(payload, 'lenient'); // [11]
  if (length < payload.length) throw new TrailingBytesError('the payload', payload.length - length); // [12]
  const fields = textKeys(item); // [13] [14]
  return {
    moduleId: moduleId(fields.get('module_id')), // [15]
    timestamp: timestamp(fields.get('timestamp')), // [16]
    digest: digest(fields.get('digest')), // [17]
    pcrs: registers(fields.get('pcrs')), // [18]
    certificate: certificate('certificate', fields.get('certificate')), // [19]
    cabundle: bundle(fields.get('cabundle')),
    publicKey: optionalBytes('public_key', fields.get('public_key'), MAX_PUBLIC_KEY_SIZE), // [20]
    userData: optionalBytes('user_data', fields.get('user_data'), MAX_USER_DATA_SIZE),
    nonce: optionalBytes('nonce', fields.get('nonce'), MAX_NONCE_SIZE),
  };
}

function textKeys(item: CborItem): Map<string, CborItem> {
  if (!(item instanceof CborMap)) throw new FieldError('payload', 'a map');
  const fields = new Map<string, CborItem>();
  for (const [key, value] of item.entries) {
    if (typeof key !== 'string') throw new FieldError('payload', 'a map whose keys are texts');
    if (fields.has(key)) throw new DuplicateKeyError('the payload', key);
    fields.set(key, value);
  }
  return fields;
}

function moduleId(item: CborItem | undefined): string {
  if (typeof item !== 'string' || item === '') throw new FieldError('module_id', 'a text, not empty');
  return item;
}

function timestamp(item: CborItem | undefined): number {
  if (typeof item !== 'number' || item < 0 || item > MAX_TIME) {
    throw new FieldError('timestamp', `a whole number of milliseconds from 0 to ${MAX_TIME}`);
  }
  return item;
}

function digest(item: CborItem | undefined): 'SHA384' {
  if (item !== 'SHA384') throw new DigestError();
  return item;
}

function registers(item: CborItem | undefined): Map<number, Uint8Array> {
  if (!(item instanceof CborMap)) throw new FieldError('pcrs', 'a map');
  if (item.entries.length === 0 || item.entries.length > MAX_REGISTERS) {
    throw new FieldSizeError('pcrs', item.entries.length, `1 to ${MAX_REGISTERS} entries`);
  }
  const values = new Map<number, Uint8Array>();
  for (const [index, value] of item.entries) {
    if (typeof index !== 'number' || index < 0 || index >= MAX_REGISTERS) throw new RegisterIndexError();
    if (values.has(index)) throw new DuplicateKeyError('the field "pcrs"', index);
    if (!(value instanceof Uint8Array) || !REGISTER_SIZES.includes(value.length)) {
      throw new RegisterSizeError(index);
    }
    values.set(index, value);
  }
  return values;
}

function certificate(field: string, item: CborItem | undefined): Uint8Array {
  if (!(item instanceof Uint8Array)) throw new FieldError(field, 'bytes');
  if (item.length === 0 || item.length > MAX_CERTIFICATE_SIZE) {
    throw new FieldSizeError(field, item.length, `1 to ${MAX_CERTIFICATE_SIZE} bytes`);
  }
  return item;
}

function bundle(item: CborItem | undefined): Uint8Array[] {
  if (!Array.isArray(item)) throw new FieldError('cabundle', 'an array');
  if (item.length === 0 || item.length > MAX_BUNDLE_LENGTH) {
    throw new FieldSizeError('cabundle', item.length, `1 to ${MAX_BUNDLE_LENGTH} certificates`);
  }
  return item.map((entry) => certificate('cabundle', entry));
}

function optionalBytes(field: string, item: CborItem | undefined, limit: number): Uint8Array | null {
  if (item === undefined || item === null) return null;
  if (!(item instanceof Uint8Array)) throw new FieldError(field, 'bytes or null');
  if (item.length > limit) throw new FieldSizeError(field, item.length, `${limit} bytes at most`);
  return item.length === 0 ? null : item;
}
