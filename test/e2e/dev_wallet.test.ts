import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { expect, onTestFinished, test } from 'vitest';
import { requireFree } from '../../src/toolchain/dev/wallet/ports.ts';
import { findFreePorts } from '../src/toolchain/dev/wallet/free_ports.ts';

const MAIN = fileURLToPath(new URL('../../src/toolchain/dev/wallet/main.ts', import.meta.url));

test('make dev-wallet starts the page and every service that it calls, prints which are fakes, and ends with Ctrl-C', async () => {
  const ports = await findFreePorts();
  const PORT = String(ports.page);
  const blocker = createServer().listen(ports.prover, '127.0.0.1');
  await once(blocker, 'listening');
  const XDG_CACHE_HOME = mkdtempSync(join(tmpdir(), 'dev-wallet-'));
  onTestFinished(() => rmSync(XDG_CACHE_HOME, { recursive: true }));
  // The cache is empty, so the proving service is the fake.
  const env = { PATH: process.env['PATH'] ?? '', PORT, CACHE: '/nonexistent', XDG_CACHE_HOME };
  const refusedRun = spawnSync(process.execPath, [MAIN], { env, encoding: 'utf8' });
  const refusal = `can't listen on port ${ports.prover}, the prover's: EADDRINUSE. Set PORT to the first of 5 free ports in a row`;
  const stderr = `sui-enclave dev-wallet: ${refusal}\n`;
  expect(refusedRun).toMatchObject({ status: 1, stdout: '', stderr });
  await once(blocker.close(), 'close');

  const child = spawn(process.execPath, [MAIN], { env });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const ended = once(child, 'close');
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  await expect.poll(() => output).toMatch(/Ctrl-C ends it\.\n$/);

  const url = (label: string) => new RegExp(`(http://127\\.0\\.0\\.1:\\d+)  the ${label}`).exec(output)?.[1];
  expect(output.indexOf('Fakes:')).toBeGreaterThan(output.indexOf('the salt service'));
  for (const fake of ['OpenID provider', 'prover', 'Sui node']) {
    expect(output.indexOf(`the ${fake}`)).toBeGreaterThan(output.indexOf('Fakes:'));
  }
  const page = url("wallet's page") ?? '';
  const parts = ["wallet's page", 'salt service', 'prover', 'OpenID provider', 'Sui node'];
  expect(parts.map((part) => Number(new URL(url(part) ?? '').port))).toEqual(Object.values(ports));
  const seed = readFileSync(join(XDG_CACHE_HOME, 'sui-enclave/dev-wallet/seed'), 'utf8');
  expect(output).not.toContain(/[0-9a-f]{64}/.exec(seed)?.[0]);
  expect(output).toContain('make prover-dev SIZE=small');
  expect(output).toContain('Client ids: wallet-implicit, wallet-code, wallet-form-post\n');
  const pageAnswer = await fetch(page);
  expect(pageAnswer.headers.get('content-security-policy')).toContain('connect-src http://127.0.0.1:*');
  const html = await pageAnswer.text();
  const [, settings = ''] = /<script type="application\/json" id="settings">(.*?)<\/script>/.exec(html) ?? [];
  expect(JSON.parse(settings)).toMatchObject({ enclave: null, posted: null, provesReally: false });
  const [, script = ''] = /src="\.\/(assets\/[^"]+\.js)"/.exec(html) ?? [];
  expect((await fetch(`${page}/${script}`)).headers.get('content-type')).toBe(
    'text/javascript; charset=utf-8',
  );
  for (const [path, method, status] of [
    ['back', 'GET', 200],
    ['back', 'POST', 200],
    ['', 'POST', 405],
    ['other', 'GET', 404],
    ['%2e%2e/package.json', 'GET', 404],
  ] as const) {
    expect([path, method, (await fetch(`${page}/${path}`, { method })).status]).toEqual([
      path,
      method,
      status,
    ]);
  }
  const posted = await fetch(`${page}/back`, { method: 'POST', body: '</script><b>' });
  expect(await posted.text()).toContain('"posted":"\\u003c/script>\\u003cb>"');
  expect((await fetch(`${page}/back`, { method: 'POST', body: 'x'.repeat(65_537) })).status).toBe(413);
  const issuer = url('OpenID provider') ?? '';
  const document = await fetch(`${issuer}/.well-known/openid-configuration`);
  expect(await document.json()).toMatchObject({ issuer });
  const salt = await fetch(`${url('salt service')}/get_salt`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: page },
    body: '{"token":"x"}',
  });
  expect(await salt.json()).toMatchObject({ code: 'SALT_TOKEN_MALFORMED' });
  expect(salt.headers.get('access-control-allow-origin')).toBe(page);
  const allows = async (origin: string) => {
    const preflight = await fetch(url('prover') ?? '', { method: 'OPTIONS', headers: { origin } });
    return preflight.headers.get('access-control-allow-origin') === origin;
  };
  const origins = ['http://localhost:5173', 'http://wallet.example', 'http://127.0.0.1.wallet.example'];
  expect(await Promise.all(origins.map(allows))).toEqual([true, false, false]);
  const recipient = `0x${'1'.padStart(64, '0')}`;
  const gift = await requestSuiFromFaucetV2({ host: url('Sui node') ?? '', recipient });
  expect(gift.coins_sent).toHaveLength(1);
  const grpc = { method: 'POST', headers: { 'Content-Type': 'application/grpc-web+proto' } };
  expect((await fetch(url('Sui node') ?? '', grpc)).ok).toBe(true);

  child.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
  await requireFree(ports);
});
