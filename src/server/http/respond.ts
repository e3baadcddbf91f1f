import type { ServerResponse } from 'node:http';
import { SignedAnswer } from '../signer.ts';

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
function send(response: ServerResponse, status: number, type: string, body: string, bytes: number): void {
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
}

export function sendJson(response: ServerResponse, status: number, value: SignedAnswer | object): void {
  const isSigned = value instanceof SignedAnswer;
  const json = isSigned ? value.json : JSON.stringify(value);
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
