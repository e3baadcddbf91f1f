/** The model of the contracts, held against the Move code itself. */

import { bcs } from '@mysten/sui/bcs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { beforeAll, describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import { compileForPublishing } from '../../src/commands/sui/bytecode.ts';
import { frameworkOf } from '../../src/commands/sui/move_packages.ts';
import { Document, type ExecutionContext, MoveAbort } from '../../src/testing/sui/call.ts';
import { publish } from '../../src/testing/sui/contract.ts';
import { Changes, Ledger, type LedgerObject } from '../../src/testing/sui/ledger.ts';
import { Config } from '../../src/testing/sui/structs.ts';
import { MoveVm } from '../../src/testing/sui/vm/vm.ts';

const ADMIN = `0x${'ad'.repeat(32)}`;
const NOW = 1_800_000_000_000;
const PCR = new Uint8Array(48).fill(7);
const OTHER = new Uint8Array(48).fill(8);
const IMAGE = new Map([0, 1, 2].map((index) => [index, PCR] as const));

const vm = new MoveVm();
const ledger = new Ledger();
const key = new Ed25519Keypair();
const pk = key.getPublicKey().toRawBytes();
let packageId: string;
let cap: LedgerObject;
let transactions = 0;

/** A transaction that has no effect until `commit`. */
function transaction() {
  transactions += 1;
  const changes = new Changes(ledger, `transaction ${transactions}`);
  const context: ExecutionContext = {
    changes,
    sender: ADMIN,
    nowMs: NOW,
    root: new Uint8Array(),
    original: (id) => id,
  };
  const call = (name: string, ...args: unknown[]) => {
    const [module = '', fn = ''] = name.split('::');
    const typeArguments = module !== 'enclave' ? [] : [`${packageId}::weather::WEATHER`];
    return vm.run(context, { package: packageId, module, function: fn, typeArguments, args });
  };
  return { changes, context, call, commit: () => ledger.commit('', changes) };
}

const vector = (value: Uint8Array) => bcs.byteVector().serialize(value).toBytes();
const text = (value: string) => bcs.string().serialize(value).toBytes();
const u64 = (value: number | bigint) => bcs.u64().serialize(value).toBytes();
const registers = (pcr: Uint8Array) => [vector(pcr), vector(pcr), vector(pcr)];
const document = (pcrs = IMAGE) => new Document(pcrs, pk, NOW - 1000);
const config = () => found('EnclaveConfig');
const enclave = () => found('Enclave');

function found(struct: string): LedgerObject {
  const [object] = [...ledger.objects.values()].filter(({ type }) => type.includes(`::${struct}<`));
  if (object === undefined) throw new Error(`the ledger has no ${struct}`);
  return object;
}

async function reading(temperature: bigint, age = 0) {
  const [location, timestamp_ms] = ['Zürich', BigInt(NOW - age)];
  const payload = { location, temperature };
  const message = WeatherResponse.message.serialize({ intent: 0, timestamp_ms, payload }).toBytes();
  return [text(location), u64(temperature), u64(timestamp_ms), vector(await key.sign(message))];
}

beforeAll(async () => {
  const { modules } = await compileForPublishing('weather', frameworkOf({}), 'devnet', { again: true });
  const { context, commit } = transaction();
  ({ packageId } = publish(context));
  vm.publish(
    packageId,
    packageId,
    modules.map((module) => Buffer.from(module, 'base64')),
  );
  commit();
  cap = found('EnclaveCap');
});

test('packages that the model does not know are not published', () => {
  expect(() => vm.publish('0x1', '0x1', [])).toThrow(expect.objectContaining({ status: 'UNIMPLEMENTED' }));
});

describe('the Move code does what the model does', () => {
  test('from a config to a registered key, and its reading', async () => {
    const creating = transaction();
    await creating.call('enclave::create_enclave_config', cap, text('Wetter 🌤'), ...registers(PCR));
    creating.commit();
    const registering = transaction();
    await registering.call('enclave::register_enclave', config(), cap, document());
    registering.commit();
    const [nft] = await transaction().call(
      'weather::update_weather',
      ...(await reading(4n)),
      enclave(),
      config(),
    );
    expect(nft).toMatchObject({ type: `${packageId}::weather::WeatherNFT` });
    expect(vm.runs).toBe(3);
  });

  test.each([
    [
      'a key that is registered',
      'EAlreadyRegistered',
      () => transaction().call('enclave::register_enclave', config(), cap, document()),
    ],
    [
      'an old reading',
      'ETooOld',
      async () =>
        transaction().call('weather::update_weather', ...(await reading(4n, 5_400_001)), enclave(), config()),
    ],
    [
      'a reading that was signed otherwise',
      'EInvalidSignature',
      async () => {
        const [place, , time, signature] = await reading(4n);
        return transaction().call(
          'weather::update_weather',
          place,
          u64(5),
          time,
          signature,
          enclave(),
          config(),
        );
      },
    ],
  ])('%s aborts in both, by the same name', async (_, constant, call) => {
    const error = await call().then(
      () => undefined,
      (value: unknown) => value,
    );
    if (!(error instanceof MoveAbort)) throw error;
    expect(error).toMatchObject({ constant });
  });

  test('a rotation in two calls, of which the second sees the first', async () => {
    const { changes, call } = transaction();
    const [none] = await call('source::none');
    const [rotation] = await call('enclave::begin_rotation', config(), cap, ...registers(OTHER), none);
    const rotated = changes.get(config().id);
    const image = new Map([0, 1, 2].map((index) => [index, OTHER] as const));
    await call('enclave::finish_rotation', rotation, rotated, cap, document(image));
    expect(Config.parse(rotated?.content ?? new Uint8Array()).config_version).toBe('1');
  });

  test('a source, its bounds, and a config that has one', async () => {
    const { changes, call } = transaction();
    const fields = [
      text('https://git.example/weather'),
      vector(new Uint8Array(20).fill(1)),
      text(''),
      text('0.1.0'),
      vector(new Uint8Array(32).fill(2)),
    ];
    const refused: [number, Uint8Array, string][] = [
      [0, text('ü'), 'ESourceUrl'],
      [1, vector(new Uint8Array(21)), 'ECommitLength'],
      [2, text('f'.repeat(101)), 'EFolder'],
      [3, text(''), 'EFrameworkVersion'],
      [4, vector(new Uint8Array(31)), 'EMeasurementsLength'],
    ];
    for (const [index, value, constant] of refused) {
      const given = fields.map((field, at) => (at === index ? value : field));
      await expect(call('source::some', ...given)).rejects.toMatchObject({ constant });
    }
    const [source] = await call('source::some', ...fields);
    await call('enclave::update_image', config(), cap, ...registers(OTHER), source);
    const updated = changes.get(config().id);
    expect(Config.parse(updated?.content ?? new Uint8Array()).source?.framework_version).toBe('0.1.0');
    // The config with a source is an argument too.
    await call('enclave::update_pcrs', updated, cap, ...registers(OTHER));
    const [made] = await call('enclave::new_enclave_config', cap, text('x'), ...registers(PCR), source);
    expect(made).toMatchObject({ type: expect.stringContaining('::EnclaveConfig<') });
  });

  test('a config of an older version of the package, and its migration', async () => {
    const { changes, call } = transaction();
    const now = () => changes.get(config().id);
    await expect(call('enclave::migrate', now(), cap)).rejects.toMatchObject({ constant: 'ENotOlder' });
    const older = Config.serialize({ ...Config.parse(config().content), package_version: 0 }).toBytes();
    changes.write({ ...config(), content: older });
    const refused = { constant: 'EWrongPackageVersion' };
    await expect(call('enclave::retire', now(), cap)).rejects.toMatchObject(refused);
    await expect(call('enclave::destroy_old_enclave', enclave(), now(), undefined)).rejects.toMatchObject(
      refused,
    );
    const submit = async () => call('weather::update_weather', ...(await reading(4n)), enclave(), now());
    await expect(submit()).rejects.toMatchObject(refused);
    await call('enclave::migrate', now(), cap);
    await submit();
  });

  test('an overlap, in which the enclave is not stale, and its end', async () => {
    const { changes, call } = transaction();
    const now = () => changes.get(config().id);
    const [none] = await call('source::none');
    const begin = (untilMs: number) =>
      call('enclave::begin_overlap', now(), cap, ...registers(OTHER), none, u64(untilMs), undefined);
    const day = 86_400_000;
    for (const refused of [NOW, NOW + day + 1])
      await expect(begin(refused)).rejects.toMatchObject({ constant: 'EInvalidOverlap' });
    await begin(NOW + 1);
    await expect(begin(NOW + 2)).rejects.toMatchObject({ constant: 'EOverlapping' });
    await call('weather::update_weather', ...(await reading(4n)), enclave(), now());
    await expect(call('enclave::destroy_old_enclave', enclave(), now(), undefined)).rejects.toMatchObject({
      constant: 'ENotStale',
    });
    await call('enclave::end_overlap', now(), cap);
    await expect(call('enclave::end_overlap', now(), cap)).rejects.toMatchObject({ constant: 'ENoOverlap' });
    await expect(
      call('weather::update_weather', ...(await reading(4n)), enclave(), now()),
    ).rejects.toMatchObject({ constant: 'EInvalidConfigVersion' });
  });

  test('a transaction is refused if the model gives another result', async () => {
    const { changes, call } = transaction();
    // As if the model forgot what the call does.
    changes.write = ({ id }) => id;
    await expect(call('enclave::retire', config(), cap)).rejects.toMatchObject({
      status: 'INTERNAL',
      message: expect.stringMatching(/^the Move code of enclave::retire does not do what the model does/),
    });
  });

  test('a registrar, a maximum key age, and retirement', async () => {
    const { changes, call } = transaction();
    const [registrar] = await call('enclave::new_registrar_cap', config(), cap);
    const now = () => changes.get(config().id);
    // The others keep their order when the first is revoked.
    for (let others = 0; others < 2; others++) await call('enclave::new_registrar_cap', now(), cap);
    await call('enclave::update_max_key_age', now(), cap, bcs.option(bcs.u64()).serialize(5n).toBytes());
    await call(
      'enclave::revoke_registrar_cap',
      now(),
      cap,
      bcs.Address.serialize((registrar as LedgerObject).id).toBytes(),
    );
    await call('enclave::retire', now(), cap);
    await call('enclave::destroy_old_enclave', enclave(), now(), undefined);
    expect(vm.runs).toBe(42);
  });
});
