/**
 * Reads an attestation document (COSE_Sign1, RFC 9052 section 4.2; payload: AWS Nitro Enclaves user guide,
 * "Cryptographic attestation") without trusting it.
 */

import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import { quantity } from '../wording.ts';
import { type CborItem, CborMap, CborTag, readCbor } from './cbor.ts';
import { PROTECTED_HEADER } from './cose.ts';
import { AttestationError, FieldError } from './errors.ts';
import type { Passed } from './rules.ts';

/** An attestation document as received. Don't trust anything in it until `verifyAttestation` accepts it. */
export interface AttestationDocument {
  /** Name of the enclave, such as `i-<instance>-enc<enclave>`. */
  readonly moduleId: string;
  /** Time at which the NSM (Nitro Security Module) made the document, in milliseconds since 1970. */
  readonly timestamp: number;
  /** The hash of the registers: always SHA-384. */
  readonly digest: 'SHA384';
  /** Register values of 32, 48 or 64 bytes by index 0 to 31. */
  readonly pcrs: ReadonlyMap<number, Uint8Array>;
  /** DER of the leaf, whose key signed the document. */
  readonly certificate: Uint8Array;
  /** DER of the authorities, root first. */
  readonly cabundle: readonly Uint8Array[];
  /** Up to 1024 bytes; null if the field is null, empty or left out. */
  readonly publicKey: Uint8Array | null;
  /** Up to 512 bytes; null if the field is null, empty or left out. */
  readonly userData: Uint8Array | null;
  /** Up to 512 bytes; null if the field is null, empty or left out. */
  readonly nonce: Uint8Array | null;
  /** The signed bytes: the payload's CBOR as received. */
  readonly payload: Uint8Array;
  /** r ‖ s, 48 bytes each, big-endian. */
  readonly signature: Uint8Array;
}

/** Tag 18, COSE_Sign1 (RFC 9052 section 2), in its only short form. */
const COSE_SIGN1_TAG_BYTE = 0xd2;
const MAX_PAYLOAD_SIZE = 16_383;
const SIGNATURE_SIZE = 96;
/**
 * Twice the size of the largest valid document. This bounds the work, while a document that is only a little
 * too large gets a more specific error.
 */
const MAX_DOCUMENT_SIZE = 32_768;
const MAX_REGISTERS = 32;
const REGISTER_SIZES = [32, 48, 64];
const MAX_CERTIFICATE_SIZE = 1024;
const MAX_BUNDLE_LENGTH = 10;
const MAX_PUBLIC_KEY_SIZE = 1024;
const MAX_USER_DATA_SIZE = 512;
const MAX_NONCE_SIZE = 512;
/** The latest time that JavaScript's Date can represent (ECMA-262, "Time Values and Time Range"). */
const MAX_TIME = 8_640_000_000_000_000;

/**
 * Reads a document and checks its form and sizes by the rules up to `payload.optional`.
 *
 * @param bytes the binary document, not its hexadecimal form
 * @throws AttestationError
 */
export function decodeAttestation(bytes: Uint8Array): AttestationDocument {
  return decodeAndReport(bytes, () => {});
}

/** Decodes a document, and calls `passed` for each rule that the document passes. @throws AttestationError */
export function decodeAndReport(bytes: Uint8Array, passed: Passed): AttestationDocument {
  if (!(bytes instanceof Uint8Array)) {
    throw new AttestationError('DOCUMENT_SIZE', 'the attestation document must be a Uint8Array');
  }
  if (bytes.length === 0 || bytes.length > MAX_DOCUMENT_SIZE) {
    throw new AttestationError(
      'DOCUMENT_SIZE',
      `an attestation document has 1 to ${MAX_DOCUMENT_SIZE} bytes, but this one has ${bytes.length}`,
    );
  }
  passed('document.size', quantity(bytes.length, 'byte'));
  // Copy the bytes, since the signature is verified later, over the same bytes.
  const { payload, signature } = decodeEnvelope(new Uint8Array(bytes), passed);
  return { ...decodePayload(payload, passed), payload, signature };
}

function decodeEnvelope(bytes: Uint8Array, passed: Passed): { payload: Uint8Array; signature: Uint8Array } {
  const tagged = bytes[0] === COSE_SIGN1_TAG_BYTE;
  const untagged = tagged ? bytes.subarray(1) : bytes;
  const { item: envelope, length } = readCbor(untagged, 'strict');
  passed('document.cbor');
  passed('document.lengths');

  if (envelope instanceof CborTag) {
    throw new AttestationError('COSE_TAG', 'an attestation document must have tag 18 (COSE_Sign1) or no tag');
  }
  passed('document.tag', tagged ? 'tag 18' : 'no tag');
  if (!Array.isArray(envelope)) throw shapeError('it is not an array');
  if (envelope.length !== 4) throw shapeError(`it is an array of ${quantity(envelope.length, 'item')}`);
  const [protectedHeader, unprotectedHeader, payload, signature] = envelope;
  if (!(protectedHeader instanceof Uint8Array)) throw shapeError('its first item is not bytes');
  if (!(unprotectedHeader instanceof CborMap)) throw shapeError('its second item is not a map');
  if (!(payload instanceof Uint8Array)) throw shapeError('its third item is not bytes');
  if (!(signature instanceof Uint8Array)) throw shapeError('its fourth item is not bytes');
  passed('document.shape');
  const trailing = untagged.length - length;
  if (trailing > 0) throw trailingBytes('the document', trailing);
  passed('document.end');

  if (!equalBytes(protectedHeader, PROTECTED_HEADER)) {
    throw new AttestationError(
      'COSE_PROTECTED_HEADER',
      `the protected header is ${bytesToHex(protectedHeader)}, but must be a1013822 (ES384): the document is not signed by an NSM`,
    );
  }
  passed('header.protected', 'ES384');

  if (unprotectedHeader.entries.length > 0) {
    throw new AttestationError('COSE_UNPROTECTED_HEADER', 'the unprotected header must be an empty map');
  }
  passed('header.unprotected');

  if (payload.length === 0 || payload.length > MAX_PAYLOAD_SIZE) {
    const message = `the payload has ${quantity(payload.length, 'byte')}, but must have 1 to ${MAX_PAYLOAD_SIZE}`;
    throw new AttestationError('COSE_PAYLOAD_SIZE', message);
  }
  passed('payload.size', quantity(payload.length, 'byte'));

  if (signature.length !== SIGNATURE_SIZE) {
    const message = `the signature has ${quantity(signature.length, 'byte')}, but an ES384 signature has ${SIGNATURE_SIZE}`;
    throw new AttestationError('COSE_SIGNATURE_SIZE', message);
  }
  passed('signature.size');
  return { payload, signature };
}

function shapeError(problem: string): AttestationError {
  return new AttestationError(
    'COSE_SHAPE',
    `not a COSE_Sign1, which is [protected bytes, unprotected map, payload bytes, signature bytes]: ${problem}`,
  );
}

function trailingBytes(part: string, count: number): AttestationError {
  return new AttestationError(
    'CBOR_TRAILING_BYTES',
    `the end of ${part} is followed by ${quantity(count, 'byte')}`,
  );
}

function decodePayload(
  bytes: Uint8Array,
  passed: Passed,
): Omit<AttestationDocument, 'payload' | 'signature'> {
  const { item: content, length } = readCbor(bytes, 'lenient');
  passed('payload.cbor');
  if (length < bytes.length) throw trailingBytes('the payload', bytes.length - length);
  passed('payload.end');
  const fields = readFields(content, passed);
  const moduleId = readModuleId(fields.get('module_id'));
  passed('payload.module_id', moduleId);
  const timestamp = readTimestamp(fields.get('timestamp'));
  passed('payload.timestamp', new Date(timestamp).toISOString());
  const digest = readDigest(fields.get('digest'));
  passed('payload.digest', digest);
  const pcrs = readRegisters(fields.get('pcrs'));
  passed('payload.pcrs', quantity(pcrs.size, 'register'));
  const certificate = readCertificate('certificate', fields.get('certificate'));
  const cabundle = readBundle(fields.get('cabundle'));
  passed('payload.certificates', quantity(cabundle.length + 1, 'certificate'));
  const publicKey = readOptionalBytes('public_key', fields.get('public_key'), MAX_PUBLIC_KEY_SIZE);
  const userData = readOptionalBytes('user_data', fields.get('user_data'), MAX_USER_DATA_SIZE);
  const nonce = readOptionalBytes('nonce', fields.get('nonce'), MAX_NONCE_SIZE);
  passed(
    'payload.optional',
    `sizes: ${[publicKey, userData, nonce].map((value) => value?.length ?? 'none').join(', ')}`,
  );
  return {
    moduleId,
    timestamp,
    digest,
    pcrs,
    certificate,
    cabundle,
    publicKey,
    userData,
    nonce,
  };
}

function readFields(content: CborItem, passed: Passed): Map<string, CborItem> {
  if (!(content instanceof CborMap)) throw wrongType('payload', 'a map');
  const entries = content.entries.map(([key, value]): [string, CborItem] => {
    if (typeof key !== 'string') throw wrongType('payload', 'a map whose keys are strings');
    return [key, value];
  });
  passed('payload.fields', quantity(entries.length, 'field'));
  refuseRepeated('the payload', content);
  const fields = new Map(entries);
  const pcrs = fields.get('pcrs');
  if (pcrs instanceof CborMap) refuseRepeated('the field "pcrs"', pcrs);
  passed('payload.keys');
  return fields;
}

function refuseRepeated(map: string, { entries }: CborMap): void {
  const keys = new Set<CborItem>();
  for (const [key] of entries) {
    if (keys.has(key)) {
      const message = `${map} has the key ${JSON.stringify(String(key))} more than once`;
      throw new AttestationError('CBOR_DUPLICATE_KEY', message);
    }
    keys.add(key);
  }
}

function readModuleId(value: CborItem | undefined): string {
  if (typeof value !== 'string' || value === '') throw wrongType('module_id', 'a string that is not empty');
  return value;
}

function readTimestamp(value: CborItem | undefined): number {
  if (typeof value !== 'number' || value < 0 || value > MAX_TIME) {
    throw wrongType('timestamp', `an integer from 0 to ${MAX_TIME} (milliseconds)`);
  }
  return value;
}

function readDigest(value: CborItem | undefined): 'SHA384' {
  if (value !== 'SHA384')
    throw new AttestationError('DOCUMENT_DIGEST', 'the field "digest" must be "SHA384"');
  return value;
}

function readRegisters(value: CborItem | undefined): Map<number, Uint8Array> {
  if (!(value instanceof CborMap)) throw wrongType('pcrs', 'a map');
  if (value.entries.length === 0 || value.entries.length > MAX_REGISTERS) {
    throw wrongSize('pcrs', value.entries.length, `1 to ${MAX_REGISTERS} entries`);
  }
  const values = new Map<number, Uint8Array>();
  for (const [index, register] of value.entries) {
    if (typeof index !== 'number' || index < 0 || index >= MAX_REGISTERS) {
      throw new AttestationError('REGISTER_INDEX', 'the index of a register must be an integer from 0 to 31');
    }
    if (!(register instanceof Uint8Array) || !REGISTER_SIZES.includes(register.length)) {
      throw new AttestationError('REGISTER_SIZE', `register ${index} must have 32, 48 or 64 bytes`);
    }
    values.set(index, register);
  }
  return values;
}

function readCertificate(field: string, value: CborItem | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw wrongType(field, 'bytes');
  if (value.length === 0 || value.length > MAX_CERTIFICATE_SIZE) {
    throw wrongSize(field, value.length, `1 to ${MAX_CERTIFICATE_SIZE} bytes`);
  }
  return value;
}

function readBundle(value: CborItem | undefined): Uint8Array[] {
  if (!Array.isArray(value)) throw wrongType('cabundle', 'an array');
  if (value.length === 0 || value.length > MAX_BUNDLE_LENGTH) {
    throw wrongSize('cabundle', value.length, `1 to ${MAX_BUNDLE_LENGTH} certificates`);
  }
  return value.map((entry) => readCertificate('cabundle', entry));
}

function readOptionalBytes(field: string, value: CborItem | undefined, limit: number): Uint8Array | null {
  if (value === undefined || value === null) return null;
  if (!(value instanceof Uint8Array)) throw wrongType(field, 'bytes or null');
  if (value.length > limit) throw wrongSize(field, value.length, `${limit} bytes at most`);
  return value.length === 0 ? null : value;
}

function wrongType(field: string, expected: string): FieldError {
  return new FieldError('DOCUMENT_FIELD', field, `must be ${expected}`);
}

function wrongSize(field: string, size: number, expected: string): FieldError {
  return new FieldError('DOCUMENT_FIELD_SIZE', field, `has ${size}, but must have ${expected}`);
}
