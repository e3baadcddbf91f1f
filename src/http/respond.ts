import type { Response } from 'express';
import { SignedAnswer } from '../signing/signer.ts';

/**
 * Answers are written in one piece, with their length, past Express' own helpers: those hash every body
 * for an ETag and look up its type, which costs more than the rest of a request.
 */
function send(response: Response, status: number, type: string, body: Buffer): void {
  // A handler that finishes after the request's deadline finds it answered.
  if (response.headersSent) return;
  response.writeHead(status, {
    'content-type': type,
    'content-length': body.length,
    // Every answer is about now or about one request.
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}

export function sendJson(response: Response, status: number, value: SignedAnswer | object): void {
  const body = value instanceof SignedAnswer ? value.json : Buffer.from(JSON.stringify(value));
  send(response, status, 'application/json; charset=utf-8', body);
}

export function sendText(response: Response, text: string): void {
  send(response, 200, 'text/plain; charset=utf-8', Buffer.from(text));
}
