/** Answers to sealed requests: `README.md` specifies their bytes. */
import { concatBytes } from '@noble/curves/utils.js';
import { decodeContent, encodeContent, invalidContent } from './content.ts';
import { SealingError } from './errors.ts';
import { createAlteredError, type ExportSecret, type Suite, TAG_SIZE } from './hpke.ts';

const VERSION = 1;
const LABEL = 'sui-enclave sealed answer 1';
/** Size in bytes of the nonce that gives each answer its own key, even if the host repeats a request. */
const NONCE_SIZE = 32;
const HEADER_SIZE = 1 + NONCE_SIZE;
/** The key seals one message only, so the nonce of AES-GCM may be constant. */
const GCM_NONCE = new Uint8Array(12);
const SECRET_SIZE = 32;

/** An answer that the enclave sealed for one request. */
export interface Answer {
  /** The HTTP status of the answer. */
  readonly status: number;
  /** The JSON body of the plain answer. */
  readonly body: unknown;
  /** The `Retry-After` of the plain answer, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  /** The enclave's id of the request, as in its events; undefined from an enclave of an earlier version. */
  readonly requestId: string | undefined;
}

/** The secret that seals one answer. */
export interface AnswerSecret {
  /** The first bytes of the answer: version and nonce. They are authenticated. */
  readonly header: Uint8Array;
  /** The key of AES-256-GCM, 32 bytes. */
  readonly key: Uint8Array;
}

/** Function that encrypts with AES-256-GCM synchronously, as the server does. */
export type SealNow = (
  key: Uint8Array,
  nonce: Uint8Array,
  aad: Uint8Array,
  plaintext: Uint8Array,
) => Uint8Array;

/**
 * Derives the secret that seals an answer.
 *
 * @param nonce only for test vectors; default: random
 * @param label identifies the kind of message that is answered; default: a request
 */
export async function deriveAnswerSecret(
  exportSecret: ExportSecret,
  nonce: Uint8Array = globalThis.crypto.getRandomValues(new Uint8Array(NONCE_SIZE)),
  label: string = LABEL,
): Promise<AnswerSecret> {
  const key = await exportSecret(concatBytes(new TextEncoder().encode(label), nonce), SECRET_SIZE);
  return { header: concatBytes(Uint8Array.of(VERSION), nonce), key };
}

/** The content of a sealed answer. */
export interface SealedContent {
  readonly status: number;
  /** The body, the same as in a plain answer. */
  readonly json: string;
  readonly retryAfterSeconds?: number | undefined;
  /** Id of the request: a UUID in lower case. */
  readonly requestId?: string | undefined;
}

/** Seals an answer. Call this only once for each secret. */
export function sealAnswer(
  { header, key }: AnswerSecret,
  { status, json, retryAfterSeconds, requestId }: SealedContent,
  padding: number,
  seal: SealNow,
): Uint8Array {
  const retry = retryAfterSeconds === undefined ? '' : `"retry_after":${retryAfterSeconds},`;
  const id = requestId === undefined ? '' : `"request_id":"${requestId}",`;
  const plaintext = encodeContent(`{"status":${status},${retry}${id}"body":${json}}`, padding);
  return concatBytes(header, seal(key, GCM_NONCE, header, plaintext));
}

/**
 * Opens a sealed answer.
 *
 * @param label as for `deriveAnswerSecret`
 * @throws SealingError: SEALED_MALFORMED, SEALED_ALTERED, SEALED_CONTENT
 */
export async function openAnswer(
  message: Uint8Array,
  exportSecret: ExportSecret,
  { aead }: Suite,
  label: string = LABEL,
): Promise<Answer> {
  if (message.length < HEADER_SIZE + TAG_SIZE || message[0] !== VERSION) {
    throw new SealingError('SEALED_MALFORMED', `this is not a sealed answer of version ${VERSION}`);
  }
  const header = message.slice(0, HEADER_SIZE);
  const { key } = await deriveAnswerSecret(exportSecret, header.subarray(1), label);
  let content: Uint8Array;
  try {
    content = await aead.Open(key, GCM_NONCE, header, message.subarray(HEADER_SIZE));
  } catch {
    throw createAlteredError();
  }
  return readAnswer(content);
}

function readAnswer(content: Uint8Array): Answer {
  const { status, retry_after, request_id, body } = decodeContent(content, [
    'status',
    'retry_after',
    'request_id',
    'body',
  ]);
  if (!isInteger(status, 200, 599)) throw invalidContent('its status must be an integer from 200 to 599');
  if (retry_after !== undefined && !isInteger(retry_after, 0, Number.MAX_SAFE_INTEGER)) {
    throw invalidContent('its retry_after must be a number of seconds');
  }
  if (request_id !== undefined && !isUuid(request_id)) throw invalidContent('its request_id must be a UUID');
  if (body === undefined) throw invalidContent('it has no body');
  return { status, body, retryAfterSeconds: retry_after, requestId: request_id };
}

/** Returns whether the value is a UUID (RFC 9562, section 4) in lower case. */
function isUuid(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value);
}

function isInteger(value: unknown, from: number, to: number): value is number {
  return Number.isInteger(value) && (value as number) >= from && (value as number) <= to;
}
