import { bcs } from '@mysten/bcs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import {
  certificatesFromPem,
  EnclaveClient,
  type EnclaveClientOptions,
  signedType,
  text,
  u64,
} from '../../../../src/library/client/index.ts';
import { useEnclave } from '../../../../src/library/react/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { ChainFixture } from '../../cli/sui/chain_fixture.ts';
import { FIXTURE_APPS, startServer } from '../../server/support.ts';
import { Balancer } from '../client/balancer.ts';
import { FakeEnclave } from '../client/fake_enclave.ts';
import { complete, renderHook } from './render.ts';

// This is the type that test/fixtures/apps/dice signs.
const Draw = signedType(2, bcs.struct('Draw', { note: text, picked: u64, all: bcs.byteVector() }));
const QUESTION = { location: 'San Francisco' };
const nsm = new EmulatedNsm();
let enclave: FakeEnclave;
beforeEach(async () => {
  enclave = await FakeEnclave.start(nsm);
});
afterEach(() => enclave.close());

/** Returns new objects at each call, as a component makes new ones at each render. */
const options = (more: Partial<EnclaveClientOptions> = {}): EnclaveClientOptions => ({
  policy: { images: [enclave.image] },
  roots: enclave.roots,
  ...more,
});
const use = () => useEnclave(enclave.url, options());
const countAttestations = () => enclave.requests.filter((path) => path.startsWith('/get_attestation')).length;

/** Waits for events outside React, such as an answer, until they reach the component. */
async function until(check: () => void): Promise<void> {
  await complete(() => vi.waitFor(check, 60_000));
}

async function renderAttested(strict = false) {
  const hook = await renderHook(use, { strict });
  await until(() => expect(hook.latest().status).toBe('attested'));
  return hook;
}

/** Returns the client, which exists once it is attested. */
function requireClient(state: ReturnType<typeof useEnclave>): EnclaveClient {
  if (state.client === undefined) throw new Error(state.status);
  return state.client;
}

test('the hook attests, and returns the client, the key and the registers that were accepted', async () => {
  const hook = await renderAttested();
  expect(hook.results[0]).toMatchObject({ status: 'attesting', client: undefined, changed: undefined });
  const { publicKey, attestation, error, changed } = hook.latest();
  expect(publicKey).toEqual(enclave.key.publicKey);
  expect(attestation?.image).toEqual(enclave.image);
  expect([error, changed]).toEqual([undefined, undefined]);
  const { data } = await requireClient(hook.latest()).processData(QUESTION, WeatherResponse, {
    expect: QUESTION,
  });
  expect(data.temperature).toBe(13n);
  expect(countAttestations()).toBe(1);
});

test('the hook attests once: not with each render, and not twice in StrictMode', async () => {
  const hook = await renderAttested(true);
  const before = hook.results.length;
  await hook.rerender();
  await hook.rerender();
  expect(hook.results.length).toBeGreaterThan(before + 1);
  expect(hook.latest().status).toBe('attested');
  expect(hook.results.filter(({ status }) => status === 'failed')).toEqual([]);
  expect(countAttestations()).toBe(1);
});

test.each([
  ['another function', 1, () => options({ now: () => Date.now() })],
  ['another URL', 2, () => options()],
  ['another image', 2, () => options({ policy: { images: [{ ...enclave.image, pcr2: 'a'.repeat(96) }] } })],
  ['one more image', 2, () => options({ policy: { images: [enclave.image, enclave.image] } })],
  ['other bytes', 2, () => options({ roots: enclave.roots.map((root) => root.with(9, 0)) })],
  ['one more option', 2, () => options({ pinMaxAgeMs: 60_000 })],
])(
  'the hook, rendered again with %s, attests the enclave %i times in all',
  async (caseName, times, laterOptions) => {
    const hook = await renderHook(() => useEnclave(enclave.url, options({ now: () => Date.now() })));
    await until(() => expect(hook.latest().status).toBe('attested'));
    await hook.rerender(() =>
      useEnclave(caseName === 'another URL' ? `${enclave.url}/` : enclave.url, laterOptions()),
    );
    await until(() => expect(hook.latest().status).not.toBe('attesting'));
    expect(countAttestations()).toBe(times);
  },
);

test('a new key in a later attestation is reported until it is acknowledged', async () => {
  const hook = await renderAttested();
  const before = enclave.key.publicKey;
  enclave.restart();
  const now = enclave.key.publicKey;
  await complete(() => hook.latest().retry());
  await until(() => expect(hook.latest().status).toBe('attested'));
  expect(hook.latest()).toMatchObject({ publicKey: now, changed: { before, now } });

  await complete(() => hook.latest().retry());
  await until(() => expect(hook.latest().status).toBe('attested'));
  expect(countAttestations()).toBe(3);
  expect(hook.latest().changed).toEqual({ before, now });

  await complete(() => hook.latest().acknowledge());
  expect(hook.latest()).toMatchObject({ publicKey: now, changed: undefined });
});

test('a new key that the client attests while it verifies an answer is reported too', async () => {
  const hook = await renderAttested();
  const before = enclave.key.publicKey;
  enclave.restart();
  await complete(async () => {
    await requireClient(hook.latest()).processData(QUESTION, WeatherResponse);
  });
  expect(hook.latest().changed).toEqual({ before, now: enclave.key.publicKey });
});

test('neither a failure nor a further change hides a change of the key', async () => {
  const hook = await renderAttested();
  const keys = [enclave.key.publicKey];
  enclave.lie = () => ({ status: 503, body: '{}' });
  await complete(() => hook.latest().retry());
  await until(() => expect(hook.latest().status).toBe('failed'));
  expect(hook.latest()).toMatchObject({ client: undefined, attestation: undefined, publicKey: undefined });
  enclave.lie = (_, reply) => reply;
  for (const _ of [1, 2]) {
    enclave.restart();
    keys.push(enclave.key.publicKey);
    await complete(() => hook.latest().retry());
    await until(() => expect(hook.latest().status).toBe('attested'));
  }
  const [first, second, third] = keys;
  expect(hook.latest()).toMatchObject({ publicKey: third, changed: { before: first, now: second } });
  await complete(() => hook.latest().acknowledge());
  expect(hook.latest().changed).toEqual({ before: second, now: third });
  await complete(() => hook.latest().acknowledge());
  await complete(() => hook.latest().acknowledge());
  expect(hook.latest().changed).toBeUndefined();
});

test('an acknowledged key is not reported when it returns, as behind a balancer', async () => {
  const hook = await renderAttested();
  const first = enclave.key;
  enclave.restart();
  const second = enclave.key;
  const attestKey = async (key: typeof first) => {
    enclave.key = key;
    await complete(() => hook.latest().retry());
    await until(() => expect(hook.latest().status).toBe('attested'));
  };
  await attestKey(second);
  await complete(() => hook.latest().acknowledge());
  await attestKey(first);
  await attestKey(second);
  expect(hook.latest().changed).toBeUndefined();
});

test('the hook reports why it failed, and attests again on retry', async () => {
  enclave.lie = () => ({ status: 503, body: '{}' });
  const hook = await renderHook(use);
  await until(() => expect(hook.latest().status).toBe('failed'));
  expect(hook.latest().error).toMatchObject({ code: 'CLIENT_REFUSED', status: 503 });
  enclave.lie = (_, reply) => reply;
  const { retry } = hook.latest();
  await complete(async () => {
    retry();
    // The second call does nothing.
    retry();
  });
  await until(() => expect(hook.latest().status).toBe('attested'));
  expect([countAttestations(), hook.latest().error]).toEqual([2, undefined]);
});

test('a mistake in the options becomes an error of the state', async () => {
  const hook = await renderHook(() => useEnclave(enclave.url, { policy: { images: [] } }));
  await until(() => expect(hook.latest().status).toBe('failed'));
  expect(hook.latest().error).toMatchObject({ code: 'POLICY_INVALID' });
  expect(countAttestations()).toBe(0);
});

test('the compiler knows the codes of the error; a foreign error becomes its cause', async () => {
  const foreign = new Error('a clock that fails');
  const now = () => {
    throw foreign;
  };
  const hook = await renderHook(() => useEnclave(enclave.url, options({ now })));
  await until(() => expect(hook.latest().status).toBe('failed'));
  const { error } = hook.latest();
  // The compiler refuses a code that does not exist.
  const isExpected = error?.code === 'CLIENT_FAILED';
  expect([isExpected, error?.cause, String(error).includes('clock')]).toEqual([true, foreign, false]);
});

test('the hook aborts pending requests when it is unmounted, and retries nothing after that', async () => {
  const signals: AbortSignal[] = [];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    if (init?.signal) signals.push(init.signal);
    return await new Promise(() => {});
  };
  const attest = vi.spyOn(EnclaveClient.prototype, 'attest');
  const hook = await renderHook(() => useEnclave(enclave.url, options({ fetch })));
  await until(() => expect(signals).toHaveLength(1));
  await hook.unmount();
  const [[attestOptions] = []] = attest.mock.calls;
  attest.mockRestore();
  expect(attestOptions?.signal?.aborted).toBe(true);
  hook.latest().retry();
  expect(signals).toHaveLength(1);
});

test('with a config, the hook trusts the enclaves that the chain accepts, and reports another registered key behind the URL', async () => {
  const fixture = await ChainFixture.start();
  onTestFinished(() => fixture.close());
  const capId = fixture.publish();
  const configId = await fixture.config(capId);
  const start = () => startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm: fixture.nsm });
  const servers = [await start(), await start()] as const;
  const ids: string[] = [];
  for (const { url } of servers) ids.push(await fixture.register(configId, capId, url));
  const suiClient = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const { url } = await Balancer.start(servers[0].url, servers[1].url);
  const roots = certificatesFromPem(fixture.nsm.rootPem());
  const commonOptions = { roots, maxAnswerAgeMs: Infinity };
  const hook = await renderHook(() => useEnclave(url, { suiClient, configId, ...commonOptions }));
  await until(() => expect(hook.latest().status).toBe('attested'));
  const { client, publicKey: before } = hook.latest();
  const signers = new Set<string>();
  await complete(async () => {
    for (const _ of servers) {
      const answer = await client?.call('/draw', { picked: '7' }, Draw);
      if (answer !== undefined) signers.add(answer.enclaveId);
    }
  });
  expect([...signers].sort()).toEqual(ids.sort());
  const now = servers
    .map((server) => server.publicKey)
    .find((key) => !Buffer.from(key).equals(before ?? key));
  expect(hook.latest().changed).toEqual({ before, now });

  const failedHook = await renderHook(() =>
    useEnclave(url, { suiClient, configId: capId, ...commonOptions }),
  );
  await until(() => expect(failedHook.latest().status).toBe('failed'));
  expect(failedHook.latest().error).toMatchObject({ code: 'SUI_OBJECT_TYPE' });
});
