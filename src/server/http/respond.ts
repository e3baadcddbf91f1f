import type { ServerResponse } from 'node:http';
import { SignedAnswer } from '../signer.ts';

/**
 * Writes the answer with its length and in one piece (which Node does for a string, but not for a Buffer). Express'
 * helpers would hash every body for an ETag and look up its type, which costs more than the rest of a request.
 */
function send(response: ServerResponse, status: number, type: string, body: string, bytes: number): void {
  // The request is already answered if the handler finishes after its deadline.
  if (response.headersSent) return;
  response.writeHead(status, {
    'content-type': type,
    'content-length': bytes,
    // Every answer describes the present or a single request.
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
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
