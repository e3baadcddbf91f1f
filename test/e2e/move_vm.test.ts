/** The Move VM as engine of the model of a node: our own packages, held against the model in TypeScript. */
import { bcs } from '@mysten/sui/bcs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { decode, encode } from 'cborg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import { compileForPublishing } from '../../src/commands/sui/bytecode.ts';
import { frameworkOf } from '../../src/commands/sui/move_packages.ts';
import { createRoot } from '../../src/testing/attestation_ca.ts';
import { developmentRegisters, EmulatedNsm } from '../../src/testing/emulated_nsm.ts';
import type { Argument, Command } from '../../src/testing/sui/commands.ts';
import type { Engine, Executed } from '../../src/testing/sui/engine.ts';
import { Changes, Ledger, type LedgerObject } from '../../src/testing/sui/ledger.ts';
import { model } from '../../src/testing/sui/model.ts';
import { Enclave } from '../../src/testing/sui/structs.ts';
import { MoveVm } from '../../src/testing/sui/vm/vm.ts';

const ADMIN = `0x${'ad'.repeat(32)}`;
const NOW = Date.now();
/** SEQUENCES sets another number, SEED other ones. */
const SEQUENCES = Number(process.env['SEQUENCES'] ?? 20);
const SEED = Number(process.env['SEED'] ?? 1);

type Input = Uint8Array | LedgerObject | undefined;

const vector = (value: Uint8Array) => bcs.byteVector().serialize(value).toBytes();
const text = (value: string) => bcs.string().serialize(value).toBytes();
const u64 = (value: number | bigint) => bcs.u64().serialize(value).toBytes();
const address = (value: string) => bcs.Address.serialize(value).toBytes();

const vm = new MoveVm();
const ledger = new Ledger();
const root = createRoot(new Date(NOW));
let packageId: string;
let modules: Uint8Array[];

beforeAll(async () => {
  const compiled = await compileForPublishing('weather', frameworkOf({}), 'devnet', { again: true });
  modules = compiled.modules.map((module) => Buffer.from(module, 'base64'));
});
afterAll(() => vm.close());

/** Builds a transaction. */
class Builder {
  readonly inputs: Input[] = [];
  readonly commands: Command[] = [];
  /** Ids of objects that it used up. */
  readonly gone = new Set<string>();

  input(value: Input): Argument {
    const at = value === undefined || !('id' in value) ? -1 : this.inputs.indexOf(value);
    if (at >= 0) return { input: at };
    this.inputs.push(value);
    return { input: this.inputs.length - 1 };
  }

  command(command: Command): Argument {
    this.commands.push(command);
    return { result: this.commands.length - 1, nested: 0 };
  }

  call(name: string, ...args: (Argument | Input)[]): Argument {
    const [module = '', fn = ''] = name.split('::');
    const typeArguments = module === 'enclave' ? [`${packageId}::weather::WEATHER`] : [];
    const id = module === 'nitro_attestation' ? '0x2' : packageId;
    const given = args.map((arg) => (isArgument(arg) ? arg : this.input(arg)));
    return this.command({
      kind: 'call',
      call: { package: id, module, function: fn, typeArguments },
      args: given,
    });
  }
}

function isArgument(value: Argument | Input): value is Argument {
  return value !== undefined && ('input' in value || 'result' in value);
}

/** Executes over the ledger as it is. */
async function run(engine: Engine, { inputs, commands }: Builder, nowMs = NOW) {
  const changes = new Changes(ledger, `transaction ${ledger.clock}`);
  const context = { changes, sender: ADMIN, nowMs, epoch: 1n, root: root.certificate, gasCoin: undefined };
  const executed = await engine({
    ...context,
    ...{ inputs, commands, isSimulated: false, packages: ledger.packages },
  });
  return { ...executed, changes };
}

/** What both engines must agree on. */
function outcomeOf({ status, changes }: Executed & { changes: Changes }) {
  if (!status.success) {
    const { description, command, kind, errorDetails } = status.error ?? {};
    const abort = errorDetails?.oneofKind === 'abort' ? errorDetails.abort : undefined;
    const { abortCode, location, cleverError } = abort ?? {};
    return { description, command, kind, abortCode, location, constant: cleverError?.constantName };
  }
  // A write that changes nothing is a new version only.
  const isChanged = ({ id, content }: LedgerObject) =>
    !Buffer.from(ledger.objects.get(id)?.content ?? []).equals(content);
  const written = [...changes.written.values()].filter(
    (object) => !changes.deleted.has(object.id) && isChanged(object),
  );
  const objects = written.map((object) => ({
    ...object,
    content: Buffer.from(object.content).toString('hex'),
  }));
  return {
    objects: Object.fromEntries(objects.map((object) => [object.id, object])),
    deleted: [...changes.deleted].sort(),
  };
}

/** Runs a transaction in both, and commits it. */
async function agree(transaction: Builder, nowMs = NOW) {
  const expected = await run(model, transaction, nowMs);
  const found = await run(vm.execute, transaction, nowMs);
  expect(outcomeOf(found)).toEqual(outcomeOf(expected));
  if (found.status.success) {
    ledger.commit(`transaction ${ledger.clock}`, found.changes);
    if (found.published) ledger.packages.set(found.published.id, found.published.original);
  }
  return found;
}

const objects = (struct: string) =>
  [...ledger.objects.values()].filter(({ type }) => type.includes(`::${struct}<`));
const only = (struct: string) => {
  const [object] = objects(struct);
  if (object === undefined) throw new Error(`the ledger has no ${struct}`);
  return object;
};

test('publishing gives the capabilities, and an event', async () => {
  const publishing = new Builder();
  const cap = publishing.command({ kind: 'publish', modules });
  publishing.command({ kind: 'transfer', objects: [cap], to: publishing.input(address(ADMIN)) });
  const { published, events } = await agree(publishing);
  packageId = published?.id ?? '';
  expect(events).toMatchObject([
    { type: expect.stringContaining('::enclave::EnclaveCapCreated<'), command: 0 },
  ]);
}, 60_000);

test('bytecode that no package of move/ compiles to is not published', async () => {
  // The text of an error is in the bytecode.
  const changed = modules.map((module) => {
    const copy = Buffer.from(module);
    const at = copy.indexOf('The config is retired');
    return at < 0 ? copy : Buffer.from(copy.fill('t', at, at + 1));
  });
  expect(changed).not.toEqual(modules);
  const publishing = new Builder();
  publishing.command({ kind: 'publish', modules: changed });
  await expect(run(vm.execute, publishing)).rejects.toMatchObject({ status: 'UNIMPLEMENTED' });
  const one = new Builder();
  one.command({ kind: 'publish', modules: modules.slice(1) });
  await expect(run(vm.execute, one)).rejects.toMatchObject({ status: 'UNIMPLEMENTED' });
});

describe('random sequences of calls', () => {
  const REGISTERS = { weather: developmentRegisters('weather'), salt: developmentRegisters('salt') };
  const keys = [1, 2, 3, 4].map((byte) => Ed25519Keypair.fromSecretKey(new Uint8Array(32).fill(byte)));
  const [key = new Ed25519Keypair()] = keys;

  let state = SEED;
  const below = (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const oneOf = <T>(...values: readonly T[]) => values[below(values.length)] as T;
  /** Mostly the first. */
  const mostly = <T>(first: T, ...others: readonly T[]) => (below(12) > 0 ? first : oneOf(...others));

  const documents = new Map<string, Uint8Array>();
  async function document(): Promise<Uint8Array> {
    const [image, index] = [mostly('weather', 'salt'), below(keys.length)] as const;
    const made = documents.get(image + index) ?? (await attest(image, keys[index] ?? key));
    documents.set(image + index, made);
    return vector(mostly(made, made.subarray(1)));
  }

  async function attest(image: 'weather' | 'salt', signer: Ed25519Keypair): Promise<Uint8Array> {
    const nsm = new EmulatedNsm(() => NOW, root, REGISTERS[image]);
    const public_key = mostly(signer.getPublicKey().toRawBytes(), new Uint8Array(31));
    const answer = decode(await nsm.transact(encode({ Attestation: { public_key } })));
    return answer.Attestation.document;
  }

  function registers() {
    const given = mostly(REGISTERS.weather, REGISTERS.salt);
    const wrong = oneOf([0, 47], [0, 0], [2, 49], [0, 48]);
    return given.map((register, index) => {
      const [at = 0, length = 0] = below(24) === 0 ? wrong : [-1];
      return vector(index === at ? new Uint8Array(length) : register);
    });
  }

  function source(tx: Builder): Argument {
    if (below(2) === 0) return tx.call('source::none');
    const url = mostly('https://git.example/weather', '', 'ü', 'u'.repeat(201));
    const folder = mostly('', 'f'.repeat(101));
    return tx.call(
      'source::some',
      ...[text(url), vector(new Uint8Array(mostly(20, 21))), text(folder), text(mostly('0.1.0', ''))],
      vector(new Uint8Array(mostly(32, 31))),
    );
  }

  const cap = () => only('EnclaveCap');
  const config = () => oneOf(...objects('EnclaveConfig'));
  const gone = (tx: Builder, struct: string) => {
    const left = objects(struct).filter(({ id }) => !tx.gone.has(id));
    const object = left.length === 0 ? undefined : oneOf(...left);
    if (object) tx.gone.add(object.id);
    return object;
  };

  async function reading(age: number) {
    const [location, temperature, timestamp_ms] = ['Zürich', BigInt(below(40)), BigInt(NOW - age)];
    const payload = { location, temperature };
    const message = WeatherResponse.message.serialize({ intent: 0, timestamp_ms, payload }).toBytes();
    const signature = await mostly(key, ...keys).sign(message);
    return [text(location), u64(mostly(temperature, 99n)), u64(timestamp_ms), vector(signature)];
  }

  const CALLS: readonly ((tx: Builder) => Promise<unknown> | unknown)[] = [
    (tx) => tx.call('enclave::create_enclave_config', cap(), text('Wetter 🌤'), ...registers()),
    (tx) => {
      const made = tx.call('enclave::new_enclave_config', cap(), text('x'), ...registers(), source(tx));
      return tx.call('enclave::share_config', made);
    },
    (tx) => tx.call('enclave::update_pcrs', config(), cap(), ...registers()),
    (tx) => tx.call('enclave::update_image', config(), cap(), ...registers(), source(tx)),
    (tx) => {
      const until = NOW + mostly(1000, 0, 86_400_001);
      return tx.call(
        'enclave::begin_overlap',
        ...[config(), cap(), ...registers(), source(tx), u64(until), undefined],
      );
    },
    (tx) => tx.call('enclave::end_overlap', config(), cap()),
    (tx) => tx.call('enclave::update_name', config(), cap(), text(oneOf('a', 'b'))),
    (tx) => {
      const age = bcs
        .option(bcs.u64())
        .serialize(oneOf(null, 0n, 5n, 3_600_000n))
        .toBytes();
      return tx.call('enclave::update_max_key_age', config(), cap(), age);
    },
    (tx) => below(10) === 0 && tx.call('enclave::retire', config(), cap()),
    (tx) => tx.call('enclave::migrate', config(), cap()),
    (tx) => {
      const made = tx.call('enclave::new_registrar_cap', config(), cap());
      return tx.command({ kind: 'transfer', objects: [made], to: tx.input(address(ADMIN)) });
    },
    (tx) => {
      const [some] = objects('RegistrarCap');
      return tx.call('enclave::revoke_registrar_cap', config(), cap(), address(some?.id ?? ADMIN));
    },
    (tx) => {
      const registrar = gone(tx, 'RegistrarCap');
      return registrar && tx.call('enclave::destroy_registrar_cap', registrar, config());
    },
    ...Array.from({ length: 3 }, () => async (tx: Builder) => {
      const attested = tx.call('nitro_attestation::load_nitro_attestation', await document(), undefined);
      return tx.call('enclave::register_enclave', config(), cap(), attested);
    }),
    async (tx) => {
      const attested = tx.call('nitro_attestation::load_nitro_attestation', await document(), undefined);
      return tx.call('enclave::share_enclave', tx.call('enclave::new_enclave', config(), cap(), attested));
    },
    async (tx) => {
      const [registrar] = objects('RegistrarCap').filter(({ id }) => !tx.gone.has(id));
      if (registrar === undefined) return;
      const attested = tx.call('nitro_attestation::load_nitro_attestation', await document(), undefined);
      tx.call('enclave::register_enclave_as_registrar', config(), registrar, attested);
    },
    async (tx) => {
      const rotated = config();
      const rotation = tx.call('enclave::begin_rotation', rotated, cap(), ...registers(), source(tx));
      const attested = tx.call('nitro_attestation::load_nitro_attestation', await document(), undefined);
      tx.call('enclave::finish_rotation', rotation, mostly(rotated, config()), cap(), attested);
    },
    (tx) => {
      const enclave = gone(tx, 'Enclave');
      return enclave && tx.call('enclave::destroy_enclave', enclave, config(), cap());
    },
    (tx) => {
      const enclave = gone(tx, 'Enclave');
      return enclave && tx.call('enclave::destroy_old_enclave', enclave, config(), undefined);
    },
    ...Array.from({ length: 3 }, () => async (tx: Builder) => {
      const [enclave] = objects('Enclave').filter(({ id }) => !tx.gone.has(id));
      if (enclave === undefined) return;
      const { config_id } = Enclave.parse(enclave.content);
      const own = ledger.objects.get(config_id) ?? config();
      const given = await reading(mostly(0, 5_400_001, -60_001));
      const nft = tx.call('weather::update_weather', ...given, enclave, mostly(own, config()), undefined);
      tx.command({ kind: 'transfer', objects: [nft], to: tx.input(address(ADMIN)) });
    }),
  ];

  test(
    `${SEQUENCES} of them do in the VM what they do in the model`,
    async () => {
      const first = new Builder();
      first.call('enclave::create_enclave_config', cap(), text('Wetter'), ...REGISTERS.weather.map(vector));
      await agree(first);
      let succeeded = 0;
      for (let sequence = 0; sequence < SEQUENCES; sequence += 1) {
        const tx = new Builder();
        const length = 1 + below(3);
        while (tx.commands.length < length) await oneOf(...CALLS)(tx);
        const { status } = await agree(tx, NOW + 10 * sequence);
        if (status.success) succeeded += 1;
      }
      // Neither only refusals nor none.
      expect(succeeded).toBeGreaterThan(SEQUENCES / 5);
      expect(succeeded).toBeLessThan(SEQUENCES);
    },
    SEQUENCES * 20_000,
  );
});
