/**
 * Tests the certificates of deploy/https: certbot gets a certificate from Pebble, Let's Encrypt's ACME server
 * for tests, and renews it, while Debian's HAProxy serves. Everything runs on loopback.
 */

import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { makeTls } from '../../../src/testing/tls.ts';
import { startServer } from '../../src/server/support.ts';
import { type Dns, startDns } from './dns.ts';
import { HAPROXY_COMMAND, HOST, send, startEdgeForTest } from './https.ts';
import { isInstalled, type Program, start, stop, until } from './setup.ts';

const PEBBLE = '/usr/bin/pebble';
/** Path of the locked certbot, which `make test-deploy` installs. */
const CERTBOT = fileURLToPath(new URL('../../../build/certbot/bin/certbot', import.meta.url));
const missingPrograms = [
  ...(isInstalled ? [] : ['haproxy']),
  ...[PEBBLE, CERTBOT].filter((file) => !existsSync(file)),
];
const NAME =
  missingPrograms.length === 0
    ? 'A certificate'
    : `A certificate (skipped: no ${missingPrograms.join(', ')})`;

const folder = mkdtempSync(join(tmpdir(), 'pebble-'));
let dns: Dns;
let pebble: Program;
let directory: string;
let managementPort: number;
let httpPort: number;

/** Returns Pebble's root, in PEM, which is new at each start. */
async function readRoot(): Promise<string> {
  const port = managementPort;
  return (await send(request, { host: '127.0.0.1', port, path: '/roots/0', rejectUnauthorized: false })).body;
}

function readServedCertificate(port: number, ca: string): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: HOST, ca }, () => {
      resolve(socket.getPeerX509Certificate() as X509Certificate);
      socket.end();
    });
    socket.on('error', reject);
  });
}

/** Returns the status, and the local port of the connection. */
function requestByAgent(agent: Agent, port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, servername: HOST, path: '/readyz', ca, agent });
    call.on('response', (response) => {
      const status = `${response.statusCode} on port ${response.socket.localPort}`;
      response.resume().on('end', () => resolve(status));
    });
    call.on('error', reject).end();
  });
}

describe.skipIf(missingPrograms.length > 0)(NAME, () => {
  beforeAll(async () => {
    dns = await startDns(['127.0.0.1']);
    const port = await findFreePort();
    managementPort = await findFreePort();
    httpPort = await findFreePort();
    const { ca, cert, key } = makeTls(['localhost']);
    for (const [name, pem] of Object.entries({ ca, cert, key }))
      writeFileSync(join(folder, `${name}.pem`), pem);
    const config = {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${managementPort}`,
      certificate: join(folder, 'cert.pem'),
      privateKey: join(folder, 'key.pem'),
      httpPort,
      tlsPort: 0,
      ocspResponderURL: '',
      externalAccountBindingRequired: false,
    };
    writeFileSync(join(folder, 'pebble.json'), JSON.stringify({ pebble: config }));
    pebble = start(PEBBLE, ['-config', join(folder, 'pebble.json'), '-dnsserver', dns.address], {
      PEBBLE_VA_NOSLEEP: '1',
    });
    directory = `https://localhost:${port}/dir`;
    await until('Pebble answers', async () => (await readRoot().catch(() => '')) !== '');
  });
  afterAll(async () => {
    await stop(pebble);
    dns.close();
    rmSync(folder, { recursive: true });
  });

  test('is issued, served, renewed and served again by the same process, during requests', async () => {
    const enclave = await startServer({ env: { TRUSTED_PROXIES: '1' } });
    const certbotPort = await findFreePort();
    const edge = await startEdgeForTest(
      { old: new URL(enclave.url).host },
      { HTTP: `127.0.0.1:${httpPort}`, CERTBOT_PORT: String(certbotPort), ADDRESS_RATE: '100000' },
    );
    const certbot = (...args: string[]) =>
      promisify(execFile)(
        CERTBOT,
        [
          ...args,
          '--config-dir',
          join(folder, 'etc'),
          '--work-dir',
          join(folder, 'work'),
          '--logs-dir',
          join(folder, 'logs'),
          '--server',
          directory,
        ],
        { env: { ...process.env, ...edge.env, REQUESTS_CA_BUNDLE: join(folder, 'ca.pem') } },
      );

    await certbot(
      'certonly',
      '--standalone',
      '--http-01-address',
      '127.0.0.1',
      '--http-01-port',
      String(certbotPort),
      '--non-interactive',
      '--agree-tos',
      '--register-unsafely-without-email',
      '--domain',
      HOST,
      '--deploy-hook',
      `${HAPROXY_COMMAND} --certificate`,
    );
    const root = await readRoot();
    const issued = await readServedCertificate(edge.httpsPort, root);
    expect(issued.checkHost(HOST)).toBe(HOST);
    expect(statSync(edge.certificate).mode & 0o777).toBe(0o600);

    // During the renewal, requests use a connection that stays open, and new connections.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const keptStatuses: string[] = [];
    const statuses: number[] = [];
    let isRenewed = false;
    const work = (async () => {
      while (!isRenewed) {
        statuses.push((await edge.request('/readyz', { ca: root })).status);
        // Without these requests, HAProxy could close the connection as idle before the renewal ends.
        keptStatuses.push(await requestByAgent(agent, edge.httpsPort, root));
      }
    })();
    await certbot('renew', '--force-renewal', '--no-random-sleep-on-renew');
    isRenewed = true;
    await work;
    const renewed = await readServedCertificate(edge.httpsPort, root);
    expect(renewed.serialNumber).not.toBe(issued.serialNumber);
    expect(new Set(statuses)).toEqual(new Set([200]));
    // One connection served requests before and after the renewal.
    keptStatuses.push(await requestByAgent(agent, edge.httpsPort, root));
    expect([...new Set(keptStatuses)]).toEqual([expect.stringMatching(/^200 on port \d+$/)]);
    expect(edge.proxy.process.exitCode).toBe(null);
    // HAProxy's next start serves the renewed certificate too.
    expect(new X509Certificate(readFileSync(edge.certificate)).serialNumber).toBe(renewed.serialNumber);
    expect(edge.proxy.output()).not.toMatch(/WARNING|ALERT|PRIVATE/);
  });

  test('that does not fit its key is refused, and the old certificate stays', async () => {
    const edge = await startEdgeForTest({ old: '127.0.0.1:9' });
    const lineage = mkdtempSync(join(folder, 'lineage-'));
    const [first, second] = [makeTls([HOST]), makeTls([HOST])];
    writeFileSync(join(lineage, 'fullchain.pem'), first.cert);
    writeFileSync(join(lineage, 'privkey.pem'), second.key);
    const before = readFileSync(edge.certificate, 'utf8');
    const env = { ...process.env, ...edge.env, RENEWED_LINEAGE: lineage };
    const hook = promisify(execFile)(HAPROXY_COMMAND, ['--certificate'], { env });
    await expect(hook).rejects.toThrow(/HAProxy refused the new certificate/);
    await expect(hook).rejects.not.toThrow(/PRIVATE KEY-/);
    expect(readFileSync(edge.certificate, 'utf8')).toBe(before);
    await readServedCertificate(edge.httpsPort, edge.ca);
  });
});
