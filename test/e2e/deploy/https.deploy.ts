/**
 * Tests the recipe of deploy/https: Debian's HAProxy with the unchanged haproxy.cfg, alone and behind a fake
 * of AWS's load balancer, forwards to real servers.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { defineApp, endpoint } from '../../../src/server/index.ts';
import { makeTls } from '../../../src/testing/tls.ts';
import { startServer } from '../../src/server/support.ts';
import {
  type Edge,
  ENCLAVES,
  HAPROXY_COMMAND,
  HOST,
  RECIPE,
  send,
  startEdgeForTest,
  startFakeAlb,
} from './https.ts';
import { HAPROXY, isInstalled, until } from './setup.ts';

const NAME = isInstalled ? 'The HTTPS recipe' : `The HTTPS recipe (skipped: no ${HAPROXY})`;
const LOOPBACK = '127.0.0.1/32';
const FORGED = '203.0.113.66';
const CALLER = '127.0.0.7';

/** Starts a real server that answers with its name and the address that it sees. */
async function startEnclave(trustedProxies: number, name = 'enclave') {
  const seenEndpoint = endpoint({
    method: 'GET',
    path: '/seen',
    handle: async (_, { address }) => ({ name, address }),
  });
  const server = await startServer({
    env: { TRUSTED_PROXIES: String(trustedProxies) },
    module: defineApp({ signs: [], create: () => ({ endpoints: [seenEndpoint] }) }),
    manifest: { endpoints: [], secrets: [] },
  });
  return { ...server, address: new URL(server.url).host };
}

type Route = 'HAProxy alone' | 'ALB alone' | 'ALB and HAProxy';

/** Returns the address that a server sees when CALLER sends a forged X-Forwarded-For. */
async function readSeenAddress(route: Route, trustedProxies: number): Promise<string> {
  const enclave = await startEnclave(trustedProxies);
  const options = { localAddress: CALLER, headers: { 'x-forwarded-for': FORGED } };
  if (route === 'ALB alone') {
    const port = await startFakeAlb(enclave.url);
    const answer = await send(requestHttp, { host: '127.0.0.1', port, path: '/seen', ...options });
    return JSON.parse(answer.body).address;
  }
  const edge = await startEdgeForTest(
    { old: enclave.address },
    route === 'ALB and HAProxy' ? { ALB: LOOPBACK } : {},
  );
  if (route === 'HAProxy alone') return JSON.parse((await edge.request('/seen', options)).body).address;
  const port = await startFakeAlb(`https://127.0.0.1:${edge.httpsPort}`);
  const answer = await send(requestHttp, { host: '127.0.0.1', port, path: '/seen', ...options });
  return JSON.parse(answer.body).address;
}

describe.skipIf(!isInstalled)(NAME, () => {
  test.each([{}, { ALB: '10.0.1.0/24 10.0.2.0/24' }])('is accepted by HAProxy with %o', (env) => {
    const folder = mkdtempSync(join(tmpdir(), 'https-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { cert, key } = makeTls([HOST]);
    writeFileSync(join(folder, 'certificate.pem'), cert + key, { mode: 0o600 });
    const CERTIFICATE = join(folder, 'certificate.pem');
    const check = spawnSync(HAPROXY, ['-c', '-f', RECIPE, '-f', ENCLAVES], {
      env: { CERTIFICATE, ...env },
      encoding: 'utf8',
    });
    expect([check.status, check.stderr]).toEqual([0, expect.not.stringMatching(/WARNING|ALERT/)]);
  });

  test('redirects HTTP, and serves TLS 1.2 and newer only', async () => {
    const enclave = await startEnclave(1);
    const edge = await startEdgeForTest({ old: enclave.address });
    const plainRequest = {
      host: '127.0.0.1',
      port: edge.httpPort,
      path: '/seen?a=b',
      headers: { host: HOST },
    };
    expect(await send(requestHttp, plainRequest)).toMatchObject({
      status: 308,
      headers: { location: `https://${HOST}/seen?a=b` },
    });
    const answer = await edge.request('/seen', { maxVersion: 'TLSv1.2' });
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'strict-transport-security': 'max-age=31536000' },
    });
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(edge.request('/seen', old)).rejects.toThrow();
    expect(edge.proxy.output()).not.toMatch(/WARNING|ALERT|a=b/);
  });

  test.each([
    ['HAProxy alone', 1, CALLER],
    ['ALB alone', 1, CALLER],
    ['ALB and HAProxy', 2, CALLER],
    // The following counts are wrong. If the count is too small, all callers have the address of a proxy.
    ['ALB and HAProxy', 1, '127.0.0.1'],
    ['HAProxy alone', 0, undefined],
    // HAProxy has dropped the claim; the ALB keeps it.
    ['HAProxy alone', 2, CALLER],
    ['ALB alone', 2, FORGED],
  ] as const)('with %s, a server with TRUSTED_PROXIES=%i sees %s', async (route, trustedProxies, address) => {
    expect(await readSeenAddress(route, trustedProxies)).toBe(address);
  });

  test('behind an ALB, refuses other callers, and answers the health checks of the ALB', async () => {
    const enclave = await startEnclave(2);
    const edge = await startEdgeForTest({ old: enclave.address }, { ALB: LOOPBACK });
    expect(await edge.request('/seen', { localAddress: CALLER })).toMatchObject({ status: 403 });
    expect(await edge.request('/readyz')).toMatchObject({ status: 200 });
    const headers = { 'x-forwarded-for': `${FORGED}, unknown` };
    expect(await edge.request('/seen', { headers })).toMatchObject({ status: 400 });
  });

  test('limits the requests of an address, which a forged header does not change', async () => {
    const enclave = await startEnclave(1);
    const edge = await startEdgeForTest({ old: enclave.address }, { ADDRESS_RATE: '20' });
    const call = (localAddress: string, claim: string) =>
      edge.request('/seen', { localAddress, headers: { 'x-forwarded-for': claim } });
    // The requests are sent in parallel, since HAProxy counts only those of the last 10 s.
    const answers = await Promise.all(Array.from({ length: 25 }, (_, i) => call(CALLER, `203.0.113.${i}`)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(20).fill(200), ...Array(5).fill(429)]);
    expect(await call('127.0.0.8', CALLER)).toMatchObject({ status: 200 });
  });

  test('behind an ALB, limits the requests of the address that the ALB appended', async () => {
    const enclave = await startEnclave(2);
    const edge = await startEdgeForTest({ old: enclave.address }, { ALB: LOOPBACK, ADDRESS_RATE: '20' });
    const call = (forwarded: string) =>
      edge.request('/seen', { headers: { 'x-forwarded-for': forwarded } }).then(({ status }) => status);
    const callTimes = (count: number, forward: (i: number) => string) =>
      Promise.all(Array.from({ length: count }, (_, i) => call(forward(i))));
    const statuses = await callTimes(25, (i) => `203.0.113.${i}, 198.51.100.7`);
    expect(statuses.sort()).toEqual([...Array(20).fill(200), ...Array(5).fill(429)]);
    expect(await call('198.51.100.7, 198.51.100.8')).toBe(200);
    // A /64 of IPv6 belongs to one subscriber, so its addresses count together.
    await callTimes(21, (i) => `2001:db8::${i}`);
    expect([await call('2001:db8::ffff'), await call('2001:db8:0:1::1')]).toEqual([429, 200]);
  });

  test.each([false, true])(
    'sends an address to the same enclave, as another HAProxy does (behind an ALB: %s)',
    async (isBehindAlb) => {
      const enclaves = [await startEnclave(1, 'a'), await startEnclave(1, 'b')];
      const servers = { old: enclaves[0]?.address ?? '', new: enclaves[1]?.address ?? '' };
      const start = () => startEdgeForTest(servers, isBehindAlb ? { ALB: LOOPBACK } : {});
      const askAs = async (host: number, edge: Edge) => {
        const options = isBehindAlb
          ? { headers: { 'x-forwarded-for': `${FORGED}, 198.51.100.${host}` } }
          : { localAddress: `127.0.1.${host}` };
        return JSON.parse((await edge.request('/seen', options)).body).name;
      };
      const edge = await start();
      const twin = await start();
      const names: string[] = [];
      for (let host = 1; host <= 24; host++) names.push(await askAs(host, edge));
      expect(new Set(names)).toEqual(new Set(['a', 'b']));
      for (let host = 1; host <= 24; host++) expect(await askAs(host, edge)).toBe(names[host - 1]);
      for (let host = 1; host <= 24; host++) expect(await askAs(host, twin)).toBe(names[host - 1]);
    },
  );

  test('sends calls to ready enclaves only, as the commands of a rollout say', async () => {
    const enclaves = [await startEnclave(1, 'old'), await startEnclave(1, 'new')];
    const edge = await startEdgeForTest({
      old: enclaves[0]?.address ?? '',
      new: `${enclaves[1]?.address} disabled`,
    });
    const readName = async () => {
      const { status, body } = await edge.request('/seen');
      return status === 200 ? JSON.parse(body).name : status;
    };
    const command = (...commands: string[]) =>
      execFileSync(HAPROXY_COMMAND, commands, { env: { ...process.env, ...edge.env }, stdio: 'pipe' });
    expect(await readName()).toBe('old');
    command('set server enclaves/new state ready', 'set server enclaves/old state drain');
    await until('the new enclave answers', async () => (await readName()) === 'new');
    expect(() => command('set server enclaves/none state ready')).toThrow(/No such server/);
    await enclaves[1]?.close();
    command('set server enclaves/old state ready');
    await until('the old enclave answers', async () => (await readName()) === 'old');
  });
});
