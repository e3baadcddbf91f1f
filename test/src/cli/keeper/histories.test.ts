/**
 * Runs random histories. After each history, the keepers must have registered the right enclaves, and must
 * never have broken a rule.
 */
import { fromHex, toHex } from '@mysten/sui/utils';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseKeeperFile } from '../../../../src/cli/keeper/file.ts';
import { Keeper } from '../../../../src/cli/keeper/round.ts';
import { createWorld } from '../../../../src/cli/keeper/world.ts';
import { GasBudget } from '../../../../src/cli/rounds/budget.ts';
import { type AttestationDocument, decodeAttestation } from '../../../../src/library/attestation/index.ts';
import { enclaveAddress, isStale } from '../../../../src/library/sui/objects.ts';
import { startServer, type TestServer } from '../../server/support.ts';
import { KeeperFixture, type Operator } from './keeper_fixture.ts';
import { CONFIG_ID, createKey, GAS, getImage, REGISTRARS, Simulation, URLS } from './simulated_world.ts';

const MINUTE = 60_000;
const INTERVAL_MS = MINUTE;
const MAX_PAUSE_MS = 5 * MINUTE;
const SIMULATED_RUNS = 194;
const MODEL_RUNS = 6;
const neverAborted = new AbortController().signal;

const url = fc.constantFrom(...URLS);
const image = fc.constantFrom(0, 1);
const keeper = fc.constantFrom(0, 1);

/** An event in the world of the keepers. */
const worldEvent = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('starts' as const), url, image }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('dies' as const), url }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('answers slowly' as const), url }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lies' as const), url }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('node' as const), isAway: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.constantFrom('unanswered' as const, 'locked' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('registers' as const), image }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('destroys' as const), nth: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('time' as const), minutes: fc.nat(600) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('clock' as const), ahead: fc.integer({ min: -30, max: 30 }) }),
  },
);
type WorldEvent = typeof worldEvent extends fc.Arbitrary<infer Value> ? Value : never;

/** The last event of a history, which is usually none, since keepers can do less after it. */
const ending = fc.oneof(
  { weight: 12, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constant('retires' as const) },
  { weight: 1, arbitrary: keeper.map((revoked) => ({ revoked })) },
);

/**
 * A step of a history: an event, a round of one keeper, a round of both keepers at once with events in
 * between, or a new file for one keeper.
 */
const step = fc.oneof(
  { weight: 4, arbitrary: worldEvent },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('round' as const), keeper }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('both' as const),
      meanwhile: fc.array(worldEvent, { maxLength: 2 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('file' as const), keeper }) },
);

function applyEvent(world: Simulation, event: WorldEvent): void {
  switch (event.kind) {
    case 'starts':
      world.start(event.url, event.image);
      break;
    case 'dies':
      world.processes.delete(event.url);
      break;
    case 'answers slowly':
    case 'lies': {
      const process = world.processes.get(event.url);
      if (process) process.state = event.kind === 'lies' ? 'lying' : 'slow';
      break;
    }
    case 'node':
      world.isNodeAway = event.isAway;
      break;
    case 'fault':
      world.fault = event.fault;
      break;
    case 'registers':
      if (!world.config.isRetired) world.updatePcrs(event.image);
      break;
    case 'destroys': {
      const enclaveId = [...world.enclaves.keys()][event.nth];
      if (enclaveId !== undefined) world.destroyByAdmin(enclaveId);
      break;
    }
    case 'time':
      world.now += event.minutes * MINUTE;
      break;
    case 'clock':
      world.wallAheadMs = event.ahead * 60 * MINUTE;
      break;
  }
}

/** Two keepers of one config, each with its registrar and file. */
class Keepers {
  readonly world = new Simulation();
  readonly #turn: () => Promise<unknown>;
  readonly #gasADay: bigint;
  /** Image in the file of each keeper. */
  readonly files = [0, 0];
  readonly #keepers: Keeper[];

  constructor(gasADay: bigint, turn: () => Promise<unknown>) {
    this.#turn = turn;
    this.#gasADay = gasADay;
    this.#keepers = [0, 1].map((number) => this.#start(number));
  }

  #start(number: number): Keeper {
    const file = this.files[number] ?? 0;
    const settings = {
      image: getImage(file),
      registrarId: REGISTRARS[number] ?? '',
      configId: CONFIG_ID,
      urls: URLS,
      intervalMs: INTERVAL_MS,
      maxPauseMs: MAX_PAUSE_MS,
      random: () => 0.5,
      now: () => this.world.now + this.world.wallAheadMs,
      clock: () => this.world.now,
    };
    const gas = new GasBudget({ GAS_A_DAY: this.#gasADay }, settings.clock, this.world.createRecord(number));
    return new Keeper(
      this.world.createWorld(
        number,
        file,
        (budget, kind) => gas.spend(budget, kind === 'register'),
        this.#turn,
      ),
      settings,
    );
  }

  /** Acts as the operator who puts the config's registers into the file, and restarts the keeper. */
  correctFile(number: number): void {
    this.files[number] = this.world.config.image === getImage(0) ? 0 : 1;
    this.#keepers[number] = this.#start(number);
  }

  async round(number: number): Promise<void> {
    await this.#keepers[number]?.round(neverAborted);
    this.world.now += INTERVAL_MS;
  }

  /** Returns whether a keeper's file allows it to act. */
  mayAct(number: number): boolean {
    return getImage(this.files[number] ?? 0) === this.world.config.image;
  }

  mayRegister(number: number): boolean {
    const { isRetired, registrars } = this.world.config;
    return this.mayAct(number) && !isRetired && registrars.includes(REGISTRARS[number] ?? '');
  }
}

/** Returns the ids of the living enclaves that must be registered. */
function listExpectedIds({ config, processes, destroyed }: Simulation): string[] {
  return [...processes.values()]
    .filter(({ state, image: enclaveImage }) => state !== 'lying' && getImage(enclaveImage) === config.image)
    .map(({ key }) => enclaveAddress(config, config.configVersion, createKey(key)))
    .filter((id) => !destroyed.has(id));
}

const listStaleIds = ({ enclaves, config }: Simulation) =>
  [...enclaves.values()]
    .filter((enclave) => config.isRetired || isStale(enclave, config, 0))
    .map(({ id }) => id);

test('after any history, the living enclaves of the image are registered, and stale enclaves are destroyed', async () => {
  const history = fc.asyncProperty(
    fc.scheduler(),
    fc.array(step, { minLength: 5, maxLength: 25 }),
    ending,
    fc.constantFrom(5n, 1000n),
    async (scheduler, steps, end, transactionsADay) => {
      const gasADay = transactionsADay * GAS;
      const keepers = new Keepers(gasADay, () => scheduler.schedule(Promise.resolve()));
      const { world } = keepers;
      const run = (work: Promise<unknown>) => scheduler.waitFor(work);
      for (const step of steps) {
        if (step.kind === 'round') await run(keepers.round(step.keeper));
        else if (step.kind === 'file') keepers.correctFile(step.keeper);
        else if (step.kind === 'both') {
          const meanwhile = step.meanwhile.map((event) =>
            scheduler.schedule(Promise.resolve()).then(() => applyEvent(world, event)),
          );
          await run(Promise.all([keepers.round(0), keepers.round(1), ...meanwhile]));
        } else applyEvent(world, step);
      }
      if (end === 'retires') world.config = { ...world.config, isRetired: true };
      else if (end !== null) {
        const registrars = REGISTRARS.filter((_, index) => index !== end.revoked);
        world.config = { ...world.config, registrars };
      }
      world.isNodeAway = false;
      world.fault = 'none';

      const old = listStaleIds(world);
      const fresh = [...world.enclaves.keys()].filter((id) => !old.includes(id));
      // The rounds last longer than any pause, and longer than the day whose gas is bounded.
      for (let round = 0; round < 6; round += 1) {
        world.now += 25 * 60 * MINUTE;
        await run(Promise.all([keepers.round(0), keepers.round(1)]));
      }
      const numbers = [0, 1];
      const mayAct = numbers.some((number) => keepers.mayAct(number));
      const mayRegister = numbers.some((number) => keepers.mayRegister(number));
      const expected = new Set([
        ...fresh,
        ...(mayAct ? [] : old),
        ...(mayRegister ? listExpectedIds(world) : []),
      ]);
      expect(new Set(world.enclaves.keys())).toEqual(expected);
      expect(world.violations).toEqual([]);
      for (const number of numbers) expect(world.findMostGasADay(number)).toBeLessThanOrEqual(gasADay);
    },
  );
  await fc.assert(history, { numRuns: SIMULATED_RUNS });
});

/** A step of a history against the model of a node, with servers of emulated enclaves. */
const modelStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('starts' as const), host: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('runs another image' as const), host: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('dies' as const), host: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('all become stale' as const), host: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('node' as const), host: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('both' as const), host: fc.nat(1) }) },
);

test('after any history, the same holds against the model of a node', async () => {
  const history = fc.asyncProperty(fc.array(modelStep, { minLength: 3, maxLength: 7 }), async (steps) => {
    const fixture = await KeeperFixture.start();
    const { nsm, node } = fixture.chain;
    // No server listens at these URLs. A server that starts has another URL.
    const urls = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
    const servers: (TestServer | undefined)[] = [undefined, undefined];
    const operators = [fixture.operator, await fixture.addOperator()];
    const keepers = await Promise.all(operators.map((operator) => createKeeper(fixture, urls, operator)));
    const runBoth = () => Promise.all(keepers.map((keeper) => keeper.round(neverAborted)));
    const replace = async (at: number, server: TestServer | undefined) => {
      await servers[at]?.close();
      servers[at] = server;
      if (server) urls[at] = server.url;
    };
    const events = {
      starts: async (host: number) => await replace(host, await startServer({ nsm })),
      'runs another image': async (host: number) =>
        await replace(host, await startServer({ nsm: fixture.chain.createNsm('other') })),
      dies: (host: number) => replace(host, undefined),
      'all become stale': async () => {
        const spare = await startServer({ nsm });
        await fixture.rotateTo(spare.url);
        await spare.close();
      },
      node: async () => {
        node.faults.set('BatchGetObjects', 'reset');
        await runBoth();
        node.faults.clear();
      },
      both: runBoth,
    };
    for (const { kind: event, host } of steps) await events[event](host);
    const { configVersion } = await fixture.config();
    const oldEnclaves = await fixture.enclaves();
    // If both keepers were about to register the same key, the later one notices in the next round that the
    // other has registered it.
    await runBoth();
    await runBoth();
    const registers = fixture.chain.nsm.pcrsFile();
    const living = servers.filter((server) => server !== undefined);
    const keys: string[] = [];
    for (const { url: enclaveUrl } of living) {
      const document = await fetchDocument(enclaveUrl);
      if (formatPcrs(document) === registers) keys.push(toHex(document.publicKey ?? new Uint8Array()));
    }
    const fresh = oldEnclaves.filter((enclave) => enclave.configVersion === configVersion);
    const expected = new Set([...fresh.map(({ publicKey }) => toHex(publicKey)), ...keys]);
    const newEnclaves = await fixture.enclaves();
    expect(new Set(newEnclaves.map(({ publicKey }) => toHex(publicKey)))).toEqual(expected);
    expect(newEnclaves.every((enclave) => enclave.configVersion === configVersion)).toBe(true);
    for (const at of [0, 1]) await replace(at, undefined);
    fixture.close();
  });
  await fc.assert(history, { numRuns: MODEL_RUNS, endOnFailure: true });
});

async function createKeeper(fixture: KeeperFixture, urls: readonly string[], operator: Operator) {
  const content = { ...fixture.content(urls, operator), root: fixture.chain.file('root.pem') };
  const file = parseKeeperFile(JSON.stringify(content), 'keeper.yaml');
  const env = { SUI_PRIVATE_KEY: operator.key.getSecretKey() };
  const constantSettings = { intervalMs: 0, maxPauseMs: 0, random: () => 0, now: Date.now, clock: () => 0 };
  const world = await createWorld(file, 'keeper.yaml', {}, env, () => {});
  return new Keeper(world, { ...file, ...constantSettings, urls });
}

async function fetchDocument(enclaveUrl: string): Promise<AttestationDocument> {
  const { attestation } = (await (await fetch(`${enclaveUrl}/get_attestation`)).json()) as {
    attestation: string;
  };
  return decodeAttestation(fromHex(attestation));
}

/** Returns the registers as a PCR file has them. */
function formatPcrs({ pcrs }: AttestationDocument): string {
  return [0, 1, 2].map((index) => `${toHex(pcrs.get(index) ?? new Uint8Array())} PCR${index}\n`).join('');
}
