/** Checks what a hostile host learns from sealed requests, and what it can make a client believe. */
import { readFileSync } from 'node:fs';
import { bcs } from '@mysten/bcs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CLIENT_ID, GOOGLE, Issuer, SEED, writeSeedFile } from '../../../../src/apps/salt/test/support.ts';
import { certificatesFromPem, parsePcrs } from '../../../../src/library/attestation/index.ts';
import {
  EnclaveClient,
  type EnclaveClientOptions,
  signedType,
  text,
  u64,
} from '../../../../src/library/client/index.ts';
import { SEALED_TYPE } from '../../../../src/library/sealing/request.ts';
import { getSalt } from '../../../../src/library/zklogin/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { FIXTURE_APPS, startServer, type TestServer } from '../../server/support.ts';
import { FakeEnclave } from './fake_enclave.ts';
import { type ForwardedAnswer, Host } from './host.ts';

const nsm = new EmulatedNsm();
const TRUST = {
  policy: { images: [parsePcrs(nsm.pcrsFile())] },
  roots: certificatesFromPem(nsm.rootPem()),
};
const vectors = JSON.parse(readFileSync(new URL('../../../vectors/salt.json', import.meta.url), 'utf8'));
const SALT: string = vectors.derivations[0].salt;
const Draw = signedType(2, bcs.struct('Draw', { note: text, picked: u64, all: bcs.byteVector() }));

async function startSalt(issuer: Issuer, env: Record<string, string> = {}): Promise<TestServer> {
  return await startServer({
    nsm,
    env: {
      APP: 'salt',
      SALT_SEED_FILE: writeSeedFile(SEED),
      SALT_CLIENTS: JSON.stringify([{ issuer: GOOGLE, client_id: CLIENT_ID, seed: 1 }]),
      SALT_USER_REQUESTS_PER_MINUTE: '10000',
      CORS_ORIGINS: 'https://wallet.example',
      ...env,
    },
    origins: { 'www.googleapis.com': issuer.origin },
  });
}

async function startAll(env?: Record<string, string>) {
  const issuer = await Issuer.start();
  const server = await startSalt(issuer, env);
  const host = await Host.start(server.url);
  return { issuer, host, token: await issuer.token() };
}

async function startDice() {
  const server = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm });
  return await Host.start(server.url);
}

const createClient = (host: Host, options: Partial<EnclaveClientOptions> = {}) =>
  new EnclaveClient(host.url, { ...TRUST, sealed: true, maxAnswerAgeMs: Infinity, ...options });

const findOutcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code: string }) => error.code,
  );

describe('getSalt with a policy', () => {
  test('gets the salt, and the host sees no part of the token or the salt', async () => {
    const { host, issuer } = await startAll({ REQUESTS: 'sealed' });
    for (let run = 0; run < 20; run++) {
      const token = await issuer.token({ nonce: `run-${run}` });
      expect(await getSalt(host.url, token, TRUST)).toBe(SALT);
      const [header = '', payload = '', signature = ''] = token.split('.');
      for (const part of [token, payload, signature, header.slice(0, 30), payload.slice(40, 60), SALT]) {
        expect(host.saw(part)).toBe(false);
      }
    }
    expect(new Set(host.paths)).toEqual(new Set(['/get_attestation', '/sealed']));
  });

  test('shows the token and the salt to the host if it has no policy', async () => {
    const { host, token } = await startAll();
    expect(await getSalt(host.url, token)).toBe(SALT);
    expect([host.saw(token), host.saw(SALT)]).toEqual([true, true]);
  });

  test("passes on the service's refusal, which the host doesn't see", async () => {
    const { host, issuer } = await startAll();
    const expired = await issuer.token({ exp: 1 });
    const saltRequest = getSalt(host.url, expired, TRUST);
    await expect(saltRequest).rejects.toMatchObject({
      code: 'ZKLOGIN_REFUSED',
      status: 401,
      serverCode: 'SALT_TOKEN_EXPIRED',
    });
    expect(host.saw('SALT_TOKEN_EXPIRED')).toBe(false);
  });

  test('passes on the time until the next attempt, with or without a policy', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer, { SALT_USER_REQUESTS_PER_MINUTE: '1' });
    const host = await Host.start(server.url);
    const token = await issuer.token();
    await getSalt(host.url, token, TRUST);
    const refusal = { serverCode: 'SALT_RATE_LIMITED', status: 429, retryAfterSeconds: expect.any(Number) };
    const plain = new EnclaveClient(server.url, TRUST);
    for (const [code, ask] of [
      ['ZKLOGIN_REFUSED', () => getSalt(host.url, token, TRUST)],
      ['ZKLOGIN_REFUSED', () => getSalt(server.url, token)],
      ['CLIENT_REFUSED', () => createClient(host).ask('/get_salt', { token })],
      ['CLIENT_REFUSED', () => plain.call('/get_salt', { token }, Draw)],
    ] as const) {
      await expect(ask()).rejects.toMatchObject({ code, ...refusal });
    }
    const unknownPath = createClient(host).ask('/nowhere', {});
    await expect(unknownPath).rejects.toMatchObject({ serverCode: 'NOT_FOUND', retryAfterSeconds: null });
  });

  test('names an unreachable service, and options that contradict each other', async () => {
    const saltRequest = getSalt('http://127.0.0.1:1', 'a.b.c', TRUST);
    await expect(saltRequest).rejects.toMatchObject({ code: 'ZKLOGIN_UNREACHABLE' });
    const headers = { authorization: 'Bearer x' };
    expect(await findOutcome(getSalt('http://127.0.0.1:1', 'a.b.c', { ...TRUST, headers }))).toBe(
      'ZKLOGIN_OPTION',
    );
    const { roots } = TRUST;
    expect(await findOutcome(getSalt('http://127.0.0.1:1', 'a.b.c', { roots }))).toBe('ZKLOGIN_OPTION');
  });
});

/** Changes that a host may make to bytes. */
const change = fc.oneof(
  fc.record({ at: fc.nat(), bit: fc.nat(7) }).map(({ at, bit }) => (bytes: Buffer) => {
    const changed = Buffer.from(bytes);
    if (bytes.length > 0) changed[at % bytes.length] = (changed[at % bytes.length] as number) ^ (1 << bit);
    return changed;
  }),
  fc.nat().map((at) => (bytes: Buffer) => bytes.subarray(0, at % (bytes.length + 1))),
  fc
    .uint8Array({ minLength: 1, maxLength: 40 })
    .map((more) => (bytes: Buffer) => Buffer.concat([bytes, more])),
  fc.nat().map((at) => (bytes: Buffer) => {
    const middle = at % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(middle), bytes.subarray(0, middle)]);
  }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => () => Buffer.from(bytes)),
);

describe('a host that changes the traffic', () => {
  test('is noticed: a client gets the salt or an error, but never another salt', async () => {
    const { host, token } = await startAll();
    const outcomes = new Set<unknown>();
    const parts = fc.constantFrom('request', '/sealed', '/get_attestation');
    await fc.assert(
      fc.asyncProperty(parts, change, async (part, alter) => {
        host.changeRequest = (_, body) => (part === 'request' ? alter(body) : body);
        host.changeAnswer = (answer) =>
          answer.path === part ? { ...answer, body: alter(answer.body) } : answer;
        const outcome = await findOutcome(getSalt(host.url, token, TRUST));
        outcomes.add(outcome);
        expect(outcome === SALT || /^[A-Z][A-Z0-9_]+$/.test(String(outcome))).toBe(true);
      }),
      { numRuns: 120 },
    );
    expect(outcomes).toContain('CLIENT_SEALED_ANSWER');
    expect(outcomes).toContain('CLIENT_UNAUTHENTICATED');
  });

  test("can't swap the answers of two callers, or replay a recorded answer", async () => {
    const host = await startDice();
    const [firstClient, secondClient] = [createClient(host), createClient(host)];
    await Promise.all([firstClient.attest(), secondClient.attest()]);
    const pending: { answer: ForwardedAnswer; send: (answer: ForwardedAnswer) => void }[] = [];
    host.changeAnswer = (answer) =>
      new Promise((send) => {
        pending.push({ answer, send });
        const [first, second] = pending;
        if (!first || !second) return;
        first.send(second.answer);
        second.send(first.answer);
      });
    const ask = (client: EnclaveClient) => findOutcome(client.ask('/search?note=a', undefined));
    expect(await Promise.all([ask(firstClient), ask(secondClient)])).toEqual(
      Array(2).fill('CLIENT_SEALED_ANSWER'),
    );
    const [recorded] = pending;
    host.changeAnswer = () => (recorded as (typeof pending)[0]).answer;
    expect(await ask(firstClient)).toBe('CLIENT_SEALED_ANSWER');
  });

  test('gets no readable answer by repeating a request', async () => {
    const { host, token } = await startAll();
    let sealed = new Uint8Array();
    host.changeRequest = (_, body) => {
      sealed = new Uint8Array(body);
      return body;
    };
    await getSalt(host.url, token, TRUST);
    const answers = new Set<string>();
    for (let run = 0; run < 5; run++) {
      const init = { method: 'POST', headers: { 'content-type': SEALED_TYPE }, body: sealed };
      const answer = Buffer.from(await (await fetch(`${host.target}/sealed`, init)).arrayBuffer());
      expect(answer.includes(SALT)).toBe(false);
      answers.add(answer.toString('hex'));
    }
    expect(answers.size).toBe(5);
  });

  test.each<[string, Partial<ForwardedAnswer>, string]>([
    ['an unsealed salt', { body: Buffer.from('{"salt":"1"}') }, 'CLIENT_SEALED_ANSWER'],
    [
      'an unsealed salt as JSON',
      { type: 'application/json', body: Buffer.from('{"salt":"1"}') },
      'CLIENT_UNAUTHENTICATED',
    ],
    [
      'the content of a sealed answer',
      { body: Buffer.from('{"status":200,"body":{"salt":"1"}}') },
      'CLIENT_SEALED_ANSWER',
    ],
    ['an empty body', { body: Buffer.alloc(0) }, 'CLIENT_SEALED_ANSWER'],
    ['another status', { status: 201 }, 'CLIENT_UNAUTHENTICATED'],
    [
      'a refusal',
      { status: 401, body: Buffer.from('{"code":"SALT_TOKEN_EXPIRED"}') },
      'CLIENT_UNAUTHENTICATED',
    ],
    ['a web page', { status: 502, type: 'text/html', body: Buffer.from('<h1>') }, 'CLIENT_UNAUTHENTICATED'],
    ['more than a mebibyte', { body: Buffer.alloc(1_048_577) }, 'CLIENT_ANSWER_TOO_LARGE'],
  ])("can't answer with %s", async (_, lie, code) => {
    const { host, token } = await startAll();
    host.changeAnswer = (answer) => (answer.path === '/sealed' ? { ...answer, ...lie } : answer);
    const error = await getSalt(host.url, token, TRUST).catch((thrown) => thrown);
    expect(error).toMatchObject({ code });
    if (code === 'CLIENT_UNAUTHENTICATED') expect(error.status).toBe(lie.status ?? 200);
  });
});

describe('an attestation in place of the requested one', () => {
  const fetchAttestation = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer());

  async function catchRefusal(document: Buffer): Promise<unknown> {
    const { host, token } = await startAll();
    host.changeAnswer = (answer) =>
      answer.path === '/get_attestation' ? { ...answer, body: document } : answer;
    const outcome = await findOutcome(getSalt(host.url, token, TRUST));
    expect(host.paths).toEqual(['/get_attestation']);
    return outcome;
  }

  test('is refused if it is of another start, or was made earlier: POLICY_NONCE', async () => {
    const { host } = await startAll();
    const nonce = '00'.repeat(32);
    expect(await catchRefusal(await fetchAttestation(`${host.url}/get_attestation?nonce=${nonce}`))).toBe(
      'POLICY_NONCE',
    );
  });

  test('is refused if the host made it: CHAIN_ROOT', async () => {
    const fakeEnclave = await FakeEnclave.start();
    try {
      expect(await catchRefusal(await fetchAttestation(`${fakeEnclave.url}/get_attestation?nonce=00`))).toBe(
        'CHAIN_ROOT',
      );
    } finally {
      fakeEnclave.close();
    }
  });

  test('is refused if it has other registers: POLICY_PCRS', async () => {
    const { host, token } = await startAll();
    const image = { pcr0: '11'.repeat(48), pcr1: '22'.repeat(48), pcr2: '33'.repeat(48) };
    expect(await findOutcome(getSalt(host.url, token, { ...TRUST, policy: { images: [image] } }))).toBe(
      'POLICY_PCRS',
    );
    expect(host.saw(token)).toBe(false);
  });

  test('is refused if it has no sealing key, and nothing is sent: USER_DATA_MISSING', async () => {
    const enclave = await FakeEnclave.start(nsm);
    try {
      expect(await findOutcome(getSalt(enclave.url, 'a.b.c', TRUST))).toBe('USER_DATA_MISSING');
      expect(enclave.requests).toHaveLength(1);
    } finally {
      enclave.close();
    }
  });
});

describe('EnclaveClient with { sealed: true }', () => {
  test('returns signed answers, which the host does not see', async () => {
    const host = await startDice();
    const options = { expect: { picked: '424242' } };
    const { data, intent } = await createClient(host).call('/draw', { picked: '424242' }, Draw, options);
    expect([data.picked, intent]).toEqual([424242n, 2]);
    expect(host.saw('424242')).toBe(false);
    expect(host.paths).toEqual(['/get_attestation', '/sealed']);
  });

  test('calls endpoints that sign nothing', async () => {
    const host = await startDice();
    expect(await createClient(host).ask('/search?note=a%20b', undefined)).toEqual({ note: 'a b' });
    const call = createClient(host).ask('/nowhere', {});
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_REFUSED', serverCode: 'NOT_FOUND' });
  });

  test("believes the enclave's own refusal, which is sealed", async () => {
    const host = await startDice();
    const call = createClient(host).ask('/draw', {});
    await expect(call).rejects.toMatchObject({
      code: 'CLIENT_REFUSED',
      status: 400,
      serverCode: 'INVALID_INPUT',
      serverMessage: expect.stringMatching(/picked/),
    });
  });

  test('attests a restarted enclave, and seals to its new key', async () => {
    const [oldHost, newHost] = [await startDice(), await startDice()];
    const client = createClient(oldHost);
    await client.call('/draw', { picked: '1' }, Draw);
    oldHost.target = newHost.target;
    const { data } = await client.call('/draw', { picked: '2' }, Draw);
    expect(data.picked).toBe(2n);
    expect(oldHost.paths.filter((path) => path === '/get_attestation')).toHaveLength(2);
  });

  test('does not attest endlessly if a host claims another key', async () => {
    const host = await startDice();
    const body = Buffer.from('{"error":"x","code":"SEALED_KEY_UNKNOWN"}');
    host.changeAnswer = (answer) => (answer.path === '/sealed' ? { ...answer, status: 422, body } : answer);
    const call = createClient(host).ask('/rules', undefined);
    await expect(call).rejects.toMatchObject({
      code: 'CLIENT_UNAUTHENTICATED',
      serverCode: 'SEALED_KEY_UNKNOWN',
    });
    const count = (countedPath: string) => host.paths.filter((path) => path === countedPath).length;
    expect([count('/sealed'), count('/get_attestation')]).toEqual([16, 5]);
  });

  test('pads requests to the same length', async () => {
    const host = await startDice();
    const client = createClient(host, { paddingBytes: 256 });
    const sizes = new Set<number>();
    host.changeRequest = (_, body) => {
      sizes.add(body.length);
      return body;
    };
    for (const note of ['a', 'b'.repeat(100)]) await client.ask(`/search?note=${note}`, undefined);
    // Version, key and encapsulated key come before the ciphertext, and the tag after it.
    expect([...sizes]).toEqual([65 + 256 + 16]);
  });

  test.each<[string, object]>([
    ['sealed', { sealed: 'yes' }],
    ['sealed', { sealed: undefined }],
    ['sealed', { sealed: null }],
    ['paddingBytes', { sealed: true, paddingBytes: -1 }],
    ['paddingBytes', { sealed: true, paddingBytes: 65_537 }],
    ['paddingBytes', { paddingBytes: 16 }],
  ])('refuses the option %s of %o', (name, options) => {
    expect(() => new EnclaveClient('https://a.example', { ...TRUST, ...options })).toThrow(
      expect.objectContaining({ code: 'CLIENT_OPTION', message: expect.stringContaining(name) }),
    );
  });

  test('is required for "ask"', async () => {
    const client = new EnclaveClient('https://a.example', TRUST);
    expect(await findOutcome(client.ask('/rules', undefined))).toBe('CLIENT_OPTION');
  });
});
