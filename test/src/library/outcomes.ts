/** Outcomes of requests to a raw server. */
import type { Socket } from 'node:net';
import { fetchBytes, NoAnswerError, unreachableReason } from '../../../src/library/fetch.ts';

export const BOUNDS = { timeoutMs: 10_000, maxSize: 1000 };
export const POST = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'question' };

export interface Outcome {
  readonly reason?: NoAnswerError['reason'];
  readonly why?: string;
  readonly status?: number;
  readonly text?: string;
}

/** Sends a request. @returns the answer, or the reason why there is none */
export async function findOutcome(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit = POST,
  bounds: Partial<typeof BOUNDS> & { readonly signal?: AbortSignal } = {},
): Promise<Outcome> {
  try {
    const { status, bytes } = await fetchBytes(new URL(url), init, { ...BOUNDS, ...bounds, fetch });
    return { status, text: Buffer.from(bytes).toString() };
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    const { reason } = error;
    return reason === 'too large' ? { reason } : { reason, why: unreachableReason(error) };
  }
}

export const answer = (...lines: string[]) => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}`;
export const YES: Outcome = { status: 200, text: 'yes' };
export const FAILED: Outcome = { reason: 'unreachable', why: 'connection' };
export const BROKEN: Outcome = { reason: 'broken', why: 'broken' };
export const REDIRECT: Outcome = { reason: 'unreachable', why: 'redirect' };
/** More header lines than Node's parser keeps by default. */
export const MANY_HEADERS = Array(2500).fill('a:').join('\r\n');
export const LENGTH = 'content-length: 3\r\n\r\nyes';

/** Waits until the client has closed a connection, or reset it. */
export async function waitUntilClosed(socket: Socket | undefined): Promise<void> {
  if (socket === undefined) throw new Error('there was no connection');
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}
