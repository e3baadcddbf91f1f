/**
 * Predicts the verdict of Sui's verifier (`sui::nitro_attestation`, with the parser of upgraded networks).
 * Applies exactly the rules of the framework's native function, even where those of `verifyAttestation` are
 * stricter. The table in `README.md` compares the two.
 */
import { p384 } from '@noble/curves/nist.js';
import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import { id_ce_basicConstraints, id_ce_keyUsage } from '@peculiar/asn1-x509';
import { CborFloat, type CborItem, CborMap, CborTag, readCbor } from './cbor.ts';
import { type ParsedCertificate, parseCertificate } from './certificate.ts';
import { signedBytes } from './cose.ts';
import { findPartOutOfRange, type Hash, signatureFromDer, verifyEcdsa } from './ecdsa.ts';
import { AttestationError } from './errors.ts';
import { awsNitroRoot } from './root.ts';
import { toMilliseconds } from './verify.ts';

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
   * The earliest notAfter of the chain, which is the last second at which the document can be registered;
   * null when the chain can't be parsed.
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
 * Predicts whether `0x2::nitro_attestation::load_nitro_attestation` accepts the document when Sui's clock
 * shows `now`. Also returns the abort code of a refusal, and until when the document can be registered.
 *
 * Predicts failure for certificates signed by RSA or Ed25519. Sui's verifier can parse them, but no such
 * certificate exists under AWS's root.
 *
 * @param bytes the binary document
 * @param now the time on Sui's clock: a Date, or milliseconds since 1970
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
  const clock = toMilliseconds(now);
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

/** Aborts as Sui's parser does, unless the rule holds. @throws AbortError */
function requireParsable(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new AbortError(ABORT_PARSE, reason);
}

/** Aborts as Sui's verifier does, unless the rule holds. @throws AbortError */
function requireValid(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new AbortError(ABORT_VERIFY, reason);
}

/** Reads one item of lenient CBOR, and ignores any bytes after it. */
function readItem(bytes: Uint8Array, part: string): CborItem {
  try {
    return readCbor(bytes, 'sui').item;
  } catch {
    throw new AbortError(ABORT_PARSE, `${part} is not CBOR`);
  }
}

function readDocument(bytes: Uint8Array): Document {
  const outer = readItem(bytes, 'the document');
  requireParsable(!(outer instanceof CborTag) || outer.tag === 18, 'the document has a tag other than 18');
  const array = outer instanceof CborTag ? outer.content : outer;
  requireParsable(Array.isArray(array) && array.length >= 4, 'the document is not an array of four items');
  const [protectedHeader, unprotectedHeader, payload, signature] = array;
  requireParsable(protectedHeader instanceof Uint8Array, 'the protected header is not bytes');
  checkUnprotectedHeader(unprotectedHeader);
  requireParsable(payload instanceof Uint8Array, 'the payload is not bytes');
  requireParsable(signature instanceof Uint8Array, 'the signature is not bytes');
  checkProtectedHeader(protectedHeader);
  requireParsable(payload.length >= 1 && payload.length <= 16_383, 'the payload must have 1 to 16383 bytes');
  requireParsable(signature.length === 96, 'the signature must have 96 bytes');
  return { protectedHeader, payload, signature, ...readPayload(payload) };
}

/** Accepts any map without duplicate keys, and skips tags before it. */
function checkUnprotectedHeader(header: CborItem | undefined): void {
  let map = header;
  while (map instanceof CborTag) map = map.content;
  requireParsable(map instanceof CborMap, 'the unprotected header is not a map');
  // A header may have any number of keys, so that a comparison of each with all others would take too long.
  const keys = new Set(map.entries.map(([key], index) => formatKey(key, index)));
  requireParsable(keys.size === map.entries.length, 'the unprotected header has a duplicate key');
}

/** Accepts {1: -35} in any encoding. */
function checkProtectedHeader(bytes: Uint8Array): void {
  const header = readItem(bytes, 'the protected header');
  requireParsable(
    header instanceof CborMap &&
      header.entries.length === 1 &&
      header.entries[0]?.[0] === 1 &&
      header.entries[0][1] === -35,
    'the protected header is not {1: -35}',
  );
}

function readPayload(payload: Uint8Array): Pick<Document, 'chain'> {
  const map = readItem(payload, 'the payload');
  requireParsable(map instanceof CborMap, 'the payload is not a map');
  const fields = new Map<string, CborItem>();
  for (const [key, value] of map.entries) {
    requireParsable(typeof key === 'string', 'a key of the payload is not a string');
    requireParsable(!fields.has(key), `the payload has the key ${JSON.stringify(key)} twice`);
    fields.set(key, value);
  }
  const moduleId = fields.get('module_id');
  requireParsable(typeof moduleId === 'string' && moduleId !== '', 'module_id is not a string, or is empty');
  requireParsable(fields.get('digest') === 'SHA384', 'digest is not SHA384');
  const certificate = fields.get('certificate');
  requireParsable(isCertificate(certificate), 'certificate must have 1 to 1024 bytes');
  requireParsable(isU64(fields.get('timestamp')), 'timestamp is not a u64');
  // Sui ignores these fields if their values are not bytes.
  for (const [field, limit] of [
    ['public_key', 1024],
    ['user_data', 512],
    ['nonce', 512],
  ] as const) {
    const value = fields.get(field);
    requireParsable(
      !(value instanceof Uint8Array) || value.length <= limit,
      `${field} has more than ${limit} bytes`,
    );
  }
  checkRegisters(fields.get('pcrs'));
  const cabundle = fields.get('cabundle');
  requireParsable(
    Array.isArray(cabundle) && cabundle.length >= 1 && cabundle.length <= 10,
    'cabundle must have 1 to 10 certificates',
  );
  requireParsable(cabundle.every(isCertificate), 'each certificate of cabundle must have 1 to 1024 bytes');
  return { chain: [certificate, ...cabundle.toReversed()] };
}

function isCertificate(value: CborItem | undefined): value is Uint8Array {
  return value instanceof Uint8Array && value.length >= 1 && value.length <= 1024;
}

function isU64(value: CborItem | undefined): boolean {
  return (typeof value === 'number' || typeof value === 'bigint') && value >= 0;
}

/** Accepts a document that lacks registers, since Sui has removed the rule that aborted with 3. */
function checkRegisters(registers: CborItem | undefined): void {
  requireParsable(
    registers instanceof CborMap && registers.entries.length <= 32,
    'pcrs is not a map of at most 32 entries',
  );
  const seen = new Set<number>();
  for (const [index, value] of registers.entries) {
    requireParsable(
      value instanceof Uint8Array && [32, 48, 64].includes(value.length),
      'each register must have 32, 48 or 64 bytes',
    );
    requireParsable(
      typeof index === 'number' && index >= 0 && index <= 255,
      'the index of a register is not a u8',
    );
    requireParsable(!seen.has(index), `register ${index} occurs twice`);
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
  requireValid(findPartOutOfRange(signature) === null, 'r or s of the signature is out of range');
  const valid = await verifyEcdsa({
    curve: 'P-384',
    hash: 'SHA-384',
    publicKey: decompressPoint(leaf?.publicKey ?? new Uint8Array()),
    signature,
    message: signedBytes(protectedHeader, payload),
  });
  requireValid(valid, 'the signature does not match');
}

/** Returns the uncompressed form of a P-384 point, which may be compressed. */
function decompressPoint(bits: Uint8Array): Uint8Array {
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
    requireValid(
      certificate.notBefore.getTime() <= second && second <= certificate.notAfter.getTime(),
      `certificate ${index} from the leaf is not valid at this time`,
    );
    // The pinned root must have issued the last certificate, even if that is the root itself.
    const issuer = chain[index + 1] ?? root;
    const hint =
      issuer === root
        ? ": the chain does not end at AWS's root, which Sui pins. An emulated enclave can be registered only on the chain of sui-enclave dev-sui, with --root out/dev-root.pem"
        : '';
    requireValid(
      equalBytes(certificate.issuer, issuer.subject),
      `certificate ${index} from the leaf names another issuer${hint}`,
    );
    requireValid(
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
    requireValid(keyUsage?.digitalSignature === true, 'the leaf has no keyUsage with digitalSignature');
    requireValid(
      basicConstraints === null || (!basicConstraints.ca && basicConstraints.pathLength === null),
      'the leaf is an authority',
    );
    return;
  }
  requireValid(keyUsage?.keyCertSign === true, `certificate ${index} from the leaf has no keyCertSign`);
  requireValid(
    basicConstraints?.critical === true && basicConstraints.ca,
    `certificate ${index} from the leaf is not an authority`,
  );
  requireValid(
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

/** Returns a text that two keys of a map have in common only if they are equal. NaN is equal to nothing. */
function formatKey(key: CborItem, index: number): string {
  const formatAll = (elements: readonly CborItem[]) =>
    elements.map((element) => formatKey(element, index)).join();
  if (key instanceof Uint8Array) return `h'${bytesToHex(key)}'`;
  if (key instanceof CborFloat) return Number.isNaN(key.value) ? `NaN ${index}` : `float ${key.value}`;
  if (key instanceof CborTag) return `${key.tag}(${formatKey(key.content, index)})`;
  if (key instanceof CborMap) return `{${formatAll(key.entries.flat())}}`;
  if (Array.isArray(key)) return `[${formatAll(key)}]`;
  return typeof key === 'string' ? JSON.stringify(key) : String(key);
}
