/** Sealed requests: `README.md` specifies their bytes. */
import { concatBytes, equalBytes } from '@noble/curves/utils.js';
import type { Key } from 'hpke';
import { decodeContent, encodeContent, invalidContent } from './content.ts';
import { SealingError } from './errors.ts';
import { KEY_SIZE, openWith, type Suite, sealTo, TAG_SIZE, webCryptoSuite } from './hpke.ts';
import { type Answer, type AnswerSecret, deriveAnswerSecret, openAnswer } from './response.ts';

/** Path to which sealed requests are sent, by POST. */
export const SEALED_PATH = 'sealed';
/** The media type of sealed requests and their answers. */
export const SEALED_TYPE = 'application/vnd.sui-enclave.sealed';

const VERSION = 1;
const INFO = new TextEncoder().encode('sui-enclave sealed request 1');
/** Size of the version and the recipient's key, which are sent in clear and authenticated. */
const HEADER_SIZE = 1 + KEY_SIZE;
const MIN_SIZE = HEADER_SIZE + KEY_SIZE + TAG_SIZE;

/** The part of a request that the host can't read. */
export interface SealedCall {
  readonly method: 'GET' | 'POST';
  /** Path of the endpoint with its query, such as `/draw?note=a`. */
  readonly path: string;
  /** The JSON body of the plain request. Undefined for GET. */
  readonly body?: unknown;
}

export interface SealOptions {
  /**
   * The sealed content is padded to a multiple of this number of bytes, to hide its length. Default: 0, no
   * padding.
   */
  readonly padding?: number;
  readonly suite?: Suite;
}

/** A sealed request, and the only way to open its answer. */
export interface SealedRequest {
  readonly message: Uint8Array;
  /** @throws SealingError: SEALED_MALFORMED, SEALED_ALTERED, SEALED_CONTENT */
  openAnswer(message: Uint8Array): Promise<Answer>;
}

/**
 * Seals a request to an enclave.
 *
 * @param sealingKey the enclave's key from its verified attestation document, 32 bytes
 * @throws SealingError: SEALING_UNSUPPORTED
 */
export async function sealRequest(
  sealingKey: Uint8Array,
  { method, path, body }: SealedCall,
  { padding = 0, suite = webCryptoSuite() }: SealOptions = {},
): Promise<SealedRequest> {
  const aad = concatBytes(Uint8Array.of(VERSION), sealingKey);
  const plaintext = encodeContent(JSON.stringify({ method, path, body }), padding);
  const { enc, ciphertext, exportSecret } = await sealTo(sealingKey, { info: INFO, aad, plaintext }, suite);
  return {
    message: concatBytes(aad, enc, ciphertext),
    openAnswer: (message) => openAnswer(message, exportSecret, suite),
  };
}

/** The enclave's own private key, in the form that its suite accepts. */
export interface RecipientKey extends Key {
  /** The enclave's X25519 public key, 32 bytes. */
  readonly publicKey: Uint8Array;
}

/**
 * A request that was opened. It was not changed in transit, but its content is not checked yet.
 */
export interface OpenedRequest {
  readonly content: Uint8Array;
  /** The secret that seals the answer to this request. */
  readonly answer: AnswerSecret;
}

/** Opens a sealed request. @throws SealingError: SEALED_MALFORMED, SEALED_KEY_UNKNOWN, SEALED_ALTERED */
export async function openRequest(
  message: Uint8Array,
  key: RecipientKey,
  suite: Suite,
): Promise<OpenedRequest> {
  if (message.length < MIN_SIZE) {
    throw new SealingError('SEALED_MALFORMED', `a sealed request has ${MIN_SIZE} bytes or more`);
  }
  if (message[0] !== VERSION) {
    throw new SealingError('SEALED_MALFORMED', `the sealed request is not of version ${VERSION}`);
  }
  const aad = message.subarray(0, HEADER_SIZE);
  if (!equalBytes(aad.subarray(1), key.publicKey)) {
    const fault = 'the request is sealed to another key: attest the enclave again to get its current key';
    throw new SealingError('SEALED_KEY_UNKNOWN', fault);
  }
  const enc = message.subarray(HEADER_SIZE, HEADER_SIZE + KEY_SIZE);
  const ciphertext = message.subarray(HEADER_SIZE + KEY_SIZE);
  const opened = await openWith(key, { enc, info: INFO, aad, ciphertext }, suite);
  return { content: opened.plaintext, answer: await deriveAnswerSecret(opened.exportSecret) };
}

/** Checks the content of a request. @throws SealingError: SEALED_CONTENT */
export function readCall(content: Uint8Array): SealedCall {
  const { method, path, body } = decodeContent(content, ['method', 'path', 'body']);
  if (method !== 'GET' && method !== 'POST') throw invalidContent('its method must be GET or POST');
  if (typeof path !== 'string' || !/^\/[!"$-~]{0,2047}$/.test(path)) {
    throw invalidContent('its path must begin with a slash and be printable ASCII, 2048 characters at most');
  }
  if ((body === undefined) !== (method === 'GET')) throw invalidContent('POST has a body, and GET has none');
  return { method, path, body };
}
