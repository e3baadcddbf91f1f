import { bcs } from '@mysten/sui/bcs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { blake2b } from '@noble/hashes/blake2.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COIN } from '../../../../src/devnet/ledger.ts';
import * as sui from '../../../../src/library/sui/index.ts';
import { ConfigContent, EnclaveContent } from '../../../../src/library/sui/structs.ts';
import { ChainFixture, ofConfig, PACKAGE } from '../../cli/sui/chain_fixture.ts';
import { startServer } from '../../server/support.ts';

const APPLICATION = sui.applicationType(PACKAGE, 'weather', 'WEATHER');
const NOWHERE = `0x${'d'.repeat(64)}`;

let fixture: ChainFixture;
let client: SuiGrpcClient;
let capId: string;
let configId: string;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  capId = fixture.publish();
  configId = await fixture.config(capId);
});
afterEach(() => fixture.close());

/** Starts an enclave, which generates its own key, and registers it. */
async function register(): Promise<{ id: string; publicKey: Uint8Array }> {
  const server = await startServer({ nsm: fixture.nsm });
  const id = await fixture.register(configId, capId, server.url);
  const { pk } = (await (await server.get('/health_check')).json()) as { pk: string };
  return { id, publicKey: new Uint8Array(Buffer.from(pk, 'hex')) };
}

describe('readConfig', () => {
  test('reads every field', async () => {
    expect(await sui.readConfig(client, configId)).toEqual({
      id: configId,
      enclavePackage: PACKAGE,
      application: APPLICATION,
      name: 'weather',
      image: sui.parsePcrs(fixture.nsm.pcrsFile()),
      source: null,
      capabilityId: capId,
      configVersion: 0n,
      overlap: null,
      maxKeyAgeMs: null,
      registrars: [],
      isRetired: false,
      packageVersion: 1n,
      isOpen: false,
    });
  });

  test('refuses an object that is not a config', async () => {
    const [coin] = fixture.node.ledger.coins(fixture.address);
    const expected = {
      code: 'SUI_OBJECT_TYPE',
      message: expect.stringContaining('an enclave::EnclaveConfig'),
    };
    await expect(sui.readConfig(client, coin?.object.id ?? '')).rejects.toMatchObject(expected);
    await expect(sui.readConfig(client, capId)).rejects.toMatchObject(expected);
    await expect(sui.readConfig(client, PACKAGE)).rejects.toMatchObject(expected);
  });

  test('refuses an invalid id, and an id without an object', async () => {
    await expect(sui.readConfig(client, '0x6')).rejects.toMatchObject({ code: 'SUI_VALUE' });
    await expect(sui.readConfig(client, NOWHERE)).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      objectId: NOWHERE,
    });
  });

  test.each<[string, (content: Uint8Array) => Uint8Array]>([
    ['longer', (content) => Buffer.concat([content, Buffer.alloc(1)])],
    ['shorter', (content) => content.subarray(0, -1)],
  ])('refuses content that is %s than the struct', async (_, change) => {
    fixture.node.lie = (object) => ({ ...object, content: change(object.content) });
    await expect(sui.readConfig(client, configId)).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });

  test('refuses a time that a Date can not represent', async () => {
    const { id: enclaveId } = await register();
    const untilMs = 8_640_000_000_000_001n;
    fixture.node.lie = (object) => {
      if (object.id === enclaveId) {
        const enclave = { ...EnclaveContent.parse(object.content), registeredAtMs: untilMs };
        return { ...object, content: EnclaveContent.serialize(enclave).toBytes() };
      }
      if (object.id !== configId) return object;
      const config = ConfigContent.parse(object.content);
      const overlap = { image: config.image, untilMs };
      return { ...object, content: ConfigContent.serialize({ ...config, overlap }).toBytes() };
    };
    await expect(sui.readConfig(client, configId)).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
    await expect(sui.readEnclave(client, enclaveId)).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
    const status = await fixture.run('status', '--config', configId);
    expect(status.exit).toBe(1);
    expect(status.json()).toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });

  test('refuses an object that was not requested', async () => {
    fixture.node.lie = (object) => ({ ...object, id: NOWHERE });
    await expect(sui.readConfig(client, configId)).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });
});

describe('enclaves', () => {
  test('have an id that config, version and key determine, which the library and the node compute alike', async () => {
    const { id, publicKey } = await register();
    const config = await sui.readConfig(client, configId);
    // sui::derived_object hashes the parent's address, then the key's length as a u64, then the key.
    const key = Buffer.concat([Buffer.alloc(8), Buffer.of(32), publicKey]);
    const length = Buffer.alloc(8);
    length.writeUInt8(key.length);
    const type = `0x2::derived_object::DerivedObjectKey<${PACKAGE}::enclave::EnclaveKey>`;
    const bytes = [
      Buffer.of(0xf0),
      bcs.Address.serialize(configId).toBytes(),
      length,
      key,
      bcs.TypeTag.serialize(type).toBytes(),
    ];
    const address = `0x${Buffer.from(blake2b(Buffer.concat(bytes), { dkLen: 32 })).toString('hex')}`;
    expect(sui.enclaveAddress(config, 0n, publicKey)).toBe(address);
    expect(id).toBe(address);
    expect(sui.enclaveAddress(config, 1n, publicKey)).not.toBe(address);
    expect(() => sui.enclaveAddress(config, 0n, publicKey.subarray(1))).toThrow('32 bytes');
    expect(() => sui.enclaveAddress(config, 2n ** 64n, publicKey)).toThrow(
      expect.objectContaining({ code: 'SUI_VALUE' }),
    );
  });

  test('are listed from all pages, including destroyed enclaves, and findRegistration returns the state of each', async () => {
    const liveEnclaves = [await register(), await register()];
    const destroyedEnclave = await register();
    await fixture.destroy(destroyedEnclave.id, configId, capId);
    const config = await sui.readConfig(client, configId);

    const { enclaves, destroyed } = await sui.listEnclaves(client, config);
    expect(enclaves.map(({ id }) => id).sort()).toEqual(liveEnclaves.map(({ id }) => id).sort());
    expect(destroyed).toEqual([destroyedEnclave.id]);
    expect(fixture.node.calls.filter((name) => name === 'ListDynamicFields')).toHaveLength(2);

    const findByKey = (key: Uint8Array) => sui.findRegistration(client, config, key);
    expect(await findByKey(liveEnclaves[0]?.publicKey ?? new Uint8Array())).toEqual({
      enclaveId: liveEnclaves[0]?.id,
      configVersion: 0n,
      state: 'registered',
    });
    expect(await findByKey(destroyedEnclave.publicKey)).toMatchObject({
      enclaveId: destroyedEnclave.id,
      state: 'destroyed',
    });
    expect(await findByKey(new Uint8Array(32))).toMatchObject({ state: 'free' });
  });

  test('of the previous version are current during an overlap, and stale after it', async () => {
    const old = await register();
    const { url } = await startServer({ nsm: fixture.nsm });
    const files = ['--pcrs', fixture.file('dev.pcrs'), '--root', fixture.file('root.pem'), '--again'];
    const { enclave: successor } = await fixture.done(
      'rotate',
      ...ofConfig(configId),
      url,
      ...files,
      '--overlap',
      '10',
    );
    const config = await sui.readConfig(client, configId);
    const end = Number(config.overlap?.untilMs);
    const current = async (nowMs?: number) => {
      const options = { versions: 'current', ...(nowMs !== undefined && { nowMs }) } as const;
      const { enclaves } = await sui.listEnclaves(client, config, options);
      return enclaves.map(({ id }) => id).sort();
    };
    const both = [old.id, String(successor)].sort();
    expect([await current(), await current(end - 1), await current(end)]).toEqual([both, both, [successor]]);
    const findOld = (options?: sui.RegistrationOptions) =>
      sui.findRegistration(client, config, old.publicKey, options);
    const registered = { enclaveId: old.id, configVersion: 0n, state: 'registered' };
    expect(await findOld()).toEqual(registered);
    expect(await findOld({ nowMs: end - 1 })).toEqual(registered);
    const free = {
      enclaveId: sui.enclaveAddress(config, 1n, old.publicKey),
      configVersion: 1n,
      state: 'free',
    };
    expect(await findOld({ nowMs: end })).toEqual(free);
    expect(await findOld({ versions: 'latest' })).toEqual(free);
    await expect(findOld({ versions: 'all' as never })).rejects.toMatchObject({ code: 'SUI_VALUE' });
  });

  test('are listed by version, and by page', async () => {
    const old = [await register(), await register()].map(({ id }) => id);
    const { url } = await startServer({ nsm: fixture.nsm });
    const files = ['--pcrs', fixture.file('dev.pcrs'), '--root', fixture.file('root.pem'), '--again'];
    const { enclave: successor } = await fixture.done('rotate', ...ofConfig(configId), url, ...files);
    const config = await sui.readConfig(client, configId);
    const list = (options: sui.ListOptions) => sui.listEnclaves(client, config, options);

    const { enclaves: all } = await list({ versions: 'all' });
    expect(Object.fromEntries(all.map(({ id, isStale }) => [id, isStale]))).toEqual({
      [old[0] ?? '']: true,
      [old[1] ?? '']: true,
      [String(successor)]: false,
    });
    expect((await list({})).enclaves).toEqual(all);
    expect(await list({ versions: 'current' })).toMatchObject({
      enclaves: [{ id: successor, configVersion: 1n, isStale: false }],
      destroyed: [],
      cursor: null,
    });

    const listedIds: string[] = [];
    let cursor: string | null = null;
    do {
      const page: sui.EnclaveList = await list({ limit: 1, cursor });
      listedIds.push(...page.enclaves.map(({ id }) => id));
      cursor = page.cursor;
      expect(page.enclaves).toHaveLength(1);
    } while (cursor !== null);
    expect(listedIds).toEqual(all.map(({ id }) => id));
    for (const options of [{ versions: 'latest' as never }, { limit: 0 }, { limit: 1.5 }]) {
      await expect(list(options)).rejects.toMatchObject({ code: 'SUI_VALUE' });
    }
  });

  test('are read, and are stale once the config has a higher version', async () => {
    const { id, publicKey } = await register();
    const enclave = await sui.readEnclave(client, id);
    expect(enclave).toEqual({
      id,
      enclavePackage: PACKAGE,
      application: APPLICATION,
      publicKey,
      configId,
      configVersion: 0n,
      registeredAtMs: expect.any(BigInt),
    });
    expect(Math.abs(Number(enclave.registeredAtMs) - Date.now())).toBeLessThan(60_000);
    expect(sui.isStale(enclave, await sui.readConfig(client, configId), Date.now())).toBe(false);
    await fixture.rotate(configId, capId);
    expect(sui.isStale(enclave, await sui.readConfig(client, configId), Date.now())).toBe(true);
    await expect(sui.readEnclave(client, configId)).rejects.toMatchObject({ code: 'SUI_OBJECT_TYPE' });
  });
});

describe('a signal', () => {
  test('ends each call that a node keeps waiting, with its reason', async () => {
    const config = await sui.readConfig(client, configId);
    const contract = { enclavePackage: PACKAGE, application: APPLICATION };
    const key = new Uint8Array(32);
    for (const method of ['BatchGetObjects', 'ListDynamicFields', 'ListOwnedObjects', 'ListEvents']) {
      fixture.node.faults.set(method, 'hang');
    }
    type Ask = (options: sui.AskOptions) => Promise<unknown>;
    const asks: Ask[] = [
      (options) => sui.readConfig(client, configId, options),
      (options) => sui.readEnclave(client, configId, options),
      (options) => sui.readRegistrar(client, configId, options),
      (options) => sui.findRegistration(client, config, key, options),
      (options) => sui.listEnclaves(client, config, options),
      (options) => sui.listCapabilities(client, fixture.address, contract, options),
      (options) => sui.readEvents(client, { ...contract, ...options }),
      (options) => sui.iterateEvents(client, { ...contract, ...options }).next(),
    ];
    const callCount = fixture.node.calls.length;
    const controller = new AbortController();
    const calls = Promise.allSettled(asks.map((ask) => ask({ signal: controller.signal })));
    await expect.poll(() => fixture.node.calls.length).toBe(callCount + asks.length);
    const reason = new Error('the page was left');
    controller.abort(reason);
    expect(await calls).toEqual(asks.map(() => ({ status: 'rejected', reason })));
    // After the signal was aborted, no call asks the node at all.
    const late = await Promise.allSettled(asks.map((ask) => ask({ signal: controller.signal })));
    expect(late).toEqual(asks.map(() => ({ status: 'rejected', reason })));
    expect(fixture.node.calls).toHaveLength(callCount + asks.length);
  });

  test('that is not aborted changes nothing', async () => {
    const { signal } = new AbortController();
    const config = await sui.readConfig(client, configId);
    expect(await sui.readConfig(client, configId, { signal })).toEqual(config);
    await expect(sui.readConfig(client, NOWHERE, { signal })).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
    });
  });
});

test('listCapabilities returns only the capabilities that the owner has for the application', async () => {
  const second = fixture.publish();
  fixture.publish(NOWHERE);
  const contract = { enclavePackage: PACKAGE, application: APPLICATION };
  expect((await sui.listCapabilities(client, fixture.address, contract)).sort()).toEqual(
    [capId, second].sort(),
  );
  const otherContract = { ...contract, application: `${PACKAGE}::dice::DICE` };
  expect(await sui.listCapabilities(client, fixture.address, otherContract)).toEqual([]);
  expect(fixture.node.ledger.owned(fixture.address).some(({ type }) => type === COIN)).toBe(true);
});
