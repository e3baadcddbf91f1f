/** When tasks run, and what tasks that fail, hang or leak can do. The timers are fakes of vitest. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  errorClass,
  type SignedAnswer,
  signedType,
  struct,
  type TaskContext,
  task,
  u8,
} from '../../../../src/server/index.ts';
import { EphemeralKey } from '../../../../src/server/keys/key.ts';
import { Signer } from '../../../../src/server/keys/signer.ts';
import type { Task, TaskReport } from '../../../../src/server/tasks/task.ts';
import { Tasks } from '../../../../src/server/tasks/tasks.ts';
import { createLog } from '../../../../src/service/log.ts';
import { HOSTILE_THROWN } from '../../service/hostile_thrown.ts';

const PERIOD = 10_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const Mark = signedType(1, struct('Mark', { value: u8 }));
const signer = new Signer(EphemeralKey.create(), [Mark]);
const mark = (value: number) => signer.sign(Mark, 1n, { value });

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

type Definition = Parameters<typeof task>[0];
type Run = (...parameters: [...Parameters<Definition['run']>, count: number]) => unknown;

/** Starts one task. `times` has the time of the start of each run, in milliseconds since the task's start. */
function start(run: Run, changes: Partial<Definition> = {}, isReady = () => true) {
  const times: number[] = [];
  const reports: Partial<TaskReport>[] = [];
  let printed = '';
  const log = createLog('debug', { write: (line) => (printed += line) });
  const tasks = new Tasks({ log, isReady, onReport: ({ ms: _, ...report }) => reports.push(report) });
  const origin = performance.now();
  const definition = {
    name: 'mark',
    everyMs: PERIOD,
    jitterMs: 0,
    timeoutMs: 5000,
    run: async (context: TaskContext, signal: AbortSignal) => {
      times.push(Math.round(performance.now() - origin));
      await run(context, signal, times.length);
    },
    ...changes,
  };
  tasks.set([task(definition)]);
  tasks.start();
  const state = () => tasks.states()[0];
  return { tasks, times, reports, state, printed: () => printed };
}

describe('a task', () => {
  test('runs at the start of each period', async () => {
    const { times, state } = start(() => {});
    await pass(3 * PERIOD);
    expect(times).toEqual([0, PERIOD, 2 * PERIOD, 3 * PERIOD]);
    expect(state()).toEqual({
      name: 'mark',
      runs: { done: 4, failed: 0, late: 0 },
      failures: 0,
      isOverdue: false,
    });
  });

  test('runs with random delays of less than jitterMs, once in each period', async () => {
    const random = vi.spyOn(Math, 'random');
    random.mockReturnValueOnce(0.5).mockReturnValueOnce(0.999).mockReturnValueOnce(0).mockReturnValue(0.25);
    const { times } = start(() => {}, { jitterMs: 8000 });
    await pass(4 * PERIOD - 1);
    expect(times).toEqual([4000, PERIOD + 7992, 2 * PERIOD, 3 * PERIOD + 2000]);
  });

  test('never runs twice at once, and skips the periods that begin during a run', async () => {
    let running = 0;
    let most = 0;
    const { times, state } = start(
      async () => {
        running += 1;
        most = Math.max(most, running);
        await wait(2.5 * PERIOD);
        running -= 1;
      },
      { timeoutMs: 3 * PERIOD },
    );
    await pass(6 * PERIOD);
    expect(times).toEqual([0, 3 * PERIOD, 6 * PERIOD]);
    expect(most).toBe(1);
    expect(state()?.runs).toEqual({ done: 2, failed: 0, late: 0 });
  });

  test('skips the periods that passed while the event loop was blocked', async () => {
    const { times } = start(() => {});
    await pass(0);
    const { now } = performance;
    // A run of another task takes this time, in which no timer can run.
    vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + 7.2 * PERIOD);
    await pass(PERIOD);
    expect(times).toEqual([0, 8.2 * PERIOD]);
    await pass(PERIOD);
    expect(times).toEqual([0, 8.2 * PERIOD, 9 * PERIOD]);
  });

  test('does not run in the previous period if a timer ends too early', async () => {
    const { times } = start(() => {});
    await pass(0);
    const { now } = performance;
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) - 0.4);
    await pass(PERIOD);
    spy.mockRestore();
    expect(times).toEqual([0]);
    await pass(1);
    expect(times).toEqual([0, PERIOD + 1]);
  });

  test('pauses twice as long after each failure, at most five minutes, with delays of up to half a period', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { times, reports, state } = start((_context, _signal, count) => {
      if (count < 9) throw new Error('fails');
    });
    await pass(150 * PERIOD);
    const periods = times.map((time) => time / PERIOD);
    expect(periods.slice(0, 8)).toEqual([0, 1.25, 3.25, 7.25, 15.25, 31.25, 61.25, 91.25]);
    // The ninth run is done. After it, there is a run in each period.
    expect(periods.slice(8, 11)).toEqual([121.25, 122, 123]);
    expect(reports.map(({ outcome }) => outcome)).toEqual([...Array(8).fill('failed'), 'done']);
    expect(state()?.failures).toBe(0);
  });

  test('with a period of more than five minutes runs in the next period after a failure', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const fail = () => {
      throw new Error('fails');
    };
    const { times } = start(fail, { everyMs: 3_600_000 });
    await pass(4 * 3_600_000);
    expect(times).toEqual([0, 1, 2, 3, 4].map((hour) => hour * 3_600_000));
  });

  test('waits while the server has no secrets or no confirmed clock, and begins within a second afterwards', async () => {
    let isReady = false;
    const { times, state } = start(
      () => {},
      { everyMs: 3_600_000 },
      () => isReady,
    );
    await pass(50_500);
    expect(times).toEqual([]);
    expect(state()?.failures).toBe(0);
    isReady = true;
    await pass(1000);
    expect(times).toEqual([51_000]);
    await pass(3_600_000);
    expect(times).toEqual([51_000, 3_600_000]);
  });
});

describe('a run that is late', () => {
  test('gets the signal, counts once, and its error is not reported', async () => {
    const { state, reports, tasks } = start(
      (_context, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    await pass(4999);
    expect(state()?.runs.late).toBe(0);
    await pass(1);
    expect(state()).toMatchObject({ runs: { done: 0, failed: 0, late: 1 }, failures: 1, isOverdue: false });
    expect(reports).toEqual([{ task: 'mark', outcome: 'late', code: null }]);
    expect(tasks.warnings()).toEqual(['the task mark has failed in 1 run in a row']);
  });

  test('and ignores the signal keeps later runs from beginning until it ends, and publishes nothing', async () => {
    const ended = Promise.withResolvers<void>();
    let thrown: unknown;
    const { times, state, tasks, reports } = start(async ({ publish }, _signal, count) => {
      if (count > 1) return;
      await ended.promise;
      try {
        publish(mark(1));
      } catch (error) {
        thrown = error;
      }
    });
    await pass(20 * PERIOD);
    expect(times).toEqual([0]);
    expect(state()).toMatchObject({ runs: { late: 1 }, failures: 1, isOverdue: true });
    expect(tasks.warnings()).toEqual(['the task mark has not ended, although its time is over']);
    ended.resolve();
    await pass(2 * PERIOD);
    expect(thrown).toMatchObject({ name: 'TimeoutError' });
    expect(() => tasks.latest('mark')).toThrow(/has not published a value/);
    expect(times.length).toBeGreaterThan(1);
    expect(state()).toMatchObject({ failures: 0, isOverdue: false });
    expect(reports.map(({ outcome }) => outcome)).toEqual(['late', 'done']);
    expect(tasks.warnings()).toEqual([]);
  });

  test('does not keep other tasks from running', async () => {
    let runs = 0;
    const log = createLog('silent');
    const tasks = new Tasks({ log, isReady: () => true, onReport: () => {} });
    const times = { everyMs: PERIOD, jitterMs: 0, timeoutMs: 5000 };
    tasks.set([
      task({ ...times, name: 'hangs', run: () => new Promise(() => {}) }),
      task({
        ...times,
        name: 'works',
        async run() {
          runs += 1;
        },
      }),
    ]);
    tasks.start();
    await pass(3 * PERIOD);
    expect(runs).toBe(4);
  });
});

describe('an error', () => {
  test.each(HOSTILE_THROWN)('counts, and is not printed: %s', async (_name, make) => {
    const { state, reports, printed } = start(() => {
      throw make();
    });
    await pass(0);
    expect(state()).toMatchObject({ runs: { failed: 1 }, failures: 1 });
    expect(reports).toHaveLength(1);
    expect(printed()).toContain('"task":"mark"');
    expect(printed() + JSON.stringify(reports)).not.toContain('hunter2');
  });

  test('is reported by a code that callers may see, or as INTERNAL', async () => {
    class PriceError extends errorClass({ PRICE_STALE: { status: 502, meaning: 'too old' } }) {}
    const errors = [
      new PriceError('PRICE_STALE', 'too old'),
      Object.assign(new Error('secret'), { code: 'SECRET' }),
    ];
    const { reports } = start((_context, _signal, count) => {
      throw errors[count - 1];
    });
    await pass(2 * PERIOD - 1);
    expect(reports.map(({ code }) => code)).toEqual(['PRICE_STALE', 'INTERNAL']);
  });

  test('that run() throws before it returns a promise counts like any other', async () => {
    const { state } = start(() => {}, {
      run() {
        throw new Error('at once');
      },
    });
    await pass(0);
    expect(state()?.failures).toBe(1);
  });
});

describe('a value', () => {
  test('is the same until a later run publishes the next', async () => {
    const { tasks } = start(({ publish }, _signal, count) => {
      if (count === 2) throw new Error('fails');
      publish(mark(count));
    });
    expect(() => tasks.latest('mark')).toThrow(
      expect.objectContaining({ code: 'TASK_NO_VALUE', status: 503, retryAfterSeconds: 10 }),
    );
    await pass(0);
    const first = tasks.latest('mark');
    await pass(PERIOD * 2 - 1);
    expect(tasks.latest('mark')).toBe(first);
    await pass(PERIOD);
    expect(tasks.latest('mark').json).toContain('"value":3');
  });

  test.each([
    ['a second one in a run', ({ publish }: TaskContext) => [publish(mark(1)), publish(mark(2))]],
    ['one that sign() did not return', ({ publish }: TaskContext) => publish({} as SignedAnswer)],
  ])('is refused: %s', async (_name, run) => {
    const { state, printed } = start(run);
    await pass(0);
    expect(state()?.failures).toBe(1);
    expect(printed()).toContain('"code":"APPLICATION"');
  });

  test('is refused after the end of the run, in a promise that the run has left behind', async () => {
    let thrown: unknown;
    const { tasks } = start(({ publish }, _signal, count) => {
      if (count === 1) {
        void wait(PERIOD / 2).then(() => {
          try {
            publish(mark(1));
          } catch (error) {
            thrown = error;
          }
        });
      }
    });
    await pass(PERIOD);
    expect(thrown).toMatchObject({ code: 'APPLICATION' });
    expect(() => tasks.latest('mark')).toThrow();
  });

  test('of a task that does not exist is a mistake of the application', () => {
    const { tasks } = start(() => {});
    expect(() => tasks.latest('other')).toThrow(expect.objectContaining({ code: 'APPLICATION' }));
  });
});

describe('at the end of the server', () => {
  test('no run begins, and one that has begun gets the signal and is not counted', async () => {
    const { tasks, times, state } = start(
      (_context, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    await pass(0);
    await tasks.stop(1000);
    await pass(3 * PERIOD);
    expect(times).toEqual([0]);
    expect(state()?.runs).toEqual({ done: 0, failed: 0, late: 0 });
  });

  test('a run that ignores the signal gets the grace period, and no longer', async () => {
    const { tasks } = start(() => new Promise(() => {}));
    await pass(0);
    let isStopped = false;
    void tasks.stop(1000).then(() => {
      isStopped = true;
    });
    await pass(999);
    expect(isStopped).toBe(false);
    await pass(1);
    expect(isStopped).toBe(true);
  });
});

describe('a declaration is refused with', () => {
  const definition: Definition = {
    name: 'mark',
    everyMs: 1000,
    jitterMs: 0,
    timeoutMs: 1,
    run: async () => {},
  };

  test.each<[string, Partial<Record<keyof Definition, unknown>>, RegExp]>([
    ['an empty name', { name: '' }, /can't be the name of a task/],
    ['a name with a quotation mark', { name: 'a"' }, /can't be the name of a task/],
    ['a name of 33 characters', { name: 'a'.repeat(33) }, /can't be the name of a task/],
    ['no name', { name: undefined }, /can't be the name of a task/],
    ['a period of less than a second', { everyMs: 999 }, /^everyMs of the task mark must be an integer/],
    ['a period of more than a day', { everyMs: 86_400_001 }, /^everyMs of the task mark must be/],
    ['a period that is a text', { everyMs: '5000' }, /^everyMs of the task mark must be/],
    ['no period', { everyMs: undefined }, /^everyMs of the task mark must be/],
    ['a negative delay', { jitterMs: -1 }, /^jitterMs of the task mark must be/],
    ['a delay as long as the period', { jitterMs: 1000 }, /^jitterMs of the task mark must be less/],
    ['a time limit of 0', { timeoutMs: 0 }, /^timeoutMs of the task mark must be/],
    ['a time limit that is not a number', { timeoutMs: Number.NaN }, /^timeoutMs of the task mark must be/],
    ['a run that is not a function', { run: 'run' }, /^run of the task mark must be a function/],
  ])('%s', (_name, changes, message) => {
    expect(() => task({ ...definition, ...(changes as Partial<Definition>) })).toThrow(message);
    expect(() => task(definition)).not.toThrow();
  });

  test('two tasks of the same name, more than 16 tasks, or a task that task() has not made', () => {
    const set = (tasks: readonly Task[]) =>
      new Tasks({ log: createLog('silent'), isReady: () => true, onReport: () => {} }).set(tasks);
    expect(() => set([task(definition), task(definition)])).toThrow(/two tasks have the name mark/);
    expect(() => set([definition as unknown as Task])).toThrow('the task mark must be made by task()');
    const many = Array.from({ length: 17 }, (_, at) => task({ ...definition, name: `mark_${at}` }));
    expect(() => set(many)).toThrow(/at most 16 tasks, and this one has 17/);
    expect(() => set(many.slice(1))).not.toThrow();
  });
});
