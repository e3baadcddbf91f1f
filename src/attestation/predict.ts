/**
 * What Sui's verifier (`sui::nitro_attestation`, with the parsing of upgraded networks) says of a document.
 * It follows the framework's native function rule by rule, also where `verifyAttestation` is stricter; the
 * table in `README.md` lists these rules.
 */

import { p384 } from '@noble/curves/nist.js';
import { equalBytes } from '@noble/curves/utils.js';
import { CborFloat, type CborItem, CborMap, CborTag, readCbor } from './cbor.ts';
import { type ParsedCertificate, parseCertificate } from './certificate.ts';
import { signedBytes } from './cose.ts';
import { type Hash, partOutOfRange, signatureFromDer, verifyEcdsa } from './ecdsa.ts';
import { DocumentSizeError } from './errors.ts';
import { awsNitroRoot } from './root.ts';
import { milliseconds } from './verify.ts';

/** Abort codes of `load_nitro_attestation`. */
export const ABORT_PARSE = 1;
export const ABORT_VERIFY = 2;
export const ABORT_PCRS = 3;

export interface RegistrationPrediction {
  /** Whether `load_nitro_attestation` returns at this clock. */
  readonly accepted: boolean;
  /** The code with which it aborts, or null: 1 the document can't be read, 2 it does not verify, 3 its registers. */
  readonly abort: typeof ABORT_PARSE | typeof ABORT_VERIFY | typeof ABORT_PCRS | null;
  /** Why it aborts, for people; null when it does not. */
  readonly reason: string | null;
  /** The earliest notAfter of the chain, or null when the chain can't be read: the last second for registering. */
  readonly until: Date | null;
}

/** The registers that the framework hands out in any case, zeros included. */
const REQUIRED_REGISTERS: readonly number[] = [0, 1, 2, 3, 4, 8];

/** Ends the walk through Sui's rules. */
class Abort extends Error {
  readonly code: typeof ABORT_PARSE | typeof ABORT_VERIFY | typeof ABORT_PCRS;

  constructor(code: Abort['code'], reason: string) {
    super(reason);
    this.code = code;
  }
}

interface Document {
  readonly protectedHeader: Uint8Array;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  /** Leaf first, as the verifier walks it. */
  readonly chain: readonly Uint8Array[];
  readonly registers: ReadonlySet<number>;
}

/**
 * Whether `0x2::nitro_attestation::load_nitro_attestation` accepts the document when the chain's clock shows
 * `now`, with what it aborts otherwise, and until when it could accept it.
 *
 * Certificates signed by RSA or Ed25519 are predicted to fail; Sui's verifier can read them, but nobody can
 * put one under AWS's root.
 *
 * @param bytes the binary document
 * @param now the clock, as a Date or in milliseconds since 1970
 * @param root DER of the pinned root: AWS's, but for tests
 * @throws DocumentSizeError when `bytes` is no Uint8Array, InvalidTimeError when `now` is no time
 */
export async function predictRegistration(
  bytes: Uint8Array,
  now: Date | number,
  root: Uint8Array = awsNitroRoot(),
): Promise<RegistrationPrediction> {
  if (!(bytes instanceof Uint8Array)) {
    throw new DocumentSizeError('an attestation document is given as a Uint8Array of its bytes');
  }
  const clock = milliseconds(now);
  let until: Date | null = null;
  try {
    const document = readDocument(bytes);
    const chain = document.chain.map(readCertificate);
    until = new Date(Math.min(...chain.map(({ notAfter }) => notAfter.getTime())));
    await checkSignature(document, chain);
    await checkChain(chain, readCertificate(root, 0), clock);
    checkRegisters(document.registers);
    return { accepted: true, abort: null, reason: null, until };
  } catch (error) {
    if (!(error instanceof Abort)) throw error;
    return { accepted: false, abort: error.code, reason: error.message, until };
  }
}

function parseRule(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Abort(ABORT_PARSE, reason);
}

function verifyRule(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Abort(ABORT_VERIFY, reason);
}

/** Lenient CBOR; what follows the item is ignored. */
function read(bytes: Uint8Array, what: string): CborItem {
  try {
    return readCbor(bytes, 'lenient').item;
  } catch {
    throw new Abort(ABORT_PARSE, `${what} is not CBOR`);
  }
}

function readDocument(bytes: Uint8Array): Document {
  const outer = read(bytes, 'the document');
  parseRule(!(outer instanceof CborTag) || outer.tag === 18, 'the document has a tag other than 18');
  const array = outer instanceof CborTag ? outer.content : outer;
  parseRule(Array.isArray(array) && array.length >= 4, 'the document is no array of four');
  const [protectedHeader, unprotectedHeader, payload, signature] = array;
  parseRule(protectedHeader instanceof Uint8Array, 'the protected header is not bytes');
  checkUnprotectedHeader(unprotectedHeader);
  parseRule(payload instanceof Uint8Array, 'the payload is not bytes');
  parseRule(signature instanceof Uint8Array, 'the signature is not bytes');
  checkProtectedHeader(protectedHeader);
  parseRule(payload.length >= 1 && payload.length <= 16_383, 'the payload has not 1 to 16383 bytes');
  parseRule(signature.length === 96, 'the signature has not 96 bytes');
  return { protectedHeader, payload, signature, ...readPayload(payload) };
}

/** Any map does whose keys differ; tags before it are skipped. */
function checkUnprotectedHeader(item: CborItem | undefined): void {
  let map = item;
  while (map instanceof CborTag) map = map.content;
  parseRule(map instanceof CborMap, 'the unprotected header is no map');
  const keys = map.entries.map(([key]) => key);
  const repeated = keys.some((key, index) => keys.slice(0, index).some((other) => equalItems(key, other)));
  parseRule(!repeated, 'the unprotected header has a key twice');
}

/** {1: -35}, in any encoding. */
function checkProtectedHeader(bytes: Uint8Array): void {
  const header = read(bytes, 'the protected header');
  parseRule(
    header instanceof CborMap &&
      header.entries.length === 1 &&
      header.entries[0]?.[0] === 1 &&
      header.entries[0][1] === -35,
    'the protected header is not {1: -35}',
  );
}

function readPayload(payload: Uint8Array): Pick<Document, 'chain' | 'registers'> {
  const map = read(payload, 'the payload');
  parseRule(map instanceof CborMap, 'the payload is no map');
  const fields = new Map<string, CborItem>();
  for (const [key, value] of map.entries) {
    parseRule(typeof key === 'string', 'a key of the payload is no text');
    parseRule(!fields.has(key), `the payload has the key ${JSON.stringify(key)} twice`);
    fields.set(key, value);
  }
  const moduleId = fields.get('module_id');
  parseRule(typeof moduleId === 'string' && moduleId !== '', 'module_id is no text, or empty');
  parseRule(fields.get('digest') === 'SHA384', 'digest is not SHA384');
  const certificate = fields.get('certificate');
  parseRule(isCertificate(certificate), 'certificate has not 1 to 1024 bytes');
  parseRule(isU64(fields.get('timestamp')), 'timestamp is no u64');
  // A value of another type counts as none.
  for (const [field, limit] of [
    ['public_key', 1024],
    ['user_data', 512],
    ['nonce', 512],
  ] as const) {
    const value = fields.get(field);
    parseRule(!(value instanceof Uint8Array) || value.length <= limit, `${field} has over ${limit} bytes`);
  }
  const registers = readRegisters(fields.get('pcrs'));
  const cabundle = fields.get('cabundle');
  parseRule(
    Array.isArray(cabundle) && cabundle.length >= 1 && cabundle.length <= 10,
    'cabundle has not 1 to 10 certificates',
  );
  parseRule(cabundle.every(isCertificate), 'a certificate of cabundle has not 1 to 1024 bytes');
  return { chain: [certificate, ...cabundle.toReversed()], registers };
}

function isCertificate(item: CborItem | undefined): item is Uint8Array {
  return item instanceof Uint8Array && item.length >= 1 && item.length <= 1024;
}

function isU64(item: CborItem | undefined): boolean {
  return (typeof item === 'number' || typeof item === 'bigint') && item >= 0;
}

function readRegisters(item: CborItem | undefined): Set<number> {
  parseRule(item instanceof CborMap && item.entries.length <= 32, 'pcrs is no map of 32 entries at most');
  const seen = new Set<number>();
  for (const [index, value] of item.entries) {
    parseRule(
      value instanceof Uint8Array && [32, 48, 64].includes(value.length),
      'a register has not 32, 48 or 64 bytes',
    );
    parseRule(typeof index === 'number' && index >= 0 && index <= 255, 'a register index is no u8');
    parseRule(!seen.has(index), `register ${index} stands twice`);
    // Others are dropped before they could be found twice.
    if (REQUIRED_REGISTERS.includes(index) || (index <= 31 && value.some((byte) => byte !== 0))) {
      seen.add(index);
    }
  }
  return seen;
}

/** Leaf first. */
type Chain = readonly ParsedCertificate[];

async function checkSignature(
  { protectedHeader, payload, signature }: Document,
  [leaf]: Chain,
): Promise<void> {
  verifyRule(partOutOfRange(signature) === null, 'r or s of the signature is out of range');
  const valid = await verifyEcdsa({
    curve: 'P-384',
    hash: 'SHA-384',
    publicKey: p384Point(leaf?.publicKey ?? new Uint8Array()),
    signature,
    message: signedBytes(protectedHeader, payload),
  });
  verifyRule(valid, 'the signature does not match');
}

/** The point uncompressed, whichever of the two forms it came in. */
function p384Point(bits: Uint8Array): Uint8Array {
  try {
    return p384.Point.fromBytes(bits).toBytes(false);
  } catch {
    throw new Abort(ABORT_VERIFY, 'the key of the leaf is no P-384 key');
  }
}

async function checkChain(chain: Chain, root: ParsedCertificate, clock: number): Promise<void> {
  const second = Math.floor(clock / 1000) * 1000;
  for (const [index, certificate] of chain.entries()) {
    checkRole(certificate, index);
    verifyRule(
      certificate.notBefore.getTime() <= second && second <= certificate.notAfter.getTime(),
      `certificate ${index} from the leaf is not valid at this time`,
    );
    // The last certificate of the bundle has the pinned root for its issuer, whether or not it is the root.
    const issuer = chain[index + 1] ?? root;
    const hint =
      issuer === root
        ? ": the certificates do not lead to AWS's root, which Sui pins. An emulated enclave can't be registered on any network"
        : '';
    verifyRule(
      equalBytes(certificate.issuer, issuer.subject),
      `certificate ${index} from the leaf names another issuer${hint}`,
    );
    verifyRule(
      await isSignedBy(certificate, issuer),
      `certificate ${index} from the leaf has another signer${hint}`,
    );
  }
}

/** @param index 0 is the leaf, 1 the authority that signed it, and so on */
function checkRole({ keyUsage, basicConstraints }: ParsedCertificate, index: number): void {
  if (index === 0) {
    verifyRule(keyUsage?.digitalSignature === true, 'the leaf has no keyUsage with digitalSignature');
    verifyRule(
      basicConstraints === null || (!basicConstraints.ca && basicConstraints.pathLength === null),
      'the leaf is an authority',
    );
    return;
  }
  verifyRule(keyUsage?.keyCertSign === true, `certificate ${index} from the leaf has no keyCertSign`);
  verifyRule(
    basicConstraints?.critical === true && basicConstraints.ca,
    `certificate ${index} from the leaf is no authority`,
  );
  verifyRule(
    index - 1 <= (basicConstraints.pathLength ?? Number.POSITIVE_INFINITY),
    `certificate ${index} from the leaf exceeds its pathLenConstraint`,
  );
}

/** ECDSA algorithms of RFC 5758 section 3.2 that the verifier knows. */
const HASHES: ReadonlyMap<string, Hash> = new Map([
  ['1.2.840.10045.4.3.2', 'SHA-256'],
  ['1.2.840.10045.4.3.3', 'SHA-384'],
]);

async function isSignedBy(certificate: ParsedCertificate, issuer: ParsedCertificate): Promise<boolean> {
  const hash = HASHES.get(certificate.signatureAlgorithm);
  const { curve, publicKey } = issuer;
  const signature = curve && signatureFromDer(curve, certificate.signature);
  if (!hash || !curve || !signature) return false;
  return await verifyEcdsa({ curve, hash, publicKey, signature, message: certificate.tbs });
}

function readCertificate(der: Uint8Array, index: number): ParsedCertificate {
  try {
    return parseCertificate(der, index);
  } catch {
    throw new Abort(ABORT_VERIFY, `certificate ${index} from the leaf can't be read`);
  }
}

function checkRegisters(registers: ReadonlySet<number>): void {
  for (const index of REQUIRED_REGISTERS) {
    if (!registers.has(index)) throw new Abort(ABORT_PCRS, `register ${index} is missing`);
  }
}

function equalItems(a: CborItem, b: CborItem): boolean {
  if (a instanceof Uint8Array) return b instanceof Uint8Array && equalBytes(a, b);
  if (a instanceof CborFloat) return b instanceof CborFloat && a.value === b.value;
  if (a instanceof CborTag)
    return b instanceof CborTag && a.tag === b.tag && equalItems(a.content, b.content);
  if (a instanceof CborMap) {
    return b instanceof CborMap && equalLists(a.entries.flat(), b.entries.flat());
  }
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b);
  return a === b;
}

function equalLists(a: readonly CborItem[], b: readonly CborItem[]): boolean {
  return a.length === b.length && a.every((item, index) => equalItems(item, b[index] as CborItem));
}
