/** Several enclaves behind one URL, to which a balancer forwards requests in turn. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { bcs } from '@mysten/bcs';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  certificatesFromPem,
  EnclaveClient,
  type EnclaveClientOptions,
  mayHaveExecuted,
  parsePcrs,
  signedType,
  u64,
} from '../../../../src/library/client/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { FIXTURE_APPS, startServer, type TestServer } from '../../server/support.ts';
import { Balancer } from './balancer.ts';

const nsm = new EmulatedNsm();
const TRUST = {
  policy: { images: [parsePcrs(nsm.pcrsFile())] },
  roots: certificatesFromPem(nsm.rootPem()),
};
const Draw = signedType(2, bcs.struct('Draw', { note: bcs.string(), picked: u64, all: bcs.byteVector() }));

const Counted = signedType(7, bcs.struct('Counted', { id: u64 }));

const start = () => startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm });

async function startFleet(size: number): Promise<{ balancer: Balancer; enclaves: TestServer[] }> {
  const enclaves = await Promise.all(Array.from({ length: size }, start));
  return { balancer: await Balancer.start(...enclaves.map(({ url }) => url)), enclaves };
}

const createClient = ({ url }: { url: string }, options: Partial<EnclaveClientOptions> = {}) =>
  new EnclaveClient(url, { ...TRUST, maxAnswerAgeMs: Infinity, ...options });

const draw = (client: EnclaveClient, picked: number, options = {}) =>
  client.call('/draw', { picked: String(picked) }, Draw, { expect: { picked }, ...options });

const formatHex = (key: Uint8Array) => Buffer.from(key).toString('hex');

/** Returns the error of a call, or null if the call succeeded. */
const catchError = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

describe('enclaves behind one URL', () => {
  test.each([2, 3, 5])('%d of them answer all calls, both successive and simultaneous ones', async (size) => {
    const { balancer, enclaves } = await startFleet(size);
    const client = createClient(balancer);
    const signers = new Set<string>();
    for (let call = 0; call < 4 * size; call++) signers.add(formatHex((await draw(client, call)).publicKey));
    expect(signers).toEqual(new Set(enclaves.map(({ publicKey }) => formatHex(publicKey))));
    const attestations = balancer.count('/get_attestation');
    const answers = await Promise.all(Array.from({ length: 20 }, (_, call) => draw(client, call)));
    expect(answers.map(({ data }) => data.picked)).toEqual(answers.map((_, call) => BigInt(call)));
    // No call was sent twice, and known keys were not attested again.
    expect(balancer.count('/draw')).toBe(4 * size + 20);
    expect(balancer.count('/get_attestation')).toBe(attestations);
  });

  test('answer sealed calls too', async () => {
    const { balancer, enclaves } = await startFleet(2);
    const client = createClient(balancer, { sealed: true });
    const signers = new Set<string>();
    for (let call = 0; call < 12; call++) signers.add(formatHex((await draw(client, call)).publicKey));
    await Promise.all(Array.from({ length: 20 }, (_, call) => draw(client, call)));
    expect(await client.ask('/search?note=a', undefined)).toEqual({ note: 'a' });
    expect(signers.size).toBeGreaterThan(0);
    for (const signer of signers)
      expect(enclaves.map(({ publicKey }) => formatHex(publicKey))).toContain(signer);
  });

  test('are followed when all of them restart', async () => {
    for (const sealed of [false, true]) {
      const { balancer } = await startFleet(2);
      const client = createClient(balancer, { sealed });
      for (let call = 0; call < 4; call++) await draw(client, call);
      balancer.targets = [(await start()).url, (await start()).url];
      for (let call = 0; call < 4; call++) await draw(client, call);
    }
  });

  test('are accepted only with the key that the policy names', async () => {
    const { balancer, enclaves } = await startFleet(2);
    const [firstEnclave] = enclaves as [TestServer];
    const client = createClient(balancer, { policy: { ...TRUST.policy, publicKey: firstEnclave.publicKey } });
    const answers = await Promise.all([1, 2, 3, 4].map((call) => catchError(draw(client, call))));
    expect(answers).toContain(null);
    for (const error of answers.filter((answer) => answer !== null)) {
      expect(error).toMatchObject({ code: expect.stringMatching(/POLICY_PUBLIC_KEY|CLIENT_SIGNATURE/) });
    }
  });
});

test('idempotent calls never fail, and other calls run at most once, while connections break and an enclave is drained', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'tally-')), 'executed');
  const fd = openSync(file, 'a');
  onTestFinished(() => {
    closeSync(fd);
    rmSync(dirname(file), { recursive: true });
  });
  const env = { APP: 'tally', TALLY_FD: String(fd) };
  const startTally = () => startServer({ apps: FIXTURE_APPS, env, nsm });
  const [drained, remaining] = [await startTally(), await startTally()];
  const balancer = await Balancer.start(drained.url, remaining.url);
  let requests = 0;
  balancer.breaks = (path) => path !== '/get_attestation' && ++requests % 7 === 0;
  const clients = [createClient(balancer), createClient(balancer, { sealed: true })];

  const calls = Array.from({ length: 60 }, async (_, id) => {
    const client = clients[id % 2] as EnclaveClient;
    const idempotent = id % 3 === 0;
    const call = client.call('/count', { id }, Counted, { expect: { id }, idempotent });
    return { id, idempotent, error: await catchError(call) };
  });
  // The balancer forwards calls to the draining enclave until it has ended.
  const draining = drained.close().then(() => {
    balancer.targets = [remaining.url];
  });
  const outcomes = await Promise.all(calls);
  await draining;

  const executed = readFileSync(file, 'utf8').split('\n');
  const countExecutions = (id: number) => executed.filter((line) => line === `executed ${id}`).length;
  for (const { id, idempotent, error } of outcomes) {
    if (idempotent) expect(error).toBeNull();
    else expect(countExecutions(id)).toBeLessThanOrEqual(1);
    if (error === null) expect(countExecutions(id)).toBeGreaterThan(0);
    else if (countExecutions(id) > 0) expect(mayHaveExecuted(error)).toBe(true);
  }
  expect(outcomes.some(({ id, error }) => error !== null && countExecutions(id) === 1)).toBe(true);
});

describe('the hint of the key', () => {
  test('names the signing key, accompanies only signed answers, and can be read by pages', async () => {
    const server = await start();
    const answer = await server.post('/draw', { picked: '1' });
    expect(answer.headers.get('x-enclave-key')).toBe(formatHex(server.publicKey));
    expect(answer.headers.get('access-control-expose-headers')).toBe(
      'x-request-id, retry-after, x-enclave-key',
    );
    for (const path of ['/rules', '/draw', '/nowhere', '/health_check']) {
      expect((await server.get(path)).headers.get('x-enclave-key')).toBeNull();
    }
  });

  test.each<[string, (hint: string | undefined) => string | undefined]>([
    ['missing', () => undefined],
    ['an unknown key', () => 'ab'.repeat(32)],
    ['not a key', () => 'x'],
    ['a list', (hint) => `${hint}, ${hint}`],
  ])('may be %s: the answer is judged in the same way', async (_, change) => {
    const { balancer } = await startFleet(2);
    balancer.changeHint = change;
    const client = createClient(balancer);
    for (let call = 0; call < 6; call++) await draw(client, call);
    expect(balancer.count('/draw')).toBe(6);
  });

  test('that names another known key is not believed', async () => {
    const { balancer, enclaves } = await startFleet(2);
    const client = createClient(balancer);
    for (let call = 0; call < 4; call++) await draw(client, call);
    const [firstKey, secondKey] = enclaves.map(({ publicKey }) => formatHex(publicKey));
    balancer.changeHint = (hint) => (hint === firstKey ? secondKey : firstKey);
    const { publicKey } = await draw(client, 5);
    expect([firstKey, secondKey]).toContain(formatHex(publicKey));
  });

  test('does not help a lying host, and causes a bounded number of attestations', async () => {
    const { balancer } = await startFleet(1);
    const stranger = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm: new EmulatedNsm() });
    const client = createClient(balancer);
    await draw(client, 1);
    const genuine = balancer.targets[0] as string;
    for (const hint of [formatHex(stranger.publicKey), 'ab'.repeat(32), undefined]) {
      const before = balancer.count('/get_attestation');
      balancer.changeHint = () => hint;
      // The host answers with data that a stranger signed, and shows attestations of the genuine enclave.
      balancer.route = (path) => (path === '/draw' ? stranger.url : genuine);
      await expect(draw(client, 2)).rejects.toMatchObject({ code: 'CLIENT_SIGNATURE' });
      expect(balancer.count('/get_attestation') - before).toBe(4);
    }
  });
});

describe('a call that fails', () => {
  test('is repeated only if it is idempotent', async () => {
    for (const sealed of [false, true]) {
      const { balancer } = await startFleet(2);
      const client = createClient(balancer, { sealed });
      const path = sealed ? '/sealed' : '/draw';
      await draw(client, 0);
      let broken = 0;
      const sent = balancer.count(path);
      balancer.breaks = (requestedPath) => requestedPath === path && ++broken <= 2;
      expect((await draw(client, 1, { idempotent: true })).data.picked).toBe(1n);
      expect(balancer.count(path)).toBeGreaterThanOrEqual(sent + 3);
      broken = 0;
      balancer.breaks = (requestedPath) => requestedPath === path && ++broken <= 1;
      const before = balancer.count(path);
      const error = await catchError(draw(client, 2));
      expect(error).toMatchObject({ code: 'CLIENT_UNREACHABLE' });
      expect(mayHaveExecuted(error)).toBe(true);
      expect(balancer.count(path)).toBe(before + 1);
    }
  });

  test('is given up after five attempts, even if it is idempotent', async () => {
    const { balancer } = await startFleet(1);
    const client = createClient(balancer);
    balancer.breaks = (path) => path === '/draw';
    const error = await catchError(draw(client, 1, { idempotent: true }));
    expect([mayHaveExecuted(error), balancer.count('/draw')]).toEqual([true, 5]);
  });

  test('reports whether it may have been executed', async () => {
    const { balancer, enclaves } = await startFleet(1);
    const client = createClient(balancer);
    // Nothing was sent: there is no such option, no enclave, or no connection.
    expect(mayHaveExecuted(await catchError(draw(client, 1, { idempotent: 1 })))).toBe(false);
    expect(mayHaveExecuted(await catchError(draw(createClient({ url: 'http://127.0.0.1:1' }), 1)))).toBe(
      false,
    );
    await draw(client, 1);
    // The enclave refused the call.
    expect(mayHaveExecuted(await catchError(client.call('/draw', {}, Draw)))).toBe(false);
    // These errors are an answer of a gateway, an answer to another request, and an answer that no key
    // signed.
    balancer.targets = ['http://127.0.0.1:1'];
    const gateway = await catchError(draw(client, 1));
    expect([gateway, mayHaveExecuted(gateway)]).toEqual([expect.objectContaining({ status: 502 }), true]);
    balancer.targets = enclaves.map(({ url }) => url);
    expect(mayHaveExecuted(await catchError(draw(client, 1, { expect: { picked: 2 } })))).toBe(true);
    // A reason that is not an object does not tell whether the call was sent.
    expect(mayHaveExecuted('stopped')).toBe(true);
  });

  test('is reported as not executed if it fails before it connects', async () => {
    const server = await start();
    const client = createClient(server);
    await draw(client, 1);
    await server.close();
    // The first request may fail on the connection that is still open.
    await catchError(draw(client, 1));
    const error = await catchError(draw(client, 1));
    expect(error).toMatchObject({ code: 'CLIENT_UNREACHABLE', reason: 'connection' });
    expect(mayHaveExecuted(error)).toBe(false);
  });

  test.each([{ idempotent: 'yes' }, { idempotent: undefined, retries: 3 }, { signal: {} }])(
    'sends nothing if its options are invalid: %o',
    async (options) => {
      const client = createClient({ url: 'http://127.0.0.1:1' });
      await expect(draw(client, 1, options)).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
    },
  );
});

describe('a signal', () => {
  test('ends a call with its reason, before, between and during requests', async () => {
    const { balancer } = await startFleet(1);
    const client = createClient(balancer, { sealed: true });
    const reason = new Error('the page was left');
    const earlyError = await catchError(draw(client, 1, { signal: AbortSignal.abort(reason) }));
    expect([earlyError, mayHaveExecuted(earlyError)]).toEqual([reason, false]);

    const lateController = new AbortController();
    const hanging = catchError(client.ask('/slow', undefined, { signal: lateController.signal }));
    await expect.poll(() => balancer.count('/sealed')).toBe(1);
    lateController.abort(reason);
    expect([await hanging, mayHaveExecuted(reason)]).toEqual([reason, true]);

    const betweenController = new AbortController();
    balancer.breaks = (path) => {
      setImmediate(() => betweenController.abort('enough'));
      return path === '/sealed';
    };
    const stopped = catchError(draw(client, 1, { idempotent: true, signal: betweenController.signal }));
    expect(await stopped).toBe('enough');
  });

  test('ends an attestation for one caller, but not for another caller who shares it', async () => {
    const { balancer } = await startFleet(1);
    const client = createClient(balancer);
    const controller = new AbortController();
    const [abortedCall, otherCall] = [
      catchError(draw(client, 1, { signal: controller.signal })),
      draw(client, 2),
    ];
    controller.abort();
    expect(await abortedCall).toMatchObject({ name: 'AbortError' });
    expect((await otherCall).data.picked).toBe(2n);
    expect(balancer.count('/get_attestation')).toBe(1);
    const attested = client.attest({ signal: AbortSignal.abort('no') });
    await expect(attested).rejects.toBe('no');
  });
});
