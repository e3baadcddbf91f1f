/** Tests each builder by decoding the bytes that a wallet would sign. */
import { bcs } from '@mysten/sui/bcs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EnclaveError } from '../../../src/errors.ts';
import * as sui from '../../../src/sui/index.ts';
import { u64 } from '../../../src/wire/bcs.ts';
import { ChainFixture, PACKAGE } from '../../scripts/sui/chain_fixture.ts';
import { startWeather } from '../support.ts';

const APPLICATION = sui.applicationType(PACKAGE, 'weather', 'WEATHER');
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

/** The calls of a transaction; each argument as the id of its object, its bytes or the call that returns it. */
async function callsOf(build: (tx: Transaction) => void) {
  const tx = new Transaction();
  build(tx);
  tx.setSender(fixture.address);
  const bytes = await tx.build({ client });
  const { kind, sender } = bcs.TransactionData.parse(bytes).V1;
  expect(sender).toBe(fixture.address);
  const { inputs, commands } = kind.ProgrammableTransaction ?? { inputs: [], commands: [] };
  return commands.map(({ $kind, MoveCall: call }) => {
    if (!call) return $kind;
    const args = call.arguments.map(({ Input: index, Result: result }) => {
      if (index === undefined) return `result ${result}`;
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

describe('the builders for move/enclave', () => {
  test('createEnclaveConfig', async () => {
    const calls = await callsOf((tx) =>
      sui.createEnclaveConfig(tx, { ...common, capId, name: 'Wetter 🌤', image }),
    );
    expect(calls).toEqual([
      {
        call: `${PACKAGE}::enclave::create_enclave_config<${APPLICATION}>`,
        args: [capId, bcs.string().serialize('Wetter 🌤').toBytes(), ...registers(image)],
      },
    ]);
  });

  test('updatePcrs', async () => {
    const other = { ...image, pcr0: '7'.repeat(96) };
    const calls = await callsOf((tx) => sui.updatePcrs(tx, { ...common, configId, capId, image: other }));
    expect(calls).toEqual([
      {
        call: `${PACKAGE}::enclave::update_pcrs<${APPLICATION}>`,
        args: [configId, capId, ...registers(other)],
      },
    ]);
  });

  test('registerEnclave, destroyEnclave: the document goes through the framework first', async () => {
    const { server } = await startWeather({ nsm: fixture.nsm });
    const { attestation: hex } = (await (await server.get('/get_attestation')).json()) as {
      attestation: string;
    };
    const attestation = new Uint8Array(Buffer.from(hex, 'hex'));
    const calls = await callsOf((tx) => sui.registerEnclave(tx, { ...common, configId, capId, attestation }));
    expect(calls).toEqual([
      {
        call: `${FRAMEWORK}::nitro_attestation::load_nitro_attestation<>`,
        args: [byteVector.serialize(attestation).toBytes(), CLOCK],
      },
      { call: `${PACKAGE}::enclave::register_enclave<${APPLICATION}>`, args: [configId, capId, 'result 0'] },
    ]);

    enclaveId = await fixture.register(configId, capId, server.url);
    expect(await callsOf((tx) => sui.destroyEnclave(tx, { ...common, enclaveId, configId, capId }))).toEqual([
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
    const mint = await callsOf((tx) => {
      const nft = sui.updateWeather(tx, { appPackage: PACKAGE, enclaveId, configId, reading });
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

  test('publishPackage transfers the upgrade capability to the owner', async () => {
    const call = { modules: ['oRzrCw=='], dependencies: [FRAMEWORK], owner: fixture.address };
    expect(await callsOf((tx) => sui.publishPackage(tx, call))).toEqual(['Publish', 'TransferObjects']);
  });

  test('updateName and destroyOldEnclave, which the simulated chain does not know', () => {
    const tx = new Transaction();
    sui.updateName(tx, { ...common, configId, capId, name: 'new' });
    sui.destroyOldEnclave(tx, { ...common, enclaveId: configId, configId });
    expect(
      tx.getData().commands.map(({ MoveCall: call }) => [call?.function, call?.arguments.length]),
    ).toEqual([
      ['update_name', 3],
      ['destroy_old_enclave', 2],
    ]);
  });
});

describe('the builders refuse before anything is sent', () => {
  const ID = `0x${'a'.repeat(64)}`;
  const zero = '0'.repeat(96);
  const given = { pcr0: '1'.repeat(96), pcr1: '2'.repeat(96), pcr2: '3'.repeat(96) };
  const call = { ...common, capId: ID, configId: ID, enclaveId: ID, name: 'x', image: given };
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
      (tx) => sui.createEnclaveConfig(tx, { ...call, image: { ...given, pcr0: zero } }),
    ],
    [
      'a register that is too short',
      '96 hexadecimal',
      (tx) => sui.updatePcrs(tx, { ...call, image: { ...given, pcr2: '00' } }),
    ],
    [
      'an empty document',
      '1 to 16380 bytes',
      (tx) => sui.registerEnclave(tx, { ...call, attestation: new Uint8Array() }),
    ],
    [
      'a document larger than a pure argument',
      '1 to 16380',
      (tx) => sui.registerEnclave(tx, { ...call, attestation: new Uint8Array(16_381) }),
    ],
    [
      'a signature of 63 bytes',
      '64 bytes',
      (tx) => sui.updateWeather(tx, { ...weather, reading: { ...reading, signature: new Uint8Array(63) } }),
    ],
    [
      'half a degree',
      'a u64 must be',
      (tx) =>
        sui.updateWeather(tx, { ...weather, reading: { ...reading, data: { ...data, temperature: 1.5 } } }),
    ],
    [
      'a timestamp below zero',
      'a u64 must be',
      (tx) => sui.updateWeather(tx, { ...weather, reading: { ...reading, timestampMs: -1n } }),
    ],
    [
      'a place with a lone surrogate',
      'well-formed',
      (tx) =>
        sui.updateWeather(tx, { ...weather, reading: { ...reading, data: { ...data, location: '\udc00' } } }),
    ],
    [
      'a temperature of 2^64',
      'the temperature is invalid: a u64 must be',
      (tx) =>
        sui.updateWeather(tx, {
          ...weather,
          reading: { ...reading, data: { ...data, temperature: 2n ** 64n } },
        }),
    ],
    [
      'a timestamp of 20 nines',
      'the timestamp is invalid: a u64 must be',
      (tx) => sui.updateWeather(tx, { ...weather, reading: { ...reading, timestampMs: '9'.repeat(20) } }),
    ],
    [
      'a module that is not a name',
      'a name in Move',
      (tx) => sui.updateWeather(tx, { ...weather, moduleName: 'a::b' }),
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
    expect(tx.getData().commands.filter(({ Publish: made }) => made === undefined)).toEqual([]);
  });

  test.each([
    ['0x2', 'weather', 'WEATHER', '0x and 64'],
    [PACKAGE, 'wea-ther', 'WEATHER', 'the module must be a name'],
    [PACKAGE, 'weather', '', 'the one-time witness must be a name'],
  ])('applicationType of %s, %s and %s', (appPackage, moduleName, witness, message) => {
    expect(() => sui.applicationType(appPackage, moduleName, witness)).toThrow(message);
  });
});
