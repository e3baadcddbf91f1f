import type { ServerResponse } from 'node:http';
import { ApplicationMistake } from '../../errors.ts';
import { ENCLAVE_KEY_HEADER } from '../../fetch.ts';
import { SEALED_TYPE } from '../../sealing/request.ts';
import { type AnswerSecret, sealAnswer } from '../../sealing/response.ts';
import { sealAesGcm } from '../sealing_key.ts';
import { SignedAnswer } from '../signer.ts';
import { discardBody } from './json_body.ts';

/** Where a response keeps what its answer must be sealed with. */
const SECRET = Symbol('secret');
type Sealable = ServerResponse & { [SECRET]?: { readonly answer: AnswerSecret; readonly padding: number } };

/** Headers that say something about the answer, which a sealed one must not show. */
const TELLING_HEADERS = ['retry-after', 'www-authenticate', 'allow'];

/** Where a response keeps the headers that are decided before its answer: names and values in turn. */
const HEADERS = Symbol('headers');
type Prepared = ServerResponse & { [HEADERS]?: string[] };

/** Adds a header to the answer. (Node's `setHeader` costs more: it makes `writeHead` check and copy every header.) */
export function addHeader(response: ServerResponse, name: string, value: string): void {
  const headers = (response as Prepared)[HEADERS];
  if (headers) headers.push(name, value);
  else (response as Prepared)[HEADERS] = [name, value];
}

/** Writes the head of the answer with the added headers. */
export function writeHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  response.writeHead(status, [...((response as Prepared)[HEADERS] ?? []), ...headers]);
}

/**
 * Writes the answer with its length and in one piece (which Node does for a string, but not for a Buffer). Express'
 * helpers would hash every body for an ETag and look up its type, which costs more than the rest of a request.
 */
function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
  bytes: number,
): void {
  // The request is already answered if the handler finishes after its deadline.
  if (response.headersSent) return;
  writeHead(response, status, [
    'content-type',
    type,
    'content-length',
    String(bytes),
    // Every answer describes the present or a single request.
    'cache-control',
    'no-store',
    'x-content-type-options',
    'nosniff',
  ]);
  response.end(body);
  discardBody(response.req);
}

/** @throws ApplicationMistake if there is no JSON for the value */
export function sendJson(response: ServerResponse, status: number, value: SignedAnswer | object): void {
  const isSigned = value instanceof SignedAnswer;
  const json = isSigned ? value.json : JSON.stringify(value);
  // Sealed, it would be an answer with status 200 that its caller can't read.
  if (json === undefined)
    throw new ApplicationMistake('an endpoint returned a value that JSON does not have');
  const secret = (response as Sealable)[SECRET];
  if (secret) {
    sendSealed(response, status, json, secret);
    return;
  }
  // Behind one URL for several enclaves, it spares the caller to try the keys that it knows.
  if (isSigned) addHeader(response, ENCLAVE_KEY_HEADER, value.publicKey);
  send(
    response,
    status,
    'application/json; charset=utf-8',
    json,
    isSigned ? value.bytes : Buffer.byteLength(json),
  );
}

export function sendText(response: ServerResponse, text: string, status = 200): void {
  send(response, status, 'text/plain; charset=utf-8', text, Buffer.byteLength(text));
}

/** From here on, whatever answers this request is sealed: results, errors and a passed deadline. */
export function sealAnswers(response: ServerResponse, answer: AnswerSecret, padding: number): void {
  (response as Sealable)[SECRET] = { answer, padding };
}

function sendSealed(
  response: ServerResponse,
  status: number,
  json: string,
  { answer, padding }: NonNullable<Sealable[typeof SECRET]>,
): void {
  // The secret is for one answer.
  if (response.headersSent) return;
  const retry = takeTellingHeaders(response).get('retry-after');
  const retryAfterSeconds = retry === undefined ? undefined : Number(retry);
  const sealed = sealAnswer(answer, { status, json, retryAfterSeconds }, padding, sealAesGcm);
  send(response, 200, SEALED_TYPE, sealed, sealed.length);
}

/** Removes the headers that say something about the answer, and returns them. */
function takeTellingHeaders(response: Prepared): Map<string, string> {
  const headers = response[HEADERS] ?? [];
  const kept: string[] = [];
  const taken = new Map<string, string>();
  for (let at = 0; at < headers.length; at += 2) {
    const [name, value] = headers.slice(at, at + 2) as [string, string];
    if (TELLING_HEADERS.includes(name)) taken.set(name, value);
    else kept.push(name, value);
  }
  response[HEADERS] = kept;
  return taken;
}
