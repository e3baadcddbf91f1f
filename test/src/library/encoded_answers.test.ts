/** Answers with a Content-Encoding. In Node, neither the library nor a command decodes them. */
import zlib from 'node:zlib';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { waitForServer } from '../../../src/cli/parent/expose.ts';
import { attest, needsSecrets } from '../../../src/cli/provision/enclave.ts';
import { connect } from '../../../src/cli/sui/network.ts';
import { EnclaveClient, fetchSchema } from '../../../src/library/client/index.ts';
import { fetchText } from '../../../src/library/fetch.ts';
import { platformFetch } from '../../../src/library/platform_fetch_node.ts';
import {
  completeLogin,
  discoverProvider,
  getProof,
  getSalt,
  PROVIDERS,
  proverProxy,
} from '../../../src/library/zklogin/index.ts';
import { temporaryFolder } from '../prover/backend/support.ts';
import { serve, serveRaw } from './loopback.ts';
import {
  answer,
  BOUNDS,
  findOutcome,
  LENGTH,
  MANY_HEADERS,
  type Outcome,
  POST,
  REDIRECT,
  waitUntilClosed,
  YES,
} from './outcomes.ts';
import { begin, createJwt } from './zklogin/support.ts';

const GZIPPED = zlib.gzipSync('yes').toString('latin1');
const ENCODED: Outcome = { reason: 'unreachable', why: 'encoding' };

describe('a Content-Encoding', () => {
  const gunzip = vi.spyOn(zlib, 'createGunzip');
  afterAll(() => gunzip.mockRestore());

  test("is decoded by Node's fetch, no matter what the request accepts", async () => {
    gunzip.mockClear();
    const { url } = await serveRaw((socket) =>
      socket.end(answer(`content-encoding: gzip\r\n\r\n${GZIPPED}`), 'latin1'),
    );
    const init = { ...POST, headers: { 'accept-encoding': 'identity' } };
    expect(await findOutcome(globalThis.fetch, url, init)).toEqual(YES);
    expect(gunzip).toHaveBeenCalled();
  });

  test.each([
    'gzip',
    'GZIP',
    'x-gzip',
    'deflate',
    'br',
    'zstd',
    'compress',
    'anything',
    'gzip, identity',
    'identity, gzip',
    Array(6).fill('gzip').join(),
    ',gzip',
    'identity;q=1',
    '"identity"',
  ])('%s is refused before the body', async (coding) => {
    await expectRefused(`Content-Encoding: ${coding}`);
  });

  test('in a second header, or after thousands of others, is refused before the body', async () => {
    await expectRefused('content-encoding: identity', 'content-encoding: gzip');
    await expectRefused('content-encoding:', 'Content-Encoding: gzip');
    await expectRefused(MANY_HEADERS, 'content-encoding: gzip');
  });

  async function expectRefused(...lines: string[]): Promise<void> {
    gunzip.mockClear();
    // The body that this head announces never comes.
    const head = answer(...lines, 'content-length: 900\r\n\r\n');
    const { url, sockets } = await serveRaw((socket) => socket.write(head));
    expect(await findOutcome(platformFetch, url)).toEqual(ENCODED);
    await waitUntilClosed(sockets[0]);
    expect(gunzip).not.toHaveBeenCalled();
  }

  test.each([200, 206, 300, 400, 404, 500, 503, 999])('is refused with status %i', async (status) => {
    const head = `HTTP/1.1 ${status} X\r\ncontent-encoding: gzip\r\ncontent-length: 900\r\n\r\n`;
    const { url } = await serveRaw((socket) => socket.write(head));
    expect(await findOutcome(platformFetch, url)).toEqual(ENCODED);
  });

  test('of a redirect changes nothing: the redirect is not followed', async () => {
    const head = 'HTTP/1.1 302 X\r\nlocation: /b\r\ncontent-encoding: gzip\r\ncontent-length: 900\r\n\r\n';
    const { url } = await serveRaw((socket) => socket.write(head));
    expect(await findOutcome(platformFetch, url)).toEqual(REDIRECT);
    await expect(platformFetch(url, { redirect: 'manual' })).rejects.toThrow('fetch failed');
  });

  test.each(['identity', 'Identity', '', ',', 'identity, identity'])(
    '%j is accepted, since it names no encoding',
    async (value) => {
      const { url } = await serveRaw((socket) => socket.end(answer(`content-encoding: ${value}`, LENGTH)));
      expect(await findOutcome(platformFetch, url)).toEqual(YES);
    },
  );
});

describe('in Node, an encoded answer is refused before its body:', () => {
  const REFUSED = { reason: 'encoding' };
  /** Heads of a decompression bomb, with a status of success or failure. */
  const heads = [200, 500].map(
    (status) => `HTTP/1.1 ${status} X\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  const image = { pcr0: 'a1'.repeat(48), pcr1: 'a1'.repeat(48), pcr2: 'a1'.repeat(48) };
  const policy = { images: [image] };
  const proof = {
    jwt: createJwt(begin().claims),
    extendedEphemeralPublicKey: '1',
    maxEpoch: 1,
    jwtRandomness: '1',
    salt: '1',
    keyClaimName: 'sub',
  };

  test.each<[name: string, ask: (url: string) => Promise<unknown>, error: object]>([
    [
      'attestation',
      (url) => new EnclaveClient(url, { policy }).attest(),
      { code: 'CLIENT_UNREACHABLE', ...REFUSED },
    ],
    ['schema', (url) => fetchSchema(url), { code: 'CLIENT_UNREACHABLE', ...REFUSED }],
    ['salt', (url) => getSalt(url, proof.jwt), { code: 'ZKLOGIN_UNREACHABLE', ...REFUSED }],
    ['proof', (url) => getProof(url, proof), { code: 'ZKLOGIN_UNREACHABLE', ...REFUSED }],
    [
      "a provider's document",
      (url) => discoverProvider(url, { name: 'a' }),
      { code: 'ZKLOGIN_UNREACHABLE', ...REFUSED },
    ],
    ['token', exchangeCode, { code: 'ZKLOGIN_UNREACHABLE', ...REFUSED }],
    [
      'the documents for provision',
      (url) => attest(createHttp(url), policy),
      { code: 'CLIENT_UNREACHABLE', ...REFUSED },
    ],
    [
      'the state for provision',
      (url) => needsSecrets(createHttp(url)),
      { code: 'CLIENT_UNREACHABLE', ...REFUSED },
    ],
    [
      "a Sui node's answer to a command",
      (url) => connect(undefined, url).client.core.getReferenceGasPrice(),
      { message: 'fetch failed' },
    ],
    [
      'the readiness for expose_enclave',
      (url) =>
        waitForServer(
          { SUI_ENCLAVE_STATE: temporaryFolder() },
          { address: '127.0.0.1', port: Number(new URL(url).port) },
        ),
      { name: 'ParentError' },
    ],
  ])('%s', async (_name, ask, error) => {
    for (const head of heads) {
      const requests: string[] = [];
      const { url, sockets } = await serveRaw((socket, piece) => {
        const text = piece.toString('latin1');
        // A piece without a request line is a part of a body, and is skipped.
        if (!/^(GET|POST) /.test(text)) return;
        requests.push(text);
        socket.write(head);
      });
      await expect(ask(url)).rejects.toMatchObject(error);
      await waitUntilClosed(sockets[0]);
      // Another attempt would double the load of a service that has already done the work.
      expect(requests).toEqual([expect.stringMatching(/accept-encoding: identity/i)]);
    }
  });

  test('the answer of a prover behind its own proxy', async () => {
    const { url: prover } = await serveRaw((socket) => socket.write(heads[0] ?? ''));
    const proxy = proverProxy(`${prover}/v1`);
    const url = await serve((request, response) => void proxy(request, response));
    const headers = { 'content-type': 'application/json' };
    const textAnswer = await fetchText(new URL(url), { method: 'POST', headers, body: '{}' }, BOUNDS);
    expect([textAnswer.status, JSON.parse(textAnswer.text).code]).toEqual([502, 'ZKLOGIN_UNREACHABLE']);
  });

  test('but not if the caller passes its own fetch, which decodes the answer', async () => {
    const bytes = answer(`content-encoding: gzip\r\n\r\n${zlib.gzipSync('{"salt":"5"}').toString('latin1')}`);
    const { url } = await serveRaw((socket) => socket.end(bytes, 'latin1'));
    expect(await getSalt(url, proof.jwt, { fetch: globalThis.fetch })).toBe('5');
  });
});

const createHttp = (url: string) => ({ base: new URL(`${url}/`), timeoutMs: 10_000 });

async function exchangeCode(url: string): Promise<unknown> {
  const provider = { ...PROVIDERS.google, token: { url, variant: 'grant_type' } } as const;
  const login = begin({ provider });
  return await completeLogin(login.back({ code: 'c' }, '?'), { storage: login.storage });
}
