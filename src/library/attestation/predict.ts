/**
 * Predicts the verdict of Sui's verifier (`sui::nitro_attestation`, with the parser of upgraded networks).
 * Follows the framework's native function rule by rule, even where `verifyAttestation` is stricter: the table
 * in `README.md` lists these rules.
 */
import { p384 } from '@noble/curves/nist.js';
import { equalBytes } from '@noble/curves/utils.js';
import { id_ce_basicConstraints, id_ce_keyUsage } from '@peculiar/asn1-x509';
import { CborFloat, type CborItem, CborMap, CborTag, readCbor } from './cbor.ts';
import { type ParsedCertificate, parseCertificate } from './certificate.ts';
import { signedBytes } from './cose.ts';
import { type Hash, partOutOfRange, signatureFromDer, verifyEcdsa } from './ecdsa.ts';
import { AttestationError } from './errors.ts';
import { awsNitroRoot } from './root.ts';
import { milliseconds } from './verify.ts';

/** Abort codes of `load_nitro_attestation`. */
export const ABORT_PARSE = 1;
export const ABORT_VERIFY = 2;

/** Prediction of whether Sui accepts a document for registration. */
export interface RegistrationPrediction {
  /** Whether `load_nitro_attestation` accepts the document at this time. */
  readonly accepted: boolean;
  /**
   * The code with which it aborts: 1 if it can't parse the document, 2 if the document does not verify; null
   * if it accepts the document.
   */
  readonly abort: typeof ABORT_PARSE | typeof ABORT_VERIFY | null;
  /** Reason of the abort, in words; null if the document is accepted. */
  readonly reason: string | null;
  /**
   * The earliest notAfter of the chain, which is the last second in which to register; null when the chain
   * can't be parsed.
   */
  readonly until: Date | null;
}

/** The registers that the framework always returns, zeros included. */
const REQUIRED_REGISTERS: readonly number[] = [0, 1, 2, 3, 4, 8];

/** The first of Sui's rules that the document breaks. */
class AbortError extends Error {
  readonly code: typeof ABORT_PARSE | typeof ABORT_VERIFY;

  constructor(code: AbortError['code'], reason: string) {
    super(reason);
    this.code = code;
  }
}

interface Document {
  readonly protectedHeader: Uint8Array;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  /** Leaf first, the order in which the verifier checks them. */
  readonly chain: readonly Uint8Array[];
}

/**
 * Predicts whether `0x2::nitro_attestation::load_nitro_attestation` accepts the document when the chain's
 * clock shows `now`, the abort code if it doesn't, and until when it could accept the document.
 *
 * Predicts failure for certificates signed by RSA or Ed25519. Sui's verifier can parse them, but nobody can
 * issue one under AWS's root.
 *
 * @param bytes the binary document
 * @param now the time on the chain's clock: a Date, or milliseconds since 1970
 * @param root DER of the pinned root, for tests. Default: AWS's
 * @throws AttestationError: DOCUMENT_SIZE when `bytes` is not a Uint8Array, TIME_INVALID when `now` is not a
 *   valid time
 */
export async function predictRegistration(
  bytes: Uint8Array,
  now: Date | number,
  root: Uint8Array = awsNitroRoot(),
): Promise<RegistrationPrediction> {
  if (!(bytes instanceof Uint8Array)) {
    throw new AttestationError('DOCUMENT_SIZE', 'the attestation document must be a Uint8Array');
  }
  const clock = milliseconds(now);
  let until: Date | null = null;
  try {
    const document = readDocument(bytes);
    const chain = document.chain.map(readCertificate);
    until = new Date(Math.min(...chain.map(({ notAfter }) => notAfter.getTime())));
    await checkSignature(document, chain);
    await checkChain(chain, readCertificate(root, 0), clock);
    return { accepted: true, abort: null, reason: null, until };
  } catch (error) {
    if (!(error instanceof AbortError)) throw error;
    return { accepted: false, abort: error.code, reason: error.message, until };
  }
}

function parseRule(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new AbortError(ABORT_PARSE, reason);
}

function verifyRule(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new AbortError(ABORT_VERIFY, reason);
}

/** Reads lenient CBOR, and ignores the bytes after the item. */
function read(bytes: Uint8Array, part: string): CborItem {
  try {
    return readCbor(bytes, 'sui').item;
  } catch {
    throw new AbortError(ABORT_PARSE, `${part} is not CBOR`);
  }
}

function readDocument(bytes: Uint8Array): Document {
  const outer = read(bytes, 'the document');
  parseRule(!(outer instanceof CborTag) || outer.tag === 18, 'the document has a tag other than 18');
  const array = outer instanceof CborTag ? outer.content : outer;
  parseRule(Array.isArray(array) && array.length >= 4, 'the document is not an array of four items');
  const [protectedHeader, unprotectedHeader, payload, signature] = array;
  parseRule(protectedHeader instanceof Uint8Array, 'the protected header is not bytes');
  checkUnprotectedHeader(unprotectedHeader);
  parseRule(payload instanceof Uint8Array, 'the payload is not bytes');
  parseRule(signature instanceof Uint8Array, 'the signature is not bytes');
  checkProtectedHeader(protectedHeader);
  parseRule(payload.length >= 1 && payload.length <= 16_383, 'the payload must have 1 to 16383 bytes');
  parseRule(signature.length === 96, 'the signature must have 96 bytes');
  return { protectedHeader, payload, signature, ...readPayload(payload) };
}

/** Accepts any map without duplicate keys, and skips tags before it. */
function checkUnprotectedHeader(item: CborItem | undefined): void {
  let map = item;
  while (map instanceof CborTag) map = map.content;
  parseRule(map instanceof CborMap, 'the unprotected header is not a map');
  const keys = map.entries.map(([key]) => key);
  const repeated = keys.some((key, index) =>
    keys.slice(0, index).some((earlierKey) => equalItems(key, earlierKey)),
  );
  parseRule(!repeated, 'the unprotected header has a duplicate key');
}

/** Accepts {1: -35} in any encoding. */
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

function readPayload(payload: Uint8Array): Pick<Document, 'chain'> {
  const map = read(payload, 'the payload');
  parseRule(map instanceof CborMap, 'the payload is not a map');
  const fields = new Map<string, CborItem>();
  for (const [key, value] of map.entries) {
    parseRule(typeof key === 'string', 'a key of the payload is not a string');
    parseRule(!fields.has(key), `the payload has the key ${JSON.stringify(key)} twice`);
    fields.set(key, value);
  }
  const moduleId = fields.get('module_id');
  parseRule(typeof moduleId === 'string' && moduleId !== '', 'module_id is not a string, or is empty');
  parseRule(fields.get('digest') === 'SHA384', 'digest is not SHA384');
  const certificate = fields.get('certificate');
  parseRule(isCertificate(certificate), 'certificate must have 1 to 1024 bytes');
  parseRule(isU64(fields.get('timestamp')), 'timestamp is not a u64');
  // Sui ignores values of another type.
  for (const [field, limit] of [
    ['public_key', 1024],
    ['user_data', 512],
    ['nonce', 512],
  ] as const) {
    const value = fields.get(field);
    parseRule(
      !(value instanceof Uint8Array) || value.length <= limit,
      `${field} has more than ${limit} bytes`,
    );
  }
  checkRegisters(fields.get('pcrs'));
  const cabundle = fields.get('cabundle');
  parseRule(
    Array.isArray(cabundle) && cabundle.length >= 1 && cabundle.length <= 10,
    'cabundle must have 1 to 10 certificates',
  );
  parseRule(cabundle.every(isCertificate), 'each certificate of cabundle must have 1 to 1024 bytes');
  return { chain: [certificate, ...cabundle.toReversed()] };
}

function isCertificate(item: CborItem | undefined): item is Uint8Array {
  return item instanceof Uint8Array && item.length >= 1 && item.length <= 1024;
}

function isU64(item: CborItem | undefined): boolean {
  return (typeof item === 'number' || typeof item === 'bigint') && item >= 0;
}

/** Accepts a document that lacks registers, since Sui has removed the rule that aborted with 3. */
function checkRegisters(item: CborItem | undefined): void {
  parseRule(item instanceof CborMap && item.entries.length <= 32, 'pcrs is not a map of at most 32 entries');
  const seen = new Set<number>();
  for (const [index, value] of item.entries) {
    parseRule(
      value instanceof Uint8Array && [32, 48, 64].includes(value.length),
      'each register must have 32, 48 or 64 bytes',
    );
    parseRule(typeof index === 'number' && index >= 0 && index <= 255, 'the index of a register is not a u8');
    parseRule(!seen.has(index), `register ${index} occurs twice`);
    // Sui drops all other registers, so these may occur twice.
    if (REQUIRED_REGISTERS.includes(index) || (index <= 31 && value.some((byte) => byte !== 0))) {
      seen.add(index);
    }
  }
}

/** A chain in the order of Sui's verifier: the leaf first. */
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

/** Returns the uncompressed form of a point in either form. */
function p384Point(bits: Uint8Array): Uint8Array {
  try {
    return p384.Point.fromBytes(bits).toBytes(false);
  } catch {
    throw new AbortError(ABORT_VERIFY, 'the key of the leaf is not a P-384 key');
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
    // The pinned root must have issued the last certificate, even if that is the root itself.
    const issuer = chain[index + 1] ?? root;
    const hint =
      issuer === root
        ? ": the chain does not end at AWS's root, which Sui pins. An emulated enclave can be registered on the chain of sui-enclave dev-sui alone, with --root out/dev-root.pem"
        : '';
    verifyRule(
      equalBytes(certificate.issuer, issuer.subject),
      `certificate ${index} from the leaf names another issuer${hint}`,
    );
    verifyRule(
      await isSignedBy(certificate, issuer),
      `certificate ${index} from the leaf is signed by another key${hint}`,
    );
  }
}

/**
 * Checks only the extensions keyUsage and basicConstraints. Either counts as missing if it occurs twice. Any
 * other extension may occur.
 *
 * @param index 0 is the leaf, 1 the authority that signed it, and so on
 */
function checkRole(certificate: ParsedCertificate, index: number): void {
  const { repeated } = certificate;
  const keyUsage = repeated.includes(id_ce_keyUsage) ? null : certificate.keyUsage;
  const basicConstraints = repeated.includes(id_ce_basicConstraints) ? null : certificate.basicConstraints;
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
    `certificate ${index} from the leaf is not an authority`,
  );
  verifyRule(
    index - 1 <= (basicConstraints.pathLength ?? Number.POSITIVE_INFINITY),
    `certificate ${index} from the leaf exceeds its pathLenConstraint`,
  );
}

/** ECDSA algorithms of RFC 5758 section 3.2 that the verifier supports. */
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
    throw new AbortError(ABORT_VERIFY, `certificate ${index} from the leaf can't be parsed`);
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
