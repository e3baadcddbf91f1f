/** Starts fakes of enclaves and hosts on loopback, some of which are faulty. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { decode, encode } from 'cborg';
import { onTestFinished } from 'vitest';
import { encodeUserData } from '../../../src/library/sealing/user_data.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';

export const PUBLIC_KEY = new Uint8Array(32).fill(0x11);
const USER_DATA = encodeUserData({
  sealingKey: new Uint8Array(32).fill(0x22),
  application: 'weather',
  version: '1.2.3',
});

/** Returns a document of the NSM. @param nonce in hexadecimal */
export async function createDocument(
  nsm: EmulatedNsm,
  nonce: string,
  userData: Uint8Array = USER_DATA,
): Promise<Buffer> {
  const fields = { public_key: PUBLIC_KEY, user_data: userData, nonce: Buffer.from(nonce, 'hex') };
  const { Attestation } = decode(await nsm.transact(encode({ Attestation: fields })));
  return Buffer.from(Attestation.document);
}

type Handler = (path: string, response: ServerResponse, request: IncomingMessage) => unknown;

/** Serves until the test is over. Pages of any origin can read the answers. @returns the server's URL */
export async function serve(handle: Handler): Promise<string> {
  const server = createServer(async (request, response) => {
    response.setHeader('access-control-allow-origin', '*').setHeader('access-control-allow-headers', '*');
    if (request.method === 'OPTIONS') return void response.end();
    await handle(request.url ?? '', response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts an enclave with this NSM. @param change changes its document @returns its URL */
export async function serveEnclave(
  nsm: EmulatedNsm,
  change: (document: Buffer, nonce: string) => Buffer | Promise<Buffer> = (document) => document,
): Promise<string> {
  return await serve(async (path, response) => {
    const nonce = new URL(path, 'http://enclave.invalid').searchParams.get('nonce') ?? '';
    const document = await change(await createDocument(nsm, nonce), nonce);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ attestation: document.toString('hex') }));
  });
}

/** Creates an NSM whose registers are all zero. */
export const debugNsm = () =>
  new EmulatedNsm(
    Date.now,
    undefined,
    [0, 1, 2].map(() => new Uint8Array(48)),
  );

/** An answer that a host has changed. */
export interface ForgedAnswer {
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Starts a host that forwards everything to an enclave, and changes its answers.
 *
 * @param forge returns the changed answer, or undefined to keep it
 */
export async function createHost(
  enclave: string,
  forge: (path: string, text: string) => ForgedAnswer | undefined,
): Promise<string> {
  return await serve(async (path, response, request) => {
    const body = await buffer(request);
    const answer = await fetch(new URL(path, enclave), {
      method: request.method ?? 'GET',
      headers: { 'content-type': request.headers['content-type'] ?? 'application/json' },
      ...(body.length > 0 && { body }),
    });
    const text = await answer.text();
    const forged = forge(path, text);
    response.setHeader('access-control-expose-headers', 'x-enclave-key');
    for (const [name, value] of Object.entries(forged?.headers ?? {})) response.setHeader(name, value);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(forged?.text ?? text);
  });
}
