/**
 * Tests what a keeper remembers between rounds: silent enclaves, spent gas, and the time when it first saw a
 * key.
 */
import { describe, expect, test } from 'vitest';
import { type Alert, isAlarm } from '../../../../src/cli/keeper/alerts.ts';
import { Keeper } from '../../../../src/cli/keeper/round.ts';
import type { World } from '../../../../src/cli/keeper/world.ts';
import { GasBudget, GasLimitError, type SigningRecord } from '../../../../src/cli/rounds/budget.ts';
import { pauseAfter } from '../../../../src/cli/rounds/pauses.ts';
import { SuiError } from '../../../../src/library/sui/errors.ts';
import { CONFIG_ID, createEnclave, GAS, getImage, REGISTRARS, Simulation, URLS } from './simulated_world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const [FIRST_URL, SECOND_URL] = URLS;
const neverAborted = new AbortController().signal;

function createKeeper(changes: Partial<World> = {}, gasADay = 1000n * GAS, simulation = new Simulation()) {
  const attestedUrls: string[] = [];
  const clock = () => simulation.now;
  const gas = new GasBudget({ GAS_A_DAY: gasADay }, clock, simulation.createRecord(0));
  const world = simulation.createWorld(0, 0, (budget, kind) => gas.spend(budget, kind === 'register'));
  const recordingWorld: World = {
    ...world,
    attest: async (url) => {
      attestedUrls.push(url);
      return await world.attest(url);
    },
    ...changes,
  };
  const settings = {
    image: getImage(0),
    registrarId: REGISTRARS[0],
    configId: CONFIG_ID,
    urls: [FIRST_URL, SECOND_URL],
    intervalMs: MINUTE,
    maxPauseMs: 5 * MINUTE,
    random: () => 0.5,
    now: () => simulation.now + simulation.wallAheadMs,
    clock,
  };
  const keeper = new Keeper(recordingWorld, settings);
  const round = async (stop = neverAborted) => {
    const report = await keeper.round(stop);
    return { ...report, codes: report.alerts.map(({ code }) => code) };
  };
  return { simulation, attestedUrls, gas, round };
}

describe('an enclave that does not answer', () => {
  test('is asked less often, up to the longest pause, while other enclaves are asked in each round', async () => {
    const { simulation, attestedUrls, round } = createKeeper();
    simulation.start(SECOND_URL, 0);
    const readMinutes: number[] = [];
    for (let minute = 0; minute <= 20; minute += 1) {
      const { codes } = await round();
      expect(codes).toEqual(['ENCLAVE_UNREACHABLE']);
      if (attestedUrls.splice(0).includes(FIRST_URL)) readMinutes.push(minute);
      else expect(attestedUrls).toEqual([]);
      simulation.now += MINUTE;
    }
    expect(readMinutes).toEqual([0, 2, 6, 11, 16]);
  });

  test('is asked at the same times if the wall clock is set back or ahead', async () => {
    for (const hours of [-1, 1]) {
      const { simulation, attestedUrls, round } = createKeeper();
      const readMinutes: number[] = [];
      for (let minute = 0; minute <= 8; minute += 1) {
        await round();
        if (attestedUrls.splice(0).includes(FIRST_URL)) readMinutes.push(minute);
        simulation.now += MINUTE;
        if (minute === 0) simulation.wallAheadMs = hours * HOUR;
      }
      expect(readMinutes).toEqual([0, 2, 6]);
    }
  });

  test('is registered when it answers again, and then asked in each round', async () => {
    const { simulation, attestedUrls, round } = createKeeper();
    simulation.start(SECOND_URL, 0);
    await round();
    simulation.start(FIRST_URL, 0);
    simulation.now += MINUTE;
    expect((await round()).done).toEqual([]);
    simulation.now += MINUTE;
    expect((await round()).done).toEqual([{ kind: 'register', subject: FIRST_URL, result: 'done' }]);
    attestedUrls.splice(0);
    await round();
    expect(attestedUrls).toEqual([FIRST_URL, SECOND_URL]);
  });
});

test('a key that stays unregistered is reported after two hours, until it disappears', async () => {
  const refuse = async () => {
    throw new SuiError('SUI_EXECUTION', 'refused');
  };
  const { simulation, round } = createKeeper({ register: refuse });
  simulation.start(FIRST_URL, 0);
  simulation.start(SECOND_URL, 0);
  expect((await round()).codes).toEqual(['ACTION_FAILED', 'ACTION_FAILED']);
  simulation.now += 2 * HOUR + 1;
  expect((await round()).codes).toEqual(['UNREGISTERED', 'UNREGISTERED', 'ACTION_FAILED', 'ACTION_FAILED']);
  simulation.start(FIRST_URL, 0);
  expect((await round()).codes).toEqual(['UNREGISTERED', 'ACTION_FAILED', 'ACTION_FAILED']);
});

describe('a failed action', () => {
  test.each([
    ['SUI_EQUIVOCATION', 1, true],
    ['SUI_GAS', 1, true],
    ['SUI_NODE_UNREACHABLE', 1, true],
    ['SUI_UNKNOWN_OUTCOME', 1, true],
    ['SUI_OBJECT_CHANGED', 1, true],
    ['SUI_MOVE_ABORT', 2, false],
    ['SUI_NODE_REFUSED', 2, false],
  ] as const)(
    'with %s ends a round after %i attempts, and the next round comes later: %s',
    async (code, attempts, hasFailed) => {
      const fail = async () => {
        throw new SuiError(code, 'simulated');
      };
      const { simulation, round } = createKeeper({ register: fail });
      simulation.start(FIRST_URL, 0);
      simulation.start(SECOND_URL, 0);
      expect(await round()).toMatchObject({ codes: Array(attempts).fill('ACTION_FAILED'), hasFailed });
    },
  );

  test('of an unexpected kind is reported too, and its message is hidden', async () => {
    const fail = () => Promise.reject(new TypeError('hunter2'));
    const message = 'INTERNAL: an internal error';
    const { simulation, round } = createKeeper({ register: fail });
    simulation.start(FIRST_URL, 0);
    simulation.start(SECOND_URL, 0);
    expect((await round()).alerts).toEqual([
      { code: 'ACTION_FAILED', subject: FIRST_URL, message },
      { code: 'ACTION_FAILED', subject: SECOND_URL, message },
    ]);
    expect((await createKeeper({ nodes: [{ name: '', read: fail }] }).round()).alerts).toMatchObject([
      { code: 'CONFIG_UNREADABLE', message },
    ]);
    expect((await createKeeper({ attest: fail }).round()).alerts).toMatchObject([
      { code: 'ENCLAVE_UNTRUSTED', message },
      { code: 'ENCLAVE_UNTRUSTED', message },
    ]);
  });
});

describe('a round that is stopped', () => {
  test('ends while it waits for the node or for enclaves, and reports nothing about them', async () => {
    const forever = new Promise<never>(() => {});
    for (const changes of [{ nodes: [{ name: '', read: () => forever }] }, { attest: () => forever }]) {
      const stop = new AbortController();
      const running = createKeeper(changes).round(stop.signal);
      await new Promise(setImmediate);
      stop.abort();
      expect(await running).toMatchObject({ done: [], codes: [], hasFailed: false });
      // A round that was stopped before its start ends too.
      expect(await createKeeper(changes).round(stop.signal)).toMatchObject({ done: [], codes: [] });
    }
  });

  test('ends after the transaction in flight', async () => {
    const stop = new AbortController();
    const register = async () => {
      stop.abort();
      return 'done' as const;
    };
    const { simulation, round } = createKeeper({ register });
    simulation.start(FIRST_URL, 0);
    simulation.start(SECOND_URL, 0);
    expect((await round(stop.signal)).done).toEqual([
      { kind: 'register', subject: FIRST_URL, result: 'done' },
    ]);
  });
});

describe('the gas of a day', () => {
  /** Creates a budget with a clock and a record. @returns budget and clock, and all writes to the record */
  const createBudget = (mist: bigint, signed: SigningRecord['signed'] = []) => {
    const time = { now: 0 };
    const replaced: SigningRecord['signed'][] = [];
    const record = { signed, replace: (all: SigningRecord['signed']) => void replaced.push(all) };
    return { time, replaced, gas: new GasBudget({ GAS_A_DAY: mist }, () => time.now, record) };
  };

  test('is the gas of any 24 hours', () => {
    const { gas, time } = createBudget(100n);
    gas.spend(60n);
    time.now = DAY / 2;
    gas.spend(40n);
    time.now = DAY - 1;
    expect([gas.spent(), gas.left()]).toEqual([100n, 0n]);
    expect(() => gas.spend(1n)).toThrow(GasLimitError);
    time.now = DAY;
    expect([gas.spent(), gas.left()]).toEqual([40n, 60n]);
    expect(() => gas.spend(61n)).toThrow(GasLimitError);
    gas.spend(60n);
  });

  test('keeps half of each limit for urgent transactions', () => {
    const { gas, time } = createBudget(101n);
    gas.spend(20n, false);
    gas.spend(30n, false);
    expect(() => gas.spend(1n, false)).toThrow(GasLimitError);
    gas.spend(51n);
    time.now = DAY;
    gas.spend(51n);
    expect(() => gas.spend(1n, false)).toThrow(GasLimitError);
    gas.spend(50n);
  });

  test('is recorded before anything is signed, without gas that was spent over a day ago', () => {
    const signed = [
      { ageMs: DAY - 10, mist: 20n },
      { ageMs: DAY, mist: 90n },
      { ageMs: 0, mist: 30n },
    ];
    const { gas, time, replaced } = createBudget(100n, signed);
    expect(gas.spent()).toBe(50n);
    time.now = 20;
    gas.spend(70n);
    expect(replaced).toEqual([
      [
        { ageMs: 20, mist: 30n },
        { ageMs: 0, mist: 70n },
      ],
    ]);
  });

  test('can not be spent if it can not be recorded', () => {
    const replace = () => {
      throw new Error('the disk is full');
    };
    const gas = new GasBudget({ GAS_A_DAY: 100n }, () => 0, { signed: [], replace });
    expect(() => gas.spend(1n)).toThrow('the disk is full');
    expect(gas.spent()).toBe(0n);
  });

  test('is reduced after a restart by what earlier processes spent', async () => {
    const { simulation, round } = createKeeper({}, 2n * GAS);
    simulation.start(FIRST_URL, 0);
    await round();
    simulation.start(FIRST_URL, 0);
    await round();
    simulation.start(FIRST_URL, 0);
    simulation.now += DAY / 2;
    const restarted = createKeeper({}, 2n * GAS, simulation);
    expect(await restarted.round()).toMatchObject({ done: [], codes: expect.arrayContaining(['GAS_A_DAY']) });
    simulation.now += DAY / 2;
    expect((await restarted.round()).done).toHaveLength(1);
  });

  test('pays for enclaves that start after an update, however many enclaves became stale before', async () => {
    const { simulation, gas, round } = createKeeper({}, 6n * GAS);
    for (let key = 100; key < 120; key += 1) {
      const enclave = createEnclave(key);
      simulation.enclaves.set(enclave.id, enclave);
    }
    const { configVersion } = simulation.config;
    simulation.config = { ...simulation.config, configVersion: configVersion + 1n };
    const unreachable = ['ENCLAVE_UNREACHABLE', 'ENCLAVE_UNREACHABLE'];
    const first = await round();
    expect(first.done.map(({ kind }) => kind)).toEqual(['destroy', 'destroy', 'destroy']);
    expect(first).toMatchObject({ codes: [...unreachable, 'DESTRUCTION_WAITS'], hasFailed: false });
    expect(isAlarm(first.alerts.at(-1) as Alert)).toBe(false);
    simulation.start(FIRST_URL, 0);
    simulation.start(SECOND_URL, 0);
    simulation.now += 5 * MINUTE;
    const second = await round();
    expect(second.done).toEqual([
      { kind: 'register', subject: FIRST_URL, result: 'done' },
      { kind: 'register', subject: SECOND_URL, result: 'done' },
    ]);
    expect([second.codes, gas.left()]).toEqual([['DESTRUCTION_WAITS'], GAS]);
    simulation.now += DAY;
    expect((await round()).done).toHaveLength(3);
  });

  test('does not become free by a change of the wall clock', async () => {
    const { simulation, round } = createKeeper({}, 1n * GAS);
    simulation.start(FIRST_URL, 0);
    expect((await round()).done).toHaveLength(1);
    simulation.start(FIRST_URL, 0);
    simulation.wallAheadMs = 2 * DAY;
    expect(await round()).toMatchObject({ done: [], codes: expect.arrayContaining(['GAS_A_DAY']) });
  });

  test('is counted over all rounds, including transactions without an answer', async () => {
    const { simulation, round } = createKeeper({}, 2n * GAS);
    simulation.start(FIRST_URL, 0);
    expect((await round()).codes).toEqual(['ENCLAVE_UNREACHABLE']);
    simulation.start(FIRST_URL, 0);
    simulation.fault = 'unanswered';
    expect((await round()).codes).toContain('ACTION_FAILED');
    simulation.start(FIRST_URL, 0);
    expect(await round()).toMatchObject({ done: [], codes: expect.arrayContaining(['GAS_A_DAY']) });
    simulation.now += DAY;
    expect((await round()).done).toHaveLength(1);
  });
});

test('a pause doubles with each failure up to its bound, plus or minus a fifth', () => {
  const pauses = (random: number) =>
    [0, 1, 2, 3, 4, 5000].map((failures) =>
      Math.round(pauseAfter(failures, { intervalMs: 1000, maxPauseMs: 5000, random: () => random })),
    );
  expect(pauses(0.5)).toEqual([1000, 2000, 4000, 5000, 5000, 5000]);
  expect([pauses(0)[0], pauses(1)[0]]).toEqual([800, 1200]);
});
