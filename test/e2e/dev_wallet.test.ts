import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';

const MAIN = new URL('../../src/commands/dev/wallet/main.ts', import.meta.url).pathname;

test('make dev-wallet starts the page and every service that it calls, prints which are fakes, and ends with Ctrl-C', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const PORT = String(port);
  // With nothing in its cache, the proving service is the fake.
  const env = { PATH: process.env['PATH'] ?? '', PORT, CACHE: '/nonexistent' };
  const second = spawnSync(process.execPath, [MAIN], { env, encoding: 'utf8' });
  const stderr = `make dev-wallet: can't listen on PORT ${PORT}: EADDRINUSE. Set PORT to another\n`;
  expect(second).toMatchObject({ status: 1, stdout: '', stderr });
  taken.close();

  const child = spawn(process.execPath, [MAIN], { env });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const ended = once(child, 'close');
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  await expect.poll(() => output, { timeout: 15_000 }).toMatch(/Ctrl-C ends it\.\n$/);

  const url = (what: string) => new RegExp(`(http://127\\.0\\.0\\.1:\\d+)  the ${what}`).exec(output)?.[1];
  expect(output.indexOf('Fakes:')).toBeGreaterThan(output.indexOf('the salt service'));
  for (const fake of ['OpenID provider', 'prover', 'Sui node']) {
    expect(output.indexOf(`the ${fake}`)).toBeGreaterThan(output.indexOf('Fakes:'));
  }
  const page = url("wallet's page") ?? '';
  expect(new URL(page).port).toBe(PORT);
  expect(output).toContain('make prover-dev SIZE=small');
  expect(output).toContain('Client ids: wallet-implicit, wallet-code, wallet-form-post.');
  expect(await (await fetch(page)).text()).toContain('<script type="module" src="/page.js">');
  expect((await fetch(`${page}/page.js`)).headers.get('content-type')).toBe('text/javascript');
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
  const preflight = await fetch(url('prover') ?? '', { method: 'OPTIONS' });
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
  const grpc = { method: 'POST', headers: { 'Content-Type': 'application/grpc-web+proto' } };
  expect((await fetch(url('Sui node') ?? '', grpc)).ok).toBe(true);

  child.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
});
