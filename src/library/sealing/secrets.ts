/** Sealed secrets, and the receipt for them: `README.md` specifies their bytes. */
import { bcs, fromBase64, toBase64 } from '@mysten/bcs';
import { bytesToHex, equalBytes, hexToBytes } from '@noble/curves/utils.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { text } from '../wire/bcs.ts';
import { decodeContent, encodeContent, invalidContent } from './content.ts';
import { SealingError } from './errors.ts';
import {
  ALGORITHM_IDS,
  type ExportSecret,
  KEY_SIZE,
  openWith,
  type Suite,
  sealTo,
  TAG_SIZE,
  webCryptoSuite,
} from './hpke.ts';
import type { RecipientKey } from './request.ts';
import { type Answer, type AnswerSecret, deriveAnswerSecret, openAnswer } from './response.ts';

/** Path to which sealed secrets are sent, by POST. */
export const SECRETS_PATH = 'secrets';

const VERSION = 1;
const INFO_LABEL = 'sui-enclave sealed secrets 1';
const SIGNED_LABEL = 'sui-enclave provisioned secrets 1';
const RECEIPT_LABEL = new TextEncoder().encode('sui-enclave secrets receipt 1');
const ANSWER_LABEL = 'sui-enclave secrets answer 1';
const NO_AAD = new Uint8Array();

const REGISTER_SIZE = 48;
const SIGNATURE_SIZE = 64;
const RECEIPT_KEY_SIZE = 32;
/**
 * The content is padded to a multiple of this number of bytes, since the lengths of values reveal something
 * about them.
 */
const PADDING = 256;
/**
 * Maximum size of the JSON of all secrets, in bytes. Sealed and in base64, it still fits into a hand-off of
 * 64 KiB.
 */
const MAX_CONTENT_SIZE = 48_000;

/** The recipient of a set of secrets: one start of one image. */
export interface EnclaveState {
  readonly application: string;
  readonly version: string;
  /** PCR0 to PCR2, 48 bytes each. */
  readonly registers: readonly [Uint8Array, Uint8Array, Uint8Array];
  /** The Ed25519 key that signs the receipt, 32 bytes. */
  readonly signingKey: Uint8Array;
}

/** A message with sealed secrets as it was sent. Only its form is checked. */
export interface SealedSecrets {
  /** The recipient's X25519 key, 32 bytes. */
  readonly key: Uint8Array;
  /** HPKE's encapsulated key, 32 bytes. */
  readonly enc: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly signed?: {
    /** The provisioner's Ed25519 public key, 32 bytes. */
    readonly provisioner: Uint8Array;
    /** The signature of `provisionedBytes`, 64 bytes. */
    readonly signature: Uint8Array;
  };
}

/** An ed25519 key that signs sealed secrets. It may be kept offline or in hardware. */
export interface ProvisionerKey {
  /** The Ed25519 public key of the provisioner, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** @returns 64 bytes */
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** An enclave's receipt for the secrets that it has accepted, in the same order. */
export interface Receipt {
  readonly names: readonly string[];
  /** The HMAC-SHA256 of each value in UTF-8, in hexadecimal. */
  readonly hmacs: readonly string[];
}

const Info = bcs.struct('SecretsInfo', {
  label: text,
  application: text,
  version: text,
  pcr0: bcs.bytes(REGISTER_SIZE),
  pcr1: bcs.bytes(REGISTER_SIZE),
  pcr2: bcs.bytes(REGISTER_SIZE),
  signing_key: bcs.bytes(KEY_SIZE),
});

const Signed = bcs.struct('ProvisionedSecrets', {
  label: text,
  kem: bcs.u16(),
  kdf: bcs.u16(),
  aead: bcs.u16(),
  key: bcs.bytes(KEY_SIZE),
  info: bcs.byteVector(),
  enc: bcs.bytes(KEY_SIZE),
  ciphertext: bcs.byteVector(),
});

/** Returns HPKE's `info`, which binds the secrets to this state. */
export function secretsInfo({ application, version, registers, signingKey }: EnclaveState): Uint8Array {
  const [pcr0, pcr1, pcr2] = registers;
  const fields = { label: INFO_LABEL, application, version, pcr0, pcr1, pcr2, signing_key: signingKey };
  return Info.serialize(fields).toBytes();
}

/** Returns the structure that a provisioner signs. */
export function provisionedBytes({ key, enc, ciphertext }: SealedSecrets, state: EnclaveState): Uint8Array {
  const info = secretsInfo(state);
  const fields = { label: SIGNED_LABEL, ...ALGORITHM_IDS, key, info, enc, ciphertext };
  return Signed.serialize(fields).toBytes();
}

export interface SealSecretsOptions {
  /**
   * Key that signs the message. Without a key, only a hand-off to an enclave without provisioners accepts the
   * message.
   */
  readonly provisioner?: ProvisionerKey | undefined;
  readonly suite?: Suite;
}

/** Sealed secrets, and the only way to open the answer to them. */
export interface SealedMessage {
  /** The JSON to send, on one line. */
  readonly json: string;
  /** @throws SealingError: SEALED_MALFORMED, SEALED_ALTERED, SEALED_CONTENT */
  openAnswer(message: Uint8Array): Promise<Answer>;
  /** Returns whether the receipt is for exactly these names and values. */
  isReceipt(body: unknown): boolean;
}

/**
 * Seals secrets to an enclave.
 *
 * @param sealingKey the enclave's key, 32 bytes. Key and state must come from one verified attestation
 *   document
 * @throws SealingError: SEALED_TOO_LARGE, SEALING_UNSUPPORTED
 */
export async function sealSecrets(
  secrets: Readonly<Record<string, string>>,
  sealingKey: Uint8Array,
  state: EnclaveState,
  { provisioner, suite = webCryptoSuite() }: SealSecretsOptions = {},
): Promise<SealedMessage> {
  // Copy the secrets, since the receipt is compared with what was sealed.
  const values = { ...secrets };
  const plaintext = encodeContent(JSON.stringify(values), PADDING);
  if (plaintext.length > MAX_CONTENT_SIZE) throw tooLarge();
  const bound = { info: secretsInfo(state), aad: NO_AAD, plaintext };
  const { enc, ciphertext, exportSecret } = await sealTo(sealingKey, bound, suite);
  const sealed = { key: sealingKey, enc, ciphertext };
  const signature = await provisioner?.sign(provisionedBytes(sealed, state));
  const signed = provisioner && signature && { provisioner: provisioner.publicKey, signature };
  const receiptKey = await exportSecret(RECEIPT_LABEL, RECEIPT_KEY_SIZE);
  const expected = JSON.stringify(createReceipt(values, receiptKey));
  return {
    json: encodeSealedSecrets(signed ? { ...sealed, signed } : sealed),
    openAnswer: (message) => openAnswer(message, exportSecret, suite, ANSWER_LABEL),
    isReceipt: (body) => JSON.stringify(body) === expected,
  };
}

/** Returns the message as JSON, on one line. */
export function encodeSealedSecrets({ key, enc, ciphertext, signed }: SealedSecrets): string {
  const sealed = {
    version: VERSION,
    key: bytesToHex(key),
    enc: bytesToHex(enc),
    ciphertext: toBase64(ciphertext),
    ...(signed && {
      provisioner: bytesToHex(signed.provisioner),
      signature: bytesToHex(signed.signature),
    }),
  };
  return JSON.stringify({ sealed });
}

/**
 * Returns whether a hand-off is sealed. No secret has the name `sealed`: names of secrets are in upper case.
 */
export function isSealed(json: unknown): boolean {
  return typeof json === 'object' && json !== null && Object.hasOwn(json, 'sealed');
}

/**
 * Checks the form of a message: exactly what `encodeSealedSecrets` returns, with its properties in any order.
 *
 * @param json parsed
 * @throws SealingError: SEALED_MALFORMED, SEALED_TOO_LARGE
 */
export function decodeSealedSecrets(json: unknown): SealedSecrets {
  const { sealed } = readProperties(json, ['sealed']);
  const fields = readProperties(sealed, ['version', 'key', 'enc', 'ciphertext', 'provisioner', 'signature']);
  const { version, key, enc, ciphertext, provisioner, signature } = fields;
  if (version !== VERSION) throw malformed(`its version is not ${VERSION}`);
  const bytes = {
    key: fromHex(key, KEY_SIZE, 'key'),
    enc: fromHex(enc, KEY_SIZE, 'enc'),
    ciphertext: decodeCiphertext(ciphertext),
  };
  if (provisioner === undefined && signature === undefined) return bytes;
  const signed = {
    provisioner: fromHex(provisioner, KEY_SIZE, 'provisioner'),
    signature: fromHex(signature, SIGNATURE_SIZE, 'signature'),
  };
  return { ...bytes, signed };
}

/** Secrets that were opened. They were sealed for this state, but are not checked yet. */
export interface OpenedSecrets {
  readonly content: Uint8Array;
  /** The secret that seals the receipt. */
  readonly answer: AnswerSecret;
  readonly receiptKey: Uint8Array;
}

/** @throws SealingError: SEALED_KEY_UNKNOWN if the secrets are sealed to another key */
export function requireRecipient({ key }: SealedSecrets, { publicKey }: RecipientKey): void {
  if (equalBytes(key, publicKey)) return;
  const message = 'the secrets are sealed to another key: attest the enclave again to get its current key';
  throw new SealingError('SEALED_KEY_UNKNOWN', message);
}

/** Opens sealed secrets. @throws SealingError: SEALED_KEY_UNKNOWN, SEALED_ALTERED */
export async function openSecrets(
  sealed: SealedSecrets,
  state: EnclaveState,
  key: RecipientKey,
  suite: Suite,
): Promise<OpenedSecrets> {
  requireRecipient(sealed, key);
  const { enc, ciphertext } = sealed;
  const message = { enc, info: secretsInfo(state), aad: NO_AAD, ciphertext };
  const { plaintext, exportSecret } = await openWith(key, message, suite);
  return {
    content: plaintext,
    answer: await deriveSecretsAnswer(exportSecret),
    receiptKey: await exportSecret(RECEIPT_LABEL, RECEIPT_KEY_SIZE),
  };
}

/**
 * Derives the secret that seals the answer to sealed secrets.
 *
 * @param nonce only for test vectors; default: random
 */
export async function deriveSecretsAnswer(
  exportSecret: ExportSecret,
  nonce?: Uint8Array,
): Promise<AnswerSecret> {
  return await deriveAnswerSecret(exportSecret, nonce, ANSWER_LABEL);
}

/** Parses the opened secrets. @throws SealingError: SEALED_CONTENT */
export function readSecrets(content: Uint8Array): Readonly<Record<string, string>> {
  const values = decodeContent(content);
  if (!Object.values(values).every((value) => typeof value === 'string')) {
    throw invalidContent('a secret is not a string');
  }
  return values as Record<string, string>;
}

export function createReceipt(values: Readonly<Record<string, string>>, key: Uint8Array): Receipt {
  const utf8 = new TextEncoder();
  const computeMac = (value: string) => bytesToHex(hmac(sha256, key, utf8.encode(value)));
  return { names: Object.keys(values), hmacs: Object.values(values).map(computeMac) };
}

/** Returns the value if it is an object that has no properties except these. */
function readProperties(json: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw malformed('it is not an object');
  if (!Object.keys(json).every((name) => names.includes(name))) {
    throw malformed(`it has a property besides ${names.join(', ')}`);
  }
  return json as Record<string, unknown>;
}

function fromHex(value: unknown, size: number, name: string): Uint8Array {
  if (typeof value !== 'string' || value.length !== 2 * size || !/^[0-9a-f]*$/.test(value)) {
    throw malformed(`${name} is not ${2 * size} hexadecimal digits in lower case`);
  }
  return hexToBytes(value);
}

function decodeCiphertext(value: unknown): Uint8Array {
  if (typeof value !== 'string') throw malformed('ciphertext is not a string');
  if (value.length > 4 * Math.ceil((MAX_CONTENT_SIZE + TAG_SIZE) / 3)) throw tooLarge();
  const bytes =
    /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0 ? fromBase64(value) : undefined;
  // Without this comparison, one ciphertext would have several encodings.
  if (bytes === undefined || toBase64(bytes) !== value) throw malformed('ciphertext is not in base64');
  if (bytes.length < TAG_SIZE) throw malformed('ciphertext is too short');
  return bytes;
}

function malformed(problem: string): SealingError {
  return new SealingError('SEALED_MALFORMED', `this is not a message with sealed secrets: ${problem}`);
}

function tooLarge(): SealingError {
  const message = `secrets have at most ${MAX_CONTENT_SIZE} bytes together, as JSON`;
  return new SealingError('SEALED_TOO_LARGE', message);
}
