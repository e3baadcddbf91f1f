/** `EnclaveClient.forConfig` follows an EnclaveConfig on Sui. The tests run against the loopback node. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bcs } from '@mysten/bcs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { type OutputChunk, rolldown } from 'rolldown';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type ConfigClientOptions,
  certificatesFromPem,
  EnclaveClient,
  mayHaveExecuted,
  NotRegisteredError,
  type RegisteredEnclaveClient,
  signedType,
  u64,
} from '../../../../src/library/client/index.ts';
import { ChainFixture, ofConfig } from '../../cli/sui/chain_fixture.ts';
import { FIXTURE_APPS, startServer, type TestServer } from '../../server/support.ts';
import { Balancer } from './balancer.ts';

const Draw = signedType(2, bcs.struct('Draw', { note: bcs.string(), picked: u64, all: bcs.byteVector() }));
const HOUR = 3_600_000;

let fixture: ChainFixture;
let suiClient: SuiGrpcClient;
let capId: string;
let configId: string;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  suiClient = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  capId = fixture.publish();
  configId = await fixture.config(capId);
});
afterEach(() => fixture.close());

const start = () => startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm: fixture.nsm });

const open = ({ url }: { url: string }, options: ConfigClientOptions = {}) =>
  EnclaveClient.forConfig(suiClient, configId, url, {
    roots: certificatesFromPem(fixture.nsm.rootPem()),
    maxAnswerAgeMs: Infinity,
    ...options,
  });

const draw = (client: RegisteredEnclaveClient, options = {}) =>
  client.call('/draw', { picked: '7' }, Draw, options);

/** Starts an enclave and registers it. */
async function register(): Promise<{ server: TestServer; enclaveId: string }> {
  const server = await start();
  return { server, enclaveId: await fixture.register(configId, capId, server.url) };
}

const allow = (pcrs: string) =>
  fixture.done('update_pcrs', ...ofConfig(configId), '--pcrs', fixture.file(pcrs));

describe('an answer', () => {
  test('contains the id of the registered enclave whose key signed', async () => {
    const { server, enclaveId } = await register();
    for (const sealed of [false, true]) {
      const client = await open(server, { sealed });
      expect(client).toBeInstanceOf(EnclaveClient);
      const answer = await draw(client);
      expect(answer).toMatchObject({ enclaveId, publicKey: server.publicKey, data: { picked: 7n } });
      const typed: string = answer.enclaveId;
      expect(typed).toBe(enclaveId);
    }
    const client = await open(server);
    const rolled = client.processData({ sides: 300 }, Draw);
    await expect(rolled).rejects.toMatchObject({ serverCode: 'INVALID_INPUT' });
  });

  test('needs no further read of the chain while the config is fresh', async () => {
    const { server } = await register();
    let now = Date.now();
    const client = await open(server, { now: () => now });
    await draw(client);
    const calls = fixture.node.calls.length;
    for (let call = 0; call < 3; call++) await draw(client);
    expect(fixture.node.calls).toHaveLength(calls);
    now += 60_001;
    await draw(client);
    expect(fixture.node.calls.length).toBeGreaterThan(calls);
  });

  test('of another registered enclave behind the same URL needs no new attestation', async () => {
    const [first, second] = [await register(), await register()];
    const balancer = await Balancer.start(first.server.url, second.server.url);
    const client = await open(balancer);
    const ids = new Set<string>();
    for (let call = 0; call < 4; call++) ids.add((await draw(client)).enclaveId);
    expect(ids).toEqual(new Set([first.enclaveId, second.enclaveId]));
    expect(balancer.count('/get_attestation')).toBe(1);
  });

  test('of a registered enclave is not requested before the client has attested the enclave', async () => {
    const { server } = await register();
    const balancer = await Balancer.start(server.url);
    const client = await EnclaveClient.forConfig(suiClient, configId, balancer.url);
    const error = await draw(client).catch((thrown) => thrown);
    expect([error.code, mayHaveExecuted(error)]).toEqual(['CHAIN_ROOT', false]);
    expect(balancer.count('/draw')).toBe(0);
  });

  test('of an enclave is refused until it is registered', async () => {
    const server = await start();
    const client = await open(server);
    const error = await draw(client).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(NotRegisteredError);
    expect(error).toMatchObject({
      code: 'CLIENT_NOT_REGISTERED',
      reason: 'unregistered',
      configId,
      publicKey: server.publicKey,
    });
    expect(mayHaveExecuted(error)).toBe(true);
    const enclaveId = await fixture.register(configId, capId, server.url);
    expect(await draw(client)).toMatchObject({ enclaveId });
  });

  test('that is not signed is refused too, until the enclave that sealed it is registered', async () => {
    const server = await start();
    const client = await open(server, { sealed: true });
    const error = await client.ask('/draw', { picked: '7' }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'CLIENT_NOT_REGISTERED', publicKey: server.publicKey });
    expect(mayHaveExecuted(error)).toBe(true);
    await fixture.register(configId, capId, server.url);
    expect(await client.ask('/draw', { picked: '7' })).toMatchObject({ response: { data: { picked: 7 } } });
  });

  test('of a key that was not attested is not believed, even with a hint', async () => {
    const { server } = await register();
    const stranger = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' } });
    const balancer = await Balancer.start(server.url);
    const client = await open(balancer);
    await draw(client);
    balancer.route = (path) => (path === '/draw' ? stranger.url : server.url);
    await expect(draw(client)).rejects.toMatchObject({ code: 'CLIENT_SIGNATURE' });
  });
});

describe('the config', () => {
  test('is followed when another image is allowed', async () => {
    const { server, enclaveId } = await register();
    await allow('other.pcrs');
    const client = await open(server);
    // The config at this version of the chain does not accept the image.
    await expect(draw(client)).rejects.toMatchObject({ code: 'POLICY_PCRS' });
    await allow('dev.pcrs');
    await expect(draw(client)).rejects.toMatchObject({ reason: 'unregistered' });
    const newId = await fixture.register(configId, capId, server.url);
    expect(newId).not.toBe(enclaveId);
    expect(await draw(client)).toMatchObject({ enclaveId: newId });
  });

  test('in an overlap accepts the enclaves of both images, until the set time', async () => {
    const { server: oldServer, enclaveId: oldId } = await register();
    const nsm = fixture.createNsm('next');
    writeFileSync(fixture.file('next.pcrs'), nsm.pcrsFile());
    const successor = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm });
    let now = Date.now();
    const [oldClient, newClient] = await Promise.all(
      [oldServer, successor].map((server) => open(server, { now: () => now, configMaxAgeMs: 100 * HOUR })),
    );
    expect(await draw(oldClient as RegisteredEnclaveClient)).toMatchObject({ enclaveId: oldId });
    const { enclave } = await fixture.done(
      'rotate',
      ...ofConfig(configId),
      successor.url,
      '--pcrs',
      fixture.file('next.pcrs'),
      '--root',
      fixture.file('root.pem'),
      '--overlap',
      '10',
    );
    expect(await draw(newClient as RegisteredEnclaveClient)).toMatchObject({ enclaveId: enclave });
    const overlapClient = await open(oldServer, { now: () => now, configMaxAgeMs: 100 * HOUR });
    const balancer = await Balancer.start(oldServer.url, successor.url);
    const balancedClient = await open(balancer, { now: () => now, configMaxAgeMs: 100 * HOUR });
    expect(await draw(overlapClient)).toMatchObject({ enclaveId: oldId });
    const ids = new Set<string>();
    for (let call = 0; call < 4; call++) ids.add((await draw(balancedClient)).enclaveId);
    expect(ids).toEqual(new Set([oldId, enclave]));
    // The command read the clock later than this test.
    now += 11 * 60_000;
    await expect(draw(overlapClient)).rejects.toMatchObject({ code: 'POLICY_PCRS' });
    balancer.route = () => successor.url;
    expect(await draw(balancedClient)).toMatchObject({ enclaveId: enclave });
  });

  test('that allows another image ends the trust in keys that were attested before', async () => {
    const { server } = await register();
    let now = Date.now();
    const client = await open(server, { now: () => now, configMaxAgeMs: 5000 });
    await draw(client);
    await fixture.rotate(configId, capId);
    await draw(client);
    now += 5001;
    await expect(draw(client)).rejects.toMatchObject({ code: 'POLICY_PCRS' });
  });

  test('reports when a key was destroyed, or is too old', async () => {
    const { server, enclaveId } = await register();
    let now = Date.now();
    const client = await open(server, { now: () => now, pinMaxAgeMs: 100 * HOUR });
    await fixture.done('update_config', ...ofConfig(configId), '--max-key-age', '2');
    now += HOUR;
    await draw(client);
    now += HOUR + 60_000;
    await expect(draw(client)).rejects.toMatchObject({ reason: 'too old' });
    await fixture.destroy(enclaveId, configId, capId);
    await expect(draw(client)).rejects.toMatchObject({ reason: 'destroyed' });
  });

  test('that is retired ends each call immediately, and the client sends nothing', async () => {
    const { server } = await register();
    const balancer = await Balancer.start(server.url);
    let now = Date.now();
    const client = await open(balancer, { now: () => now });
    await fixture.done('retire_config', ...ofConfig(configId), '--yes');
    now += 60_001;
    const error = await draw(client, { idempotent: true }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'CLIENT_NOT_REGISTERED', reason: 'retired', publicKey: null });
    expect([mayHaveExecuted(error), balancer.paths]).toEqual([false, []]);
    await expect(open(balancer)).rejects.toMatchObject({ reason: 'retired' });
  });

  test.each<[string, ConfigClientOptions | object, string]>([
    ['a policy', { policy: { images: [] } }, 'CLIENT_OPTION'],
    ['a misspelt option', { maxAge: 1 }, 'CLIENT_OPTION'],
    ['an age of 0', { configMaxAgeMs: 0 }, 'CLIENT_OPTION'],
    ['a text as the signal', { signal: 'now' }, 'CLIENT_OPTION'],
  ])('is not read if the options have %s', async (_, options, code) => {
    const calls = fixture.node.calls.length;
    const opened = open({ url: 'http://127.0.0.1:1' }, options as ConfigClientOptions);
    await expect(opened).rejects.toMatchObject({ code });
    expect(fixture.node.calls).toHaveLength(calls);
  });

  test('causes an error if it is not a config, does not exist, or is not read in time', async () => {
    const url = 'http://127.0.0.1:1';
    await expect(EnclaveClient.forConfig(suiClient, '0x6', url)).rejects.toMatchObject({ code: 'SUI_VALUE' });
    const missing = EnclaveClient.forConfig(suiClient, `0x${'d'.repeat(64)}`, url);
    await expect(missing).rejects.toMatchObject({ code: 'SUI_OBJECT_NOT_FOUND' });
    const reason = new Error('enough');
    await expect(open({ url }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

test('a page that uses a policy of its own loads no module of Sui', async () => {
  const bundle = await rolldown({
    input: fileURLToPath(new URL('../../../../src/library/client/index.ts', import.meta.url)),
    platform: 'browser',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const chunks = output.filter((chunk): chunk is OutputChunk => chunk.type === 'chunk');
  const findChunk = (name: string) => chunks.find(({ fileName }) => fileName === name);
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of loaded) {
    for (const name of imports) loaded.add(findChunk(name) as OutputChunk);
  }
  const listModules = (list: Iterable<OutputChunk>) => [...list].flatMap(({ moduleIds }) => moduleIds);
  const isOfSui = (id: string) => /\/@mysten\/sui\/|\/library\/sui\//.test(id);
  expect(listModules(loaded).some((id) => id.endsWith('/src/library/client/keys.ts'))).toBe(true);
  expect(listModules(loaded).filter(isOfSui)).toEqual([]);
  const lazyModules = listModules(chunks.filter((chunk) => !loaded.has(chunk)));
  expect(lazyModules.some((id) => id.endsWith('/src/library/sui/objects.ts'))).toBe(true);
});
