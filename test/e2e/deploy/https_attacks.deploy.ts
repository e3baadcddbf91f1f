/** Attacks Debian's HAProxy with the unchanged haproxy.cfg of deploy/https, in front of a real server. */
import { connect as connectTcp } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import * as v from 'valibot';
import { describe, expect, onTestFinished, test } from 'vitest';
import { defineApp, endpoint } from '../../../src/server/index.ts';
import { startServer } from '../../src/server/support.ts';
import { type Edge, HOST, startEdgeForTest } from './https.ts';
import { HAPROXY, isInstalled, until } from './setup.ts';

const NAME = isInstalled
  ? 'The HTTPS recipe, attacked,'
  : `The HTTPS recipe, attacked, (skipped: no ${HAPROXY})`;
const HONEST = { localAddress: '127.0.0.2' };

/** Starts a real server that records its requests, and HAProxy in front of it. */
async function startSite(env?: Record<string, string>) {
  const paths: string[] = [];
  let simultaneous = 0;
  let maxSimultaneous = 0;
  const handle = (path: string, ms: number) => async () => {
    paths.push(path);
    maxSimultaneous = Math.max(maxSimultaneous, ++simultaneous);
    await sleep(ms);
    simultaneous--;
    return {};
  };
  const endpoints = [
    endpoint({ method: 'GET', path: '/fast', handle: handle('/fast', 0) }),
    endpoint({ method: 'GET', path: '/slow', handle: handle('/slow', 100) }),
    endpoint({ method: 'GET', path: '/hidden', handle: handle('/hidden', 0) }),
    endpoint({ method: 'POST', path: '/body', body: v.strictObject({}), handle: handle('/body', 0) }),
  ];
  const enclave = await startServer({
    env: { TRUSTED_PROXIES: '1', LOG_LEVEL: 'error' },
    module: defineApp({ signs: [], create: () => ({ endpoints }) }),
    manifest: { endpoints: [], secrets: [] },
  });
  const edge = await startEdgeForTest({ old: new URL(enclave.url).host }, env);
  return { edge, paths, maxSimultaneous: () => maxSimultaneous };
}

interface Attacker {
  readonly socket: TLSSocket;
  readonly received: () => string;
  readonly closed: () => boolean;
}

function attack(edge: Edge, options: ConnectionOptions & { localAddress?: string } = {}): Attacker {
  const { httpsPort: port, ca } = edge;
  const socket = connect({ host: '127.0.0.1', port, servername: HOST, ca, ...options });
  let received = '';
  let closed = false;
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  socket
    .on('error', () => {})
    .on('close', () => {
      closed = true;
    });
  onTestFinished(() => void socket.destroy());
  return { socket, received: () => received, closed: () => closed };
}

/** Sends bytes. @returns the answer, once the connection has ended or nothing more has arrived for 250 ms */
async function exchange(edge: Edge, bytes: string): Promise<string> {
  const attacker = attack(edge);
  attacker.socket.write(bytes);
  for (let length = -1; !attacker.closed() && attacker.received().length !== length; await sleep(250)) {
    length = attacker.received() === '' ? -1 : attacker.received().length;
  }
  return attacker.received();
}

const readStatuses = (text: string) =>
  [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));

describe.skipIf(!isInstalled)(NAME, () => {
  test('ends slow headers and slow bodies after 5 s, before the enclave sees them, and serves other callers', async () => {
    const { edge, paths } = await startSite();
    const heads = [
      `GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n`,
      `POST /body HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`,
    ];
    const attackers = Array.from({ length: 60 }, (_, index) => {
      const attacker = attack(edge);
      attacker.socket.write(heads[index % 2] ?? '');
      const drip = setInterval(() => attacker.socket.write(index % 2 === 0 ? 'X: y\r\n' : '1'), 500);
      onTestFinished(() => clearInterval(drip));
      return attacker;
    });
    await sleep(1000);
    expect(await edge.request('/fast', HONEST)).toMatchObject({ status: 200 });
    await until('all slow connections end', () => attackers.every(({ closed }) => closed()));
    expect(new Set(attackers.map(({ received }) => readStatuses(received())[0]))).toEqual(new Set([408]));
    expect(paths).toEqual(['/fast']);
  });

  test('refuses most of 2,000 connections of an address, and still serves other callers', async () => {
    const { edge, paths } = await startSite();
    let open = 2000;
    const sockets = Array.from({ length: open }, () => {
      const socket = connectTcp({ host: '127.0.0.1', port: edge.httpsPort });
      return socket.on('error', () => {}).on('close', () => open--);
    });
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
    await until('the surplus is refused', () => open <= 64);
    expect(await edge.request('/fast', HONEST)).toMatchObject({ status: 200 });
    expect(open).toBeGreaterThan(0);
    expect(paths).toEqual(['/fast']);
  });

  test('opens at most ENCLAVE_CONNECTIONS connections to an enclave, and makes other requests wait', async () => {
    const limits = { ENCLAVE_CONNECTIONS: '8' };
    const { edge, maxSimultaneous } = await startSite(limits);
    const answers = await Promise.all(Array.from({ length: 40 }, () => edge.request('/slow')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(maxSimultaneous()).toBe(8);
  });

  test.each([
    ['one header of 20 KB', `X-Large: ${'x'.repeat(20_000)}\r\n`],
    ['200 headers', Array.from({ length: 200 }, (_, index) => `X-${index}: y\r\n`).join('')],
  ])('refuses %s before the enclave sees the request', async (_, headers) => {
    const { edge, paths } = await startSite();
    const answer = await exchange(edge, `GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n${headers}\r\n`);
    expect(readStatuses(answer)).toEqual([400]);
    expect(paths).toEqual([]);
  });

  test('lets no request be smuggled to the server by a malformed or ambiguous length', async () => {
    const { edge, paths } = await startSite();
    const hidden = `GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
    const [length, empty] = [hidden.length, `0\r\n\r\n${hidden}`];
    const lengths = [
      `Content-Length: ${length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n${empty}`,
      `Transfer-Encoding: chunked\r\nContent-Length: ${length + 5}\r\n\r\n${empty}`,
      `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${empty}`,
      `Content-Length: 0\r\nContent-Length: ${length}\r\n\r\n${hidden}`,
      `Content-Length: 0, ${length}\r\n\r\n${hidden}`,
      `Content-Length: +0\r\n\r\n${hidden}`,
      `Transfer-Encoding: xchunked\r\n\r\n${empty}`,
      `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${empty}`,
      `Transfer-Encoding : chunked\r\n\r\n${empty}`,
      `Transfer-Encoding:\r\n chunked\r\n\r\n${empty}`,
      `X: a\0b\r\nContent-Length: 0\r\n\r\n${hidden}`,
      `Transfer-Encoding: chunked\r\n\r\n+${empty}`,
      `Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n${hidden}`,
    ];
    const answers = await Promise.all(
      lengths.map((text) => exchange(edge, `POST /body HTTP/1.1\r\nHost: ${HOST}\r\n${text}`)),
    );
    // HAProxy's log has each request that it has seen. One that only the server sees is smuggled.
    for (const answer of answers) expect(readStatuses(answer)[0]).toBeGreaterThanOrEqual(400);
    const readLoggedRequests = () => edge.proxy.output().match(/ GET \/hidden 200 /g) ?? [];
    await until('HAProxy has logged all requests', () => readLoggedRequests().length >= paths.length);
    expect(paths).toEqual(readLoggedRequests().map(() => '/hidden'));
  });
});
