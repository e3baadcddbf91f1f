/** Settings that stop the start of the salt service, and how it receives its seed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import type { AppContext, Env } from 'sui-enclave-server';
import { createLog } from 'sui-enclave-service/log';
import { DEVELOPMENT_SEED_MARK, fingerprint } from 'sui-enclave-service/salt_seeds';
import { createUpstreams } from 'sui-enclave-service/upstream';
import { startServer } from 'sui-enclave-testing/start_server';
import { describe, expect, onTestFinished, test } from 'vitest';
import salt from '../app.ts';
import { CLIENT_ID, GOOGLE, Issuer, OTHER_SEED, SEED, startSalt, writeSeedFile } from './support.ts';

const MAIN = fileURLToPath(new URL('../../../server/main.ts', import.meta.url));
const computeFingerprint = (seed: string) => fingerprint(Buffer.from(seed, 'hex'));

describe('the service does not start', () => {
  test.each([
    ['without clients', { SALT_CLIENTS: '[]' }, /^SALT_CLIENTS, top level/],
    ['for pages of any origin', { CORS_ORIGINS: '*' }, /^CORS_ORIGINS must list your wallets' origins/],
    [
      'with a limit by address but no addresses',
      { SALT_ADDRESS_REQUESTS_PER_MINUTE: '5' },
      /needs TRUSTED_PROXIES/,
    ],
    ['with an invalid fingerprint', { SALT_SEED_FINGERPRINTS: 'abc' }, /^SALT_SEED_FINGERPRINTS must be/],
    [
      'with more fingerprints than seeds',
      { SALT_SEED_FINGERPRINTS: `${computeFingerprint(SEED)},${computeFingerprint(OTHER_SEED)}` },
      /has 2 versions, but SALT_SEED has 1/,
    ],
    [
      'with another seed',
      { SALT_SEED_FINGERPRINTS: computeFingerprint(OTHER_SEED) },
      /^version 1 of SALT_SEED has the fingerprint [0-9a-f]{32}, not the one in/,
    ],
    [
      'with the development seed of make dev-wallet',
      { seed: `${DEVELOPMENT_SEED_MARK}${SEED}` },
      /^SALT_SEED is the development seed of make dev-wallet/,
    ],
    ['with an invalid seed', { seed: SEED.slice(2) }, /^SALT_SEED, line 1, must be 64 hex characters/],
    [
      'without the version that a client names',
      { clients: [{ issuer: GOOGLE, client_id: CLIENT_ID, seed: 2 }] },
      /^SALT_CLIENTS names version 2 of the seed, but SALT_SEED has only 1 version$/,
    ],
    [
      'with keys at a host that app.yaml lacks',
      {
        clients: [
          { issuer: 'https://op.example', client_id: 'a', seed: 1, jwks_url: 'https://op.example/jwks' },
        ],
      },
      /^SALT_CLIENTS: op.example is not among the endpoints of app.yaml/,
    ],
  ])('%s', async (_title, env, message) => {
    const starting = startSalt(undefined, env);
    await expect(starting).rejects.toThrow(message);
    await expect(starting).rejects.toMatchObject({ code: 'CONFIG' });
    await expect(starting).rejects.not.toThrow(new RegExp(SEED.slice(0, 8)));
  });

  test('without CORS_ORIGINS, which would admit pages of any origin', async () => {
    const env = { APP: 'salt', SALT_SEED_FILE: writeSeedFile(SEED), SALT_CLIENTS: '[]' };
    await expect(startServer({ env })).rejects.toThrow(/^CORS_ORIGINS/);
  });

  test('with the seed in the environment, valid or not', async () => {
    const env = { APP: 'salt', SALT_SEED: SEED, CORS_ORIGINS: 'none' };
    await expect(startServer({ env })).rejects.toThrow(/^SALT_SEED must not be in the environment/);
  });

  test('without a seed', async () => {
    await expect(startServer({ env: { APP: 'salt', CORS_ORIGINS: 'none' } })).rejects.toThrow(
      /^SALT_SEED_FILE must name a file with SALT_SEED: /,
    );
  });
});

describe('a seed from a hand-off', () => {
  const env = {
    SECRETS_FD: '3',
    CORS_ORIGINS: 'none',
    SALT_CLIENTS: JSON.stringify([{ issuer: GOOGLE, client_id: CLIENT_ID, seed: 1 }]),
  };
  const context = (more: Env = {}): AppContext => ({
    env: { ...env, ...more },
    log: createLog('silent'),
    secret: () => expect.fail(),
    upstream: createUpstreams({ endpoints: ['www.googleapis.com'] }),
    sign: () => expect.fail(),
    latest: () => expect.fail(),
    emit: () => expect.fail(),
  });

  test('requires its fingerprint, since otherwise the first sender would choose the seed', () => {
    expect(() => salt.create(context())).toThrow(ConfigError);
    const sealed = context({ SECRETS: 'sealed', SECRETS_FD: undefined });
    for (const settings of [context(), sealed])
      expect(() => salt.create(settings)).toThrow(
        /^SALT_SEED_FINGERPRINTS must be set if the seed comes after the start .*`npx --offline sui-enclave salt_seed fingerprint FILE`/,
      );
  });

  test('is checked against its fingerprint', () => {
    const { checkSecrets } = salt.create(context({ SALT_SEED_FINGERPRINTS: computeFingerprint(SEED) }));
    expect(() => checkSecrets?.({ SALT_SEED: OTHER_SEED })).toThrow(/it is a different seed$/);
  });
});

test('the start logs the fingerprint of the seed, but not the seed', async () => {
  const server = await startSalt(undefined, { SALT_SEED_FINGERPRINTS: computeFingerprint(SEED) });
  expect(server.printed()).toContain(`"seed_fingerprints":["${computeFingerprint(SEED)}"]`);
  expect(server.printed()).not.toContain(SEED);
});

test('the start logs which client uses which version of the seed', async () => {
  const clients = [
    { issuer: GOOGLE, client_id: 'old', seed: 1 },
    { issuer: GOOGLE, client_id: 'new', seed: 2 },
  ];
  const server = await startSalt(undefined, { seed: `${SEED}\n${OTHER_SEED}`, clients });
  const [line = ''] = server
    .printed()
    .split('\n')
    .filter((line) => line.includes('the seed has arrived'));
  expect(JSON.parse(line).clients).toEqual([
    { issuer: GOOGLE, client_id: 'old', version: 1, fingerprint: computeFingerprint(SEED) },
    { issuer: GOOGLE, client_id: 'new', version: 2, fingerprint: computeFingerprint(OTHER_SEED) },
  ]);
});

describe('npm start', () => {
  test('receives the seed by a hand-off: it rejects wrong seeds and waits for the right seed', async () => {
    const issuer = await Issuer.start();
    const child = spawn(process.execPath, [MAIN], {
      env: {
        PATH: process.env['PATH'] ?? '',
        APP: 'salt',
        PORT: '0',
        SECRETS_FD: '3',
        CORS_ORIGINS: 'none',
        SALT_CLIENTS: JSON.stringify([{ issuer: GOOGLE, client_id: CLIENT_ID, seed: 1 }]),
        SALT_SEED_FINGERPRINTS: computeFingerprint(SEED),
      },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    });
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    let printed = '';
    child.stdout?.on('data', (chunk) => {
      printed += chunk;
    });
    await expect.poll(() => printed, { timeout: 10_000 }).toMatch(/"msg":"listening"/);
    const url = /"url":"([^"]+)"/.exec(printed)?.[1] ?? '';
    const ask = async () => {
      const body = JSON.stringify({ token: await issuer.token({ iss: 'https://evil.example' }) });
      const response = await fetch(`${url}/get_salt`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      return (await response.json()).code;
    };
    const pipe = child.stdio[3] as NodeJS.WritableStream;
    for (const wrongSeed of [OTHER_SEED, SEED.slice(1), ''])
      pipe.write(`${JSON.stringify({ SALT_SEED: wrongSeed })}\n`);
    await expect.poll(() => printed.match(/was refused/g)?.length).toBe(3);
    expect(await ask()).toBe('SECRETS_MISSING');
    pipe.write(`${JSON.stringify({ SALT_SEED: SEED })}\n`);
    await expect.poll(ask).toBe('SALT_ISSUER_NOT_ALLOWED');
    await expect.poll(() => printed).toContain(computeFingerprint(SEED));
    expect(printed).not.toContain(SEED);
    expect(printed).not.toContain(OTHER_SEED);
    child.kill('SIGTERM');
    expect((await once(child, 'exit'))[0]).toBe(0);
  });
});
