/** Runs the shipped haproxy-tls.cfg in Debian's HAProxy between a wallet and a front end. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { SecureVersion } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { makeTls } from '../../../src/testing/tls.ts';
import { FakeBackend, requestFor, startTestFrontend } from '../../src/prover/frontend/support.ts';
import { HAPROXY, isInstalled, start, stop, until } from './setup.ts';

const CONFIG = fileURLToPath(new URL('../../../deploy/haproxy-tls.cfg', import.meta.url));
const HOST = 'prover.test';
const NAME = isInstalled
  ? 'HAProxy for wallets'
  : `HAProxy for wallets (skipped: ${HAPROXY} is not installed)`;

async function startProxy(backend?: FakeBackend) {
  const frontend = await startTestFrontend(backend && { backend });
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { ca, cert, key } = makeTls([HOST]);
  const file = join(folder, 'certificate.pem');
  writeFileSync(file, cert + key, { mode: 0o600 });
  const port = await findFreePort();
  const proxy = start(HAPROXY, ['-db', '-f', CONFIG], {
    BIND: `127.0.0.1:${port}`,
    CERTIFICATE: file,
    FRONTEND: '127.0.0.1',
    FRONTEND_PORT: new URL(frontend.url).port,
    FRONTENDS: '1',
  });
  onTestFinished(() => stop(proxy));
  const ask = (path: string, body?: object, maxVersion?: SecureVersion) =>
    new Promise<{ status: number; body: string; hsts: unknown }>((resolve, reject) => {
      const tlsOptions = { host: '127.0.0.1', port, path, servername: HOST, ca, agent: false } as const;
      const tlsRequest = request(
        {
          ...tlsOptions,
          ...(maxVersion && { minVersion: maxVersion, maxVersion, ciphers: 'DEFAULT@SECLEVEL=0' }),
          ...(body && { method: 'POST', headers: { 'content-type': 'application/json' } }),
        },
        async (response) =>
          resolve({
            status: response.statusCode ?? 0,
            body: await text(response),
            hsts: response.headers['strict-transport-security'],
          }),
      );
      tlsRequest.on('error', reject);
      tlsRequest.end(body && JSON.stringify(body));
    });
  const requestStatus = async () => (await ask('/ping').catch(() => undefined))?.status;
  return { frontend, proxy, ask, requestStatus };
}

describe.skipIf(!isInstalled)(NAME, () => {
  test('gives a wallet its proof over TLS 1.2 or newer, and logs no part of it', async () => {
    const { frontend, proxy, ask, requestStatus } = await startProxy();
    await until('a front end is in service', async () => (await requestStatus()) === 200);
    expect(await ask('/ping')).toEqual({ status: 200, body: 'pong', hsts: 'max-age=31536000' });
    const answer = await ask('/v1', requestFor(await frontend.token()));
    expect(answer.status).toBe(200);
    expect(Object.keys(JSON.parse(answer.body))).toContain('proofPoints');
    await expect(ask('/ping', undefined, 'TLSv1.1')).rejects.toThrow();
    expect((await ask('/ping', undefined, 'TLSv1.2')).status).toBe(200);
    expect(proxy.output()).not.toMatch(/eyJ|WARNING|ALERT/);
  });

  test('takes a front end out of service while it is not ready', async () => {
    const backend = await FakeBackend.start();
    const { requestStatus } = await startProxy(backend);
    await until('a front end is in service', async () => (await requestStatus()) === 200);
    backend.healthStatus = 503;
    await until('no front end is in service', async () => (await requestStatus()) === 503);
    backend.healthStatus = 200;
    await until('the front end is in service again', async () => (await requestStatus()) === 200);
  });
});
