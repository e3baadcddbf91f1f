/** Tests each builder by decoding the bytes that a wallet would sign. */
import { bcs } from '@mysten/sui/bcs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { normalizeSuiAddress, toBase64 } from '@mysten/sui/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { updateWeather } from '../../../../src/apps/weather/calls.ts';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { EnclaveError } from '../../../../src/library/errors.ts';
import * as sui from '../../../../src/library/sui/index.ts';
import { u64 } from '../../../../src/library/wire/bcs.ts';
import { ChainFixture, PACKAGE } from '../../cli/sui/chain_fixture.ts';
import { startWeather } from '../../server/support.ts';

const APPLICATION = sui.applicationType(PACKAGE, 'weather', 'WEATHER');
const SOURCE = {
  url: 'https://git.example/weather',
  commit: '0c'.repeat(20),
  folder: 'src/apps/weather',
  frameworkVersion: '0.1.0',
  measurementsSha256: '5e'.repeat(32),
};
const CLOCK = `0x${'6'.padStart(64, '0')}`;
const FRAMEWORK = `0x${'2'.padStart(64, '0')}`;
const byteVector = bcs.byteVector();
const common = { enclavePackage: PACKAGE, application: APPLICATION };

let fixture: ChainFixture;
let client: SuiGrpcClient;
let capId: string;
let configId: string;
let enclaveId: string;
let image: sui.Image;

beforeAll(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  capId = fixture.publish();
  configId = await fixture.config(capId);
  image = sui.parsePcrs(fixture.nsm.pcrsFile());
});
afterAll(() => fixture.close());

/**
 * Returns the calls of a transaction. Each argument is the id of its object, its bytes, or the call that
 * returns it.
 */
async function buildCalls(build: (tx: Transaction) => void) {
  const tx = new Transaction();
  build(tx);
  tx.setSender(fixture.address);
  const bytes = await tx.build({ client });
  const { kind, sender } = bcs.TransactionData.parse(bytes).V1;
  expect(sender).toBe(fixture.address);
  const { inputs, commands } = kind.ProgrammableTransaction ?? { inputs: [], commands: [] };
  return commands.map(({ $kind, MoveCall: call }) => {
    if (!call) return $kind;
    const args = call.arguments.map(({ Input: index, Result: resultIndex }) => {
      if (index === undefined) return `result ${resultIndex}`;
      const { Pure: pure, Object: object } = inputs[index] ?? {};
      if (pure) return new Uint8Array(Buffer.from(pure.bytes, 'base64'));
      return (object?.SharedObject ?? object?.ImmOrOwnedObject)?.objectId;
    });
    const types = call.typeArguments.join();
    return { call: `${call.package}::${call.module}::${call.function}<${types}>`, args };
  });
}

function registers({ pcr0, pcr1, pcr2 }: sui.Image): Uint8Array[] {
  return [pcr0, pcr1, pcr2].map((pcr) => byteVector.serialize(Buffer.from(pcr, 'hex')).toBytes());
}

describe('a transaction of move/enclave', () => {
  test('is built by createEnclaveConfig', async () => {
    const calls = await buildCalls((tx) =>
      sui.createEnclaveConfig(tx, { ...common, capId, name: 'Wetter 🌤', image }),
    );
    expect(calls).toEqual([
      {
        call: `${PACKAGE}::enclave::create_enclave_config<${APPLICATION}>`,
        args: [capId, bcs.string().serialize('Wetter 🌤').toBytes(), ...registers(image)],
      },
    ]);
  });

  test('is built by createEnclaveConfig for an open config, which is shared in the same transaction', async () => {
    const calls = await buildCalls((tx) =>
      sui.createEnclaveConfig(tx, { ...common, capId, name: 'open', image, isOpen: true }),
    );
    expect(calls).toEqual([
      { call: `${PACKAGE}::source::none<>`, args: [] },
      {
        call: `${PACKAGE}::enclave::new_open_enclave_config<${APPLICATION}>`,
        args: [capId, bcs.string().serialize('open').toBytes(), ...registers(image), 'result 0'],
      },
      { call: `${PACKAGE}::enclave::share_config<${APPLICATION}>`, args: ['result 1'] },
    ]);
  });

  test('is built by updatePcrs', async () => {
    const otherImage = { ...image, pcr0: '7'.repeat(96) };
    const calls = await buildCalls((tx) =>
      sui.updatePcrs(tx, { ...common, configId, capId, image: otherImage }),
    );
    expect(calls).toEqual([
      {
        call: `${PACKAGE}::enclave::update_pcrs<${APPLICATION}>`,
        args: [configId, capId, ...registers(otherImage)],
      },
    ]);
  });

  test('is built by registerEnclave, destroyEnclave and updateWeather; the framework verifies the document first', async () => {
    const { server } = await startWeather({ nsm: fixture.nsm });
    const { attestation: hex } = (await (await server.get('/get_attestation')).json()) as {
      attestation: string;
    };
    const attestation = new Uint8Array(Buffer.from(hex, 'hex'));
    const calls = await buildCalls((tx) =>
      sui.registerEnclave(tx, { ...common, configId, capId, attestation }),
    );
    expect(calls).toEqual([
      {
        call: `${FRAMEWORK}::nitro_attestation::load_nitro_attestation<>`,
        args: [byteVector.serialize(attestation).toBytes(), CLOCK],
      },
      { call: `${PACKAGE}::enclave::register_enclave<${APPLICATION}>`, args: [configId, capId, 'result 0'] },
    ]);

    enclaveId = await fixture.register(configId, capId, server.url);
    expect(
      await buildCalls((tx) => sui.destroyEnclave(tx, { ...common, enclaveId, configId, capId })),
    ).toEqual([
      { call: `${PACKAGE}::enclave::destroy_enclave<${APPLICATION}>`, args: [enclaveId, configId, capId] },
    ]);

    const answer = (await (
      await server.post('/process_data', { payload: { location: 'Zürich' } })
    ).json()) as {
      response: { timestamp_ms: number; data: { location: string; temperature: number } };
      signature: string;
    };
    const { timestamp_ms: timestampMs, data } = answer.response;
    const signature = new Uint8Array(Buffer.from(answer.signature, 'hex'));
    const reading = { data, timestampMs, signature };
    const mint = await buildCalls((tx) => {
      const nft = updateWeather(tx, { appPackage: PACKAGE, enclaveId, configId, reading });
      tx.transferObjects([nft], fixture.address);
    });
    expect(mint).toEqual([
      {
        call: `${PACKAGE}::weather::update_weather<>`,
        args: [
          bcs.string().serialize('Zürich').toBytes(),
          u64.serialize(data.temperature).toBytes(),
          u64.serialize(timestampMs).toBytes(),
          byteVector.serialize(signature).toBytes(),
          enclaveId,
          configId,
          CLOCK,
        ],
      },
      'TransferObjects',
    ]);
  });

  const run = async (build: (tx: Transaction) => void) => {
    const chain = new Chain(
      { 'rpc-url': fixture.node.url },
      { SUI_PRIVATE_KEY: fixture.admin.getSecretKey() },
    );
    let ids: readonly { readonly id: string; readonly type: string }[] = [];
    const tx = new Transaction();
    build(tx);
    await chain.submit(tx, {
      title: '',
      fields: {},
      report({ created }) {
        ids = created;
        return {};
      },
    });
    return (struct: string) => ids.find(({ type }) => type.includes(`::enclave::${struct}<`))?.id ?? '';
  };
  const fetchAttestation = async () => {
    const { server } = await startWeather({ nsm: fixture.nsm });
    const answer = await (await server.get('/get_attestation')).json();
    return new Uint8Array(Buffer.from((answer as { attestation: string }).attestation, 'hex'));
  };

  test('creates, registers and shares both objects with newEnclaveConfig and newEnclave', async () => {
    const attestation = await fetchAttestation();
    const build = (tx: Transaction) => {
      const config = sui.newEnclaveConfig(tx, { ...common, capId, name: 'at once', image });
      const enclave = sui.newEnclave(tx, { ...common, configId: config, capId, attestation });
      sui.shareEnclave(tx, { ...common, enclave });
      sui.shareConfig(tx, { ...common, config });
    };
    expect((await buildCalls(build)).map((call) => typeof call === 'object' && call.call)).toEqual([
      `${PACKAGE}::source::none<>`,
      `${PACKAGE}::enclave::new_enclave_config<${APPLICATION}>`,
      `${FRAMEWORK}::nitro_attestation::load_nitro_attestation<>`,
      `${PACKAGE}::enclave::new_enclave<${APPLICATION}>`,
      `${PACKAGE}::enclave::share_enclave<${APPLICATION}>`,
      `${PACKAGE}::enclave::share_config<${APPLICATION}>`,
    ]);
    const created = await run(build);
    const enclave = await sui.readEnclave(client, created('Enclave'));
    expect(enclave).toMatchObject({ configId: created('EnclaveConfig'), configVersion: 0n });
  });

  test('loads every document before newEnclave creates a second enclave', async () => {
    const attestations = [await fetchAttestation(), await fetchAttestation()];
    const calls = await buildCalls((tx) => {
      const documents = attestations.map((attestation) => sui.loadAttestation(tx, attestation));
      const config = sui.newEnclaveConfig(tx, { ...common, capId, name: 'two at once', image });
      for (const attestation of documents) {
        const enclave = sui.newEnclave(tx, { ...common, configId: config, capId, attestation });
        sui.shareEnclave(tx, { ...common, enclave });
      }
      sui.shareConfig(tx, { ...common, config });
    });
    const names = calls.map((call) => typeof call === 'object' && call.call.split('::')[2]?.split('<')[0]);
    const load = 'load_nitro_attestation';
    expect(names.slice(0, 2)).toEqual([load, load]);
    expect(names.slice(2)).not.toContain(load);
    expect(calls.filter((call) => typeof call === 'object' && call.call.includes('::new_enclave<'))).toEqual([
      expect.objectContaining({ args: ['result 3', capId, 'result 0'] }),
      expect.objectContaining({ args: ['result 3', capId, 'result 1'] }),
    ]);
  });

  test('refuses a document that is neither bytes nor the result of loadAttestation', () => {
    const attestation = 'a0' as unknown as Uint8Array;
    for (const register of [sui.registerEnclave, sui.newEnclave]) {
      expect(() => register(new Transaction(), { ...common, configId, capId, attestation })).toThrow(
        'the id of the attestation document',
      );
    }
  });

  test('creates a registrar, registers an enclave as the registrar, and revokes and destroys the registrar', async () => {
    const created = await run((tx) => {
      tx.transferObjects([sui.newRegistrarCap(tx, { ...common, configId, capId })], fixture.address);
    });
    const registrarId = created('RegistrarCap');
    expect((await sui.readConfig(client, configId)).registrars).toEqual([registrarId]);
    expect(await sui.readRegistrar(client, registrarId)).toEqual({ ...common, id: registrarId, configId });
    const attestation = await fetchAttestation();
    const register = (tx: Transaction) =>
      sui.registerEnclaveAsRegistrar(tx, { ...common, configId, registrarId, attestation });
    expect((await buildCalls(register)).at(-1)).toEqual({
      call: `${PACKAGE}::enclave::register_enclave_as_registrar<${APPLICATION}>`,
      args: [configId, registrarId, 'result 0'],
    });
    const revoke = (tx: Transaction) =>
      sui.revokeRegistrarCap(tx, { ...common, configId, capId, registrarId });
    expect(await buildCalls(revoke)).toEqual([
      {
        call: `${PACKAGE}::enclave::revoke_registrar_cap<${APPLICATION}>`,
        args: [configId, capId, bcs.Address.serialize(registrarId).toBytes()],
      },
    ]);
    await run(revoke);
    await expect(buildCalls(register)).rejects.toThrow('ENotRegistrar');
    const destroy = (tx: Transaction) => sui.destroyRegistrarCap(tx, { ...common, configId, registrarId });
    expect(await buildCalls(destroy)).toEqual([
      { call: `${PACKAGE}::enclave::destroy_registrar_cap<${APPLICATION}>`, args: [registrarId, configId] },
    ]);
  });

  test('needs both beginRotation and finishRotation', async () => {
    const attestation = await fetchAttestation();
    const admin = { ...common, configId, capId };
    const calls = await buildCalls((tx) => {
      const document = sui.loadAttestation(tx, attestation);
      const rotation = sui.beginRotation(tx, { ...admin, image });
      sui.finishRotation(tx, { ...admin, rotation, document });
    });
    expect(calls.slice(1)).toEqual([
      { call: `${PACKAGE}::source::none<>`, args: [] },
      {
        call: `${PACKAGE}::enclave::begin_rotation<${APPLICATION}>`,
        args: [configId, capId, ...registers(image), 'result 1'],
      },
      {
        call: `${PACKAGE}::enclave::finish_rotation<${APPLICATION}>`,
        args: ['result 2', configId, capId, 'result 0'],
      },
    ]);
    const half = buildCalls((tx) => sui.beginRotation(tx, { ...admin, image }));
    await expect(half).rejects.toThrow('UnusedValueWithoutDrop');
  });

  test('begins an overlap with beginOverlap, and ends it early with endOverlap', async () => {
    const admin = { ...common, configId: await fixture.config(capId), capId };
    const read = () => sui.readConfig(client, admin.configId);
    const { image: before } = await read();
    const untilMs = Date.now() + 60_000;
    const begin = (tx: Transaction) => sui.beginOverlap(tx, { ...admin, image, untilMs });
    expect(await buildCalls(begin)).toEqual([
      { call: `${PACKAGE}::source::none<>`, args: [] },
      {
        call: `${PACKAGE}::enclave::begin_overlap<${APPLICATION}>`,
        args: [
          admin.configId,
          capId,
          ...registers(image),
          'result 0',
          bcs.u64().serialize(untilMs).toBytes(),
          CLOCK,
        ],
      },
    ]);
    await run(begin);
    const config = await read();
    expect(config).toMatchObject({
      image,
      configVersion: 1n,
      overlap: { image: before, untilMs: BigInt(untilMs) },
    });
    const enclaves = [-1n, 0n, 1n].map((configVersion) => ({ configVersion }) as sui.Enclave);
    const staleAt = (nowMs: number) => enclaves.map((enclave) => sui.isStale(enclave, config, nowMs));
    expect([untilMs - 1, untilMs, untilMs + 1].map(staleAt)).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, false],
    ]);
    expect([untilMs - 1, untilMs].map((nowMs) => sui.acceptedImages(config, nowMs))).toEqual([
      [image, before],
      [image],
    ]);
    await expect(buildCalls(begin)).rejects.toThrow('EOverlapping');
    const end = (tx: Transaction) => sui.endOverlap(tx, admin);
    expect(await buildCalls(end)).toEqual([
      { call: `${PACKAGE}::enclave::end_overlap<${APPLICATION}>`, args: [admin.configId, capId] },
    ]);
    await run(end);
    expect(await read()).toMatchObject({ image, configVersion: 1n, overlap: null });
    await expect(buildCalls(end)).rejects.toThrow('ENoOverlap');
    for (const refused of [Date.now() - 1, Date.now() + 25 * 3_600_000]) {
      const call = buildCalls((tx) => sui.beginOverlap(tx, { ...admin, image, untilMs: refused }));
      await expect(call).rejects.toThrow('EInvalidOverlap');
    }
    await run((tx) => sui.beginOverlap(tx, { ...admin, image, untilMs: Date.now() + 60_000 }));
    await run((tx) => sui.updatePcrs(tx, { ...admin, image: before }));
    expect(await read()).toMatchObject({ image: before, configVersion: 3n, overlap: null });
  });

  test('sets a source together with the registers, and removes it if the next registers have no source', async () => {
    const text = (value: string) => bcs.string().serialize(value).toBytes();
    const digest = (hex: string) => byteVector.serialize(Buffer.from(hex, 'hex')).toBytes();
    const fields = [
      text(SOURCE.url),
      digest(SOURCE.commit),
      text(SOURCE.folder),
      text(SOURCE.frameworkVersion),
      digest(SOURCE.measurementsSha256),
    ];
    const create = (tx: Transaction) =>
      sui.createEnclaveConfig(tx, { ...common, capId, name: 'x', image, source: SOURCE });
    expect(await buildCalls(create)).toEqual([
      { call: `${PACKAGE}::source::some<>`, args: fields },
      {
        call: `${PACKAGE}::enclave::new_enclave_config<${APPLICATION}>`,
        args: [capId, text('x'), ...registers(image), 'result 0'],
      },
      { call: `${PACKAGE}::enclave::share_config<${APPLICATION}>`, args: ['result 1'] },
    ]);
    const admin = { ...common, configId: (await run(create))('EnclaveConfig'), capId };
    const sourceAfter = async (build: (tx: Transaction) => unknown) => {
      await run((tx) => void build(tx));
      return (await sui.readConfig(client, admin.configId)).source;
    };
    expect((await sui.readConfig(client, admin.configId)).source).toEqual(SOURCE);
    expect(await sourceAfter((tx) => sui.updatePcrs(tx, { ...admin, image }))).toBeNull();
    const source = { ...SOURCE, commit: '1d'.repeat(32), folder: '' };
    const update = (tx: Transaction) => sui.updatePcrs(tx, { ...admin, image, source });
    expect((await buildCalls(update)).at(-1)).toEqual({
      call: `${PACKAGE}::enclave::update_image<${APPLICATION}>`,
      args: [admin.configId, capId, ...registers(image), 'result 0'],
    });
    expect(await sourceAfter(update)).toEqual(source);
    const untilMs = Date.now() + 60_000;
    const begin = (options: object) => (tx: Transaction) =>
      sui.beginOverlap(tx, { ...admin, image, untilMs, ...options });
    expect(await sourceAfter(begin({}))).toBeNull();
    await run((tx) => sui.endOverlap(tx, admin));
    expect(await sourceAfter(begin({ source: SOURCE }))).toEqual(SOURCE);
    const attestation = await fetchAttestation();
    const rotated = await sourceAfter((tx) => {
      const document = sui.loadAttestation(tx, attestation);
      sui.finishRotation(tx, {
        ...admin,
        rotation: sui.beginRotation(tx, { ...admin, image, source }),
        document,
      });
    });
    expect(rotated).toEqual(source);
    const { events } = await sui.readEvents(client, { ...common, name: 'PcrsUpdated', order: 'descending' });
    expect(events[0]?.data).toMatchObject({ configId: admin.configId, source });
  });

  test('changes the config with updateName, updateMaxKeyAge and retireConfig', async () => {
    const admin = { ...common, configId: await fixture.config(capId), capId };
    const read = () => sui.readConfig(client, admin.configId);
    await run((tx) => sui.updateName(tx, { ...admin, name: 'other' }));
    await run((tx) => sui.updateMaxKeyAge(tx, { ...admin, maxKeyAgeMs: 86_400_000 }));
    expect(await read()).toMatchObject({ name: 'other', maxKeyAgeMs: 86_400_000n, isRetired: false });
    const enclave = { registeredAtMs: 1000n } as sui.Enclave;
    expect(sui.isKeyTooOld(enclave, await read(), 86_401_000)).toBe(false);
    expect(sui.isKeyTooOld(enclave, await read(), 86_401_001)).toBe(true);
    await run((tx) => sui.updateMaxKeyAge(tx, { ...admin, maxKeyAgeMs: null }));
    expect(await read()).toMatchObject({ maxKeyAgeMs: null });
    expect(sui.isKeyTooOld(enclave, await read(), Number.MAX_SAFE_INTEGER)).toBe(false);
    await run((tx) => sui.retireConfig(tx, admin));
    expect(await read()).toMatchObject({ isRetired: true });
    await expect(run((tx) => sui.updateName(tx, { ...admin, name: 'again' }))).rejects.toMatchObject({
      abort: 'enclave::ERetired',
    });
    await expect(run((tx) => sui.retireConfig(tx, admin))).rejects.toMatchObject({
      abort: 'enclave::ERetired',
    });
  });

  test('makes a package immutable with publishPackage, if the owner is null', async () => {
    const call = {
      modules: fixture.weather.modules.map((module) => toBase64(module)),
      dependencies: [normalizeSuiAddress('0x1'), FRAMEWORK],
      owner: null,
    };
    expect(await buildCalls((tx) => sui.publishPackage(tx, call))).toEqual([
      'Publish',
      { call: `${FRAMEWORK}::package::make_immutable<>`, args: ['result 0'] },
    ]);
  });

  test('transfers the upgrade capability to the owner with publishPackage', async () => {
    const call = {
      modules: fixture.weather.modules.map((module) => toBase64(module)),
      dependencies: [normalizeSuiAddress('0x1'), FRAMEWORK],
      owner: fixture.address,
    };
    expect(await buildCalls((tx) => sui.publishPackage(tx, call))).toEqual(['Publish', 'TransferObjects']);
  });

  test('is built by newCapFromPublisher, upgradePackage and destroyOldEnclave, without a node', () => {
    const tx = new Transaction();
    sui.newCapFromPublisher(tx, { ...common, publisherId: configId });
    sui.upgradePackage(tx, {
      modules: ['oRzrCw=='],
      dependencies: [FRAMEWORK],
      upgradeCapId: capId,
      packageId: PACKAGE,
      digest: new Uint8Array(32),
      policy: 128,
    });
    sui.destroyOldEnclave(tx, { ...common, enclaveId: configId, configId });
    expect(
      tx
        .getData()
        .commands.map(({ $kind, MoveCall: call }) => [call?.function ?? $kind, call?.arguments.length]),
    ).toEqual([
      ['new_cap_from_publisher', 1],
      ['authorize_upgrade', 3],
      ['Upgrade', undefined],
      ['commit_upgrade', 2],
      ['destroy_old_enclave', 3],
    ]);
  });
});

describe('a source is refused before anything is sent', () => {
  test.each<[string, object]>([
    ['no URL', { url: '' }],
    ['a URL of 201 characters', { url: 'u'.repeat(201) }],
    ['a URL beyond ASCII', { url: 'https://git.example/zürich' }],
    ['a commit of 38 digits', { commit: '0c'.repeat(19) }],
    ['a commit in capitals', { commit: '0C'.repeat(20) }],
    ['a folder of 101 characters', { folder: 'f'.repeat(101) }],
    ['a folder with a line feed', { folder: 'apps\n' }],
    ['no version', { frameworkVersion: '' }],
    ['a version of 51 characters', { frameworkVersion: '1'.repeat(51) }],
    ['a digest of 62 digits', { measurementsSha256: '5e'.repeat(31) }],
  ])('if it has %s', (_, fault) => {
    const call = { ...common, capId: PACKAGE, name: 'x', image, source: { ...SOURCE, ...fault } };
    const refused = expect.objectContaining({ code: 'SUI_VALUE' });
    expect(() => sui.createEnclaveConfig(new Transaction(), call)).toThrow(refused);
  });
});

describe('the builders refuse before anything is sent', () => {
  const ID = `0x${'a'.repeat(64)}`;
  const zero = '0'.repeat(96);
  const otherRegisters = { pcr0: '1'.repeat(96), pcr1: '2'.repeat(96), pcr2: '3'.repeat(96) };
  const call = { ...common, capId: ID, configId: ID, enclaveId: ID, name: 'x', image: otherRegisters };
  const data = { location: 'Zürich', temperature: 1 };
  const reading = { data, timestampMs: 1, signature: new Uint8Array(64) };
  const weather = { appPackage: PACKAGE, enclaveId: ID, configId: ID, reading };
  type Make = (tx: Transaction) => unknown;

  test.each<[string, string, Make]>([
    ['a short address', '0x and 64', (tx) => sui.createEnclaveConfig(tx, { ...call, capId: '0x6' })],
    ['an address without 0x', '0x and 64', (tx) => sui.updatePcrs(tx, { ...call, configId: 'a'.repeat(64) })],
    [
      'a registry name as package',
      '0x and 64',
      (tx) => sui.updatePcrs(tx, { ...call, enclavePackage: '@weather/app' }),
    ],
    [
      'a type with parameters',
      'must be a type',
      (tx) => sui.updateName(tx, { ...call, application: `${ID}::a::B<u8>` }),
    ],
    ['an invalid type', 'must be a type', (tx) => sui.updateName(tx, { ...call, application: 'weather' })],
    ['an empty name', 'not blank', (tx) => sui.updateName(tx, { ...call, name: ' ' })],
    ['a name with a lone surrogate', 'well-formed', (tx) => sui.updateName(tx, { ...call, name: '\ud800' })],
    [
      'a register of zeros',
      'debug enclaves',
      (tx) => sui.createEnclaveConfig(tx, { ...call, image: { ...otherRegisters, pcr0: zero } }),
    ],
    [
      'a register that is too short',
      '96 hexadecimal',
      (tx) => sui.updatePcrs(tx, { ...call, image: { ...otherRegisters, pcr2: '00' } }),
    ],
    [
      'a maximum key age of 0 ms',
      'more than 0 ms',
      (tx) => sui.updateMaxKeyAge(tx, { ...call, maxKeyAgeMs: 0 }),
    ],
    [
      'a short id of a registrar',
      'the id of the registrar must be 0x and 64',
      (tx) => sui.revokeRegistrarCap(tx, { ...call, registrarId: '0x6' }),
    ],
    [
      'a digest of 31 bytes',
      'the digest must be a Uint8Array of 32 bytes',
      (tx) =>
        sui.upgradePackage(tx, {
          modules: ['oRzrCw=='],
          dependencies: [],
          upgradeCapId: ID,
          packageId: ID,
          digest: new Uint8Array(31),
          policy: 0,
        }),
    ],
    [
      'an empty document',
      '1 to 16380 bytes',
      (tx) => sui.registerEnclave(tx, { ...call, attestation: new Uint8Array() }),
    ],
    [
      'a document larger than a pure argument may be',
      '1 to 16380',
      (tx) => sui.registerEnclave(tx, { ...call, attestation: new Uint8Array(16_381) }),
    ],
    [
      'a signature of 63 bytes',
      '64 bytes',
      (tx) => updateWeather(tx, { ...weather, reading: { ...reading, signature: new Uint8Array(63) } }),
    ],
    [
      'a fraction of a degree',
      'a u64 must be',
      (tx) => updateWeather(tx, { ...weather, reading: { ...reading, data: { ...data, temperature: 1.5 } } }),
    ],
    [
      'a timestamp below zero',
      'a u64 must be',
      (tx) => updateWeather(tx, { ...weather, reading: { ...reading, timestampMs: -1n } }),
    ],
    [
      'a place with a lone surrogate',
      'well-formed',
      (tx) =>
        updateWeather(tx, { ...weather, reading: { ...reading, data: { ...data, location: '\udc00' } } }),
    ],
    [
      'a temperature of 2^64',
      '"temperature" is invalid: a u64 must be',
      (tx) =>
        updateWeather(tx, {
          ...weather,
          reading: { ...reading, data: { ...data, temperature: 2n ** 64n } },
        }),
    ],
    [
      'a timestamp of 20 nines',
      'the timestamp is invalid: a u64 must be',
      (tx) => updateWeather(tx, { ...weather, reading: { ...reading, timestampMs: '9'.repeat(20) } }),
    ],
    [
      'a module that is not a name',
      'a name in Move',
      (tx) => updateWeather(tx, { ...weather, moduleName: 'a::b' }),
    ],
    [
      'a package without modules',
      'at least one module',
      (tx) => sui.publishPackage(tx, { modules: [], dependencies: [], owner: ID }),
    ],
  ])('%s', (_, message, make) => {
    const tx = new Transaction();
    expect(() => make(tx)).toThrow(expect.objectContaining({ message: expect.stringContaining(message) }));
    expect(() => make(tx)).toThrow(EnclaveError);
    expect(tx.getData().commands.filter(({ Publish: publish }) => publish === undefined)).toEqual([]);
  });

  test.each([
    ['0x2', 'weather', 'WEATHER', '0x and 64'],
    [PACKAGE, 'wea-ther', 'WEATHER', 'the module must be a name'],
    [PACKAGE, 'weather', '', 'the one-time witness must be a name'],
  ])('an application type of %s, %s and %s', (appPackage, moduleName, witness, message) => {
    expect(() => sui.applicationType(appPackage, moduleName, witness)).toThrow(message);
  });
});
