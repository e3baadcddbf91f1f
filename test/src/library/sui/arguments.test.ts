/**
 * Tests that the builders accept objects in every form of `@mysten/sui`. The transactions are built offline,
 * so each form must be complete.
 */
import { Inputs, Transaction, type TransactionArgument } from '@mysten/sui/transactions';
import { describe, expect, test } from 'vitest';
import { updateTemperature, updateWeather } from '../../../../src/apps/weather/calls.ts';
import * as sui from '../../../../src/library/sui/index.ts';

const [PACKAGE, DAO, ADMIN] = ['e', 'd', 'a'].map((digit) => `0x${digit.repeat(64)}`) as [
  string,
  string,
  string,
];
const contract = {
  enclavePackage: PACKAGE,
  application: sui.applicationType(PACKAGE, 'weather', 'WEATHER'),
};
const image = { pcr0: '1'.repeat(96), pcr1: '2'.repeat(96), pcr2: '3'.repeat(96) };
const attestation = new Uint8Array(5000);
const reading = {
  data: { location: 'Zürich', temperature: 1 },
  timestampMs: 1,
  signature: new Uint8Array(64),
};
const weather = { appPackage: PACKAGE, reading };
const tenths = { ...reading, data: { location: 'Oslo', tenths_plus_100000: 99_996 } };

const createId = (name: string) => `0x${Buffer.from(name).toString('hex').padStart(64, '0')}`;
const reference = (objectId: string) =>
  Inputs.SharedObjectRef({ objectId, initialSharedVersion: 7, mutable: true });
const digest = '1'.repeat(32);

type ObjectInputs = Record<string, sui.ObjectInput>;
type Build = (tx: Transaction, ids: never) => unknown;

/** Each builder, with its objects in the order of the Move function. */
const BUILDERS: readonly [string, readonly string[], Build][] = [
  [
    'create_enclave_config',
    ['capId'],
    (tx, ids: { capId: sui.ObjectInput }) =>
      sui.createEnclaveConfig(tx, { ...contract, ...ids, name: 'x', image }),
  ],
  [
    'new_enclave_config',
    ['capId'],
    (tx, ids: { capId: sui.ObjectInput }) =>
      sui.newEnclaveConfig(tx, { ...contract, ...ids, name: 'x', image }),
  ],
  [
    'update_pcrs',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.updatePcrs(tx, { ...contract, ...ids, image }),
  ],
  [
    'begin_overlap',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.beginOverlap(tx, { ...contract, ...ids, image, untilMs: 1 }),
  ],
  ['end_overlap', ['configId', 'capId'], (tx, ids: AdminIds) => sui.endOverlap(tx, { ...contract, ...ids })],
  [
    'update_name',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.updateName(tx, { ...contract, ...ids, name: 'x' }),
  ],
  [
    'update_max_key_age',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.updateMaxKeyAge(tx, { ...contract, ...ids, maxKeyAgeMs: null }),
  ],
  ['migrate', ['configId', 'capId'], (tx, ids: AdminIds) => sui.migrateConfig(tx, { ...contract, ...ids })],
  ['retire', ['configId', 'capId'], (tx, ids: AdminIds) => sui.retireConfig(tx, { ...contract, ...ids })],
  [
    'new_registrar_cap',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.newRegistrarCap(tx, { ...contract, ...ids }),
  ],
  [
    'revoke_registrar_cap',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.revokeRegistrarCap(tx, { ...contract, ...ids, registrarId: ADMIN }),
  ],
  [
    'register_enclave',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.registerEnclave(tx, { ...contract, ...ids, attestation }),
  ],
  [
    'new_enclave',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.newEnclave(tx, { ...contract, ...ids, attestation }),
  ],
  [
    'begin_rotation',
    ['configId', 'capId'],
    (tx, ids: AdminIds) => sui.beginRotation(tx, { ...contract, ...ids, image }),
  ],
  [
    'register_enclave_as_registrar',
    ['configId', 'registrarId'],
    (tx, ids: RegistrarIds) => sui.registerEnclaveAsRegistrar(tx, { ...contract, ...ids, attestation }),
  ],
  [
    'destroy_registrar_cap',
    ['registrarId', 'configId'],
    (tx, ids: RegistrarIds) => sui.destroyRegistrarCap(tx, { ...contract, ...ids }),
  ],
  [
    'destroy_enclave',
    ['enclaveId', 'configId', 'capId'],
    (tx, ids: AdminIds & EnclaveIds) => sui.destroyEnclave(tx, { ...contract, ...ids }),
  ],
  [
    'destroy_old_enclave',
    ['enclaveId', 'configId'],
    (tx, ids: EnclaveIds) => sui.destroyOldEnclave(tx, { ...contract, ...ids }),
  ],
  [
    'new_cap_from_publisher',
    ['publisherId'],
    (tx, ids: { publisherId: sui.ObjectInput }) => sui.newCapFromPublisher(tx, { ...contract, ...ids }),
  ],
  [
    'update_weather',
    ['enclaveId', 'configId'],
    (tx, ids: EnclaveIds) => updateWeather(tx, { ...weather, ...ids }),
  ],
  [
    'update_temperature',
    ['enclaveId', 'configId'],
    (tx, ids: EnclaveIds) => updateTemperature(tx, { ...weather, ...ids, reading: tenths }),
  ],
];
interface AdminIds {
  configId: sui.ObjectInput;
  capId: sui.ObjectInput;
}
interface RegistrarIds {
  configId: sui.ObjectInput;
  registrarId: sui.ObjectInput;
}
interface EnclaveIds {
  configId: sui.ObjectInput;
  enclaveId: sui.ObjectInput;
}

/** The forms of an object that need no node. */
const FORMS: readonly [string, (tx: Transaction, id: string) => sui.ObjectInput][] = [
  ['references', (_, id) => reference(id)],
  ['inputs of the transaction', (tx, id) => tx.object(reference(id))],
  ['functions of the transaction', (_, id) => (tx: Transaction) => tx.object(reference(id))],
];

async function buildOffline(tx: Transaction) {
  tx.setSender(ADMIN);
  tx.setGasPayment([{ objectId: ADMIN, version: '1', digest }]);
  tx.setGasPrice(1000);
  tx.setGasBudget(10_000_000);
  const { inputs, commands } = Transaction.from(await tx.build()).getData();
  return { inputs, calls: commands.flatMap(({ MoveCall: call }) => call ?? []) };
}

describe.each(FORMS)('a builder that gets %s, offline,', (_, form) => {
  test.each(BUILDERS)(
    'passes them in the order of the Move function: %s gets %s',
    async (name, objects, build) => {
      const tx = new Transaction();
      const objectIds: ObjectInputs = Object.fromEntries(
        objects.map((object) => [object, form(tx, createId(object))]),
      );
      build(tx, objectIds as never);
      const { inputs, calls } = await buildOffline(tx);
      const call = calls.find((candidate) => candidate.function === name);
      const ids = (call?.arguments ?? []).flatMap((argument) => {
        const shared = 'Input' in argument ? inputs[argument.Input]?.Object?.SharedObject : undefined;
        return shared?.initialSharedVersion === '7' ? [shared.objectId] : [];
      });
      expect(ids).toEqual(objects.map(createId));
    },
  );
});

test("one transaction borrows a capability from a DAO's object, uses it and returns it", async () => {
  const tx = new Transaction();
  const vault = tx.object(reference(createId('vault')));
  const [cap, promise] = tx.moveCall({ target: `${DAO}::vault::borrow`, arguments: [vault] }) as unknown as [
    TransactionArgument,
    TransactionArgument,
  ];
  sui.updatePcrs(tx, {
    ...contract,
    configId: reference(createId('config')),
    capId: cap as sui.ObjectInput,
    image,
  });
  tx.moveCall({ target: `${DAO}::vault::put_back`, arguments: [vault, cap, promise] });
  const { calls } = await buildOffline(tx);
  expect(calls.map((call) => call.function)).toEqual(['borrow', 'update_pcrs', 'put_back']);
  expect(calls[1]?.arguments[1]).toMatchObject({ NestedResult: [0, 0] });
  expect(calls[2]?.arguments.slice(1)).toMatchObject([{ NestedResult: [0, 0] }, { NestedResult: [0, 1] }]);
});

test('an owned capability is passed with its version and digest', async () => {
  const tx = new Transaction();
  const capId = Inputs.ObjectRef({ objectId: createId('cap'), version: '3', digest });
  sui.retireConfig(tx, { ...contract, configId: reference(createId('config')), capId });
  const { inputs } = await buildOffline(tx);
  expect(inputs[1]?.Object?.ImmOrOwnedObject).toEqual({ objectId: createId('cap'), version: '3', digest });
});

describe('a value that is not an object is refused before anything is added:', () => {
  test.each<[string, (tx: Transaction) => unknown]>([
    ['a short id', () => '0x6'],
    ['an id without 0x', () => 'a'.repeat(64)],
    ['an id with letters that are not hexadecimal', () => `0x12zz${'0'.repeat(60)}`],
    ['undefined', () => undefined],
    ['null', () => null],
    ['a number', () => 7],
    ['a plain object', () => ({ id: createId('cap') })],
    ['a pure value of the transaction', (tx) => tx.pure.id(ADMIN)],
    ['a pure input', () => Inputs.Pure(new Uint8Array(32))],
  ])('%s', (_, make) => {
    for (const [name, objects, build] of BUILDERS) {
      const tx = new Transaction();
      const ids = Object.fromEntries(objects.map((object) => [object, make(tx)]));
      const refused = expect.objectContaining({ code: 'SUI_VALUE' });
      expect(() => build(tx, ids as never), name).toThrow(refused);
      expect(tx.getData().commands.filter(({ MoveCall: call }) => call?.package === PACKAGE)).toEqual([]);
    }
  });
});
