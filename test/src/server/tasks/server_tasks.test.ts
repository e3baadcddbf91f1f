/** Tasks in a running server: their values, when they begin, and what the operator sees of them. */
import { spawnSync } from 'node:child_process';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  type AppContext,
  defineApp,
  endpoint,
  errorClass,
  signedType,
  struct,
  type TaskContext,
  task,
  u8,
} from '../../../../src/server/index.ts';
import { CONFIRM_EVERY_MS } from '../../../../src/server/nsm/clock.ts';
import { SNAPSHOT_MS } from '../../../../src/server/reports/metrics.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { makePipe } from '../provisioner.ts';
import { startServer } from '../support.ts';

const PERIOD = 5000;
const Mark = signedType(1, struct('Mark', { value: u8 }));
class MarkError extends errorClass({ MARK_STALE: { status: 502, meaning: 'it is too old' } }) {}

type Run = (context: TaskContext & Pick<AppContext, 'sign' | 'secret'>, signal: AbortSignal) => Promise<void>;

/** Starts an application with one task, and an endpoint that answers with the task's value. */
async function start(
  run: Run,
  options: Parameters<typeof startServer>[0] = {},
  secrets: readonly string[] = [],
) {
  const module = defineApp({
    signs: [Mark],
    create: ({ sign, secret, latest }) => ({
      tasks: [
        task({
          name: 'mark',
          everyMs: PERIOD,
          jitterMs: 100,
          timeoutMs: 60_000,
          run: (context, signal) => run({ ...context, sign: sign as AppContext['sign'], secret }, signal),
        }),
      ],
      endpoints: [endpoint({ method: 'GET', path: '/mark', handle: async () => latest('mark') })],
    }),
  });
  return await startServer({ module, manifest: { endpoints: [], secrets }, ...options });
}

/** Returns a run that publishes 1, 2, 3, …, with the times 100, 200, 300, … */
const counting = (): Run => {
  let value = 0;
  return async ({ sign, publish }) => {
    value += 1;
    publish(sign(Mark, BigInt(100 * value), { value }));
  };
};

const readWarnings = async (get: (path: string) => Promise<Response>) =>
  ((await (await get('/readyz')).json()) as { warnings: string[] }).warnings.filter((line) =>
    line.includes('task'),
  );

describe('the value of a task', () => {
  test('is one signed answer a period, however often it is requested, and keeps the time of the reading', async () => {
    const { get, passTime } = await start(counting());
    const early = await get('/mark');
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await early.json()).toMatchObject({ code: 'TASK_NO_VALUE' });
    const answers = new Set<string>();
    for (const [at, expected] of [1, 2, 3].entries()) {
      await passTime(at === 0 ? 0 : PERIOD);
      for (let request = 0; request < 5; request += 1) {
        const answer = await get('/mark');
        expect(answer.headers.get('x-enclave-key')).toHaveLength(64);
        answers.add(await answer.text());
      }
      expect(answers.size).toBe(expected);
      expect(JSON.parse([...answers].at(-1) ?? '')).toMatchObject({
        response: { timestamp_ms: 100 * expected, data: { value: expected } },
      });
    }
  });

  test('is a mistake of the application if create() has not returned the task, even within create()', async () => {
    const module = defineApp({
      signs: [Mark],
      create({ latest }) {
        latest('mark');
        return {};
      },
    });
    await expect(startServer({ module, manifest: { endpoints: [], secrets: [] } })).rejects.toMatchObject({
      code: 'APPLICATION',
    });
  });
});

describe('a task begins', () => {
  test('once the secrets have arrived, and has them', async () => {
    const pipe = makePipe();
    const values: string[] = [];
    const run: Run = async ({ secret }) => void values.push(secret('MARK_KEY'));
    const { get, passTime } = await start(run, { env: { SECRETS_FD: String(pipe.fd) } }, ['MARK_KEY']);
    await passTime(3 * PERIOD);
    expect(values).toEqual([]);
    pipe.write('{"MARK_KEY":"late"}');
    await expect.poll(async () => (await get('/readyz')).status).toBe(200);
    await passTime(1000);
    expect(values).toEqual(['late']);
  });

  test('while the NSM confirms the clock, if CLOCK_REQUIRED is set, and at no other time', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    let difference = -6000;
    const nsm = new EmulatedNsm(() => Date.now() + difference);
    const changeClock = async (isConfirmed: boolean) => {
      difference = isConfirmed ? 0 : -6000;
      vi.advanceTimersByTime(CONFIRM_EVERY_MS);
      await vi.waitFor(async () => {
        const { warnings } = (await (await get('/readyz')).json()) as { warnings?: string[] };
        expect(warnings === undefined).toBe(isConfirmed);
      }, 60_000);
    };
    let runs = 0;
    const run = async () => {
      runs += 1;
    };
    const { get, passTime } = await start(run, { nsm, env: { CLOCK_REQUIRED: 'true' } });
    await passTime(3 * PERIOD);
    expect(runs).toBe(0);
    await changeClock(true);
    await passTime(1000);
    expect(runs).toBe(1);
    await changeClock(false);
    await passTime(3 * PERIOD);
    expect(runs).toBe(1);
  });
});

describe('an operator', () => {
  test('sees failures in /readyz, events and the log, without messages of errors', async () => {
    const errors = [
      new Error('hunter2'),
      new MarkError('MARK_STALE', 'it is too old'),
      Object.assign(new Error('hunter2'), { code: 'HUNTER2' }),
    ];
    const server = await start(
      async () => {
        const error = errors.shift();
        if (error) throw error;
      },
      { env: { EVENTS: 'true' } },
    );
    await server.passTime(0);
    expect(await readWarnings(server.get)).toEqual(['the task mark has failed in 1 run in a row']);
    await server.passTime(3 * PERIOD);
    expect(await readWarnings(server.get)).toEqual(['the task mark has failed in 3 runs in a row']);
    expect((await server.get('/readyz')).status).toBe(200);
    await server.passTime(4 * PERIOD);
    expect(await readWarnings(server.get)).toEqual([]);
    const lines = server
      .printed()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const events = lines.filter(({ event }) => event === 'task');
    expect(events.map(({ event: _, time_ms, ms, level, time, msg, ...fields }) => fields)).toEqual([
      { task: 'mark', outcome: 'failed', code: 'INTERNAL' },
      { task: 'mark', outcome: 'failed', code: 'MARK_STALE' },
      { task: 'mark', outcome: 'failed', code: 'INTERNAL' },
      { task: 'mark', outcome: 'done', code: null },
    ]);
    const warned = lines.filter(({ msg, level }) => msg === 'task' && level === 'warn');
    expect(warned.map(({ err }) => err.type)).toEqual(['Error', 'MarkError', 'Error']);
    expect(server.printed()).not.toContain('hunter2');
  });

  test('sees the runs of each task in the metrics, even with REQUESTS=sealed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    let runs = 0;
    const run = async () => {
      runs += 1;
      if (runs > 1) throw new Error('fails');
    };
    const server = await start(run, { env: { METRICS_PORT: '0', REQUESTS: 'sealed' } });
    await server.passTime(2 * PERIOD);
    vi.advanceTimersByTime(SNAPSHOT_MS);
    const text = await (await fetch(server.metricsUrl as string)).text();
    expect(text.split('\n').filter((line) => line.startsWith('sui_enclave_task'))).toEqual([
      'sui_enclave_task_runs_total{task="mark",outcome="done"} 1',
      'sui_enclave_task_runs_total{task="mark",outcome="failed"} 2',
      'sui_enclave_task_runs_total{task="mark",outcome="late"} 0',
      'sui_enclave_task_failures{task="mark"} 2',
      'sui_enclave_task_overdue{task="mark"} 0',
    ]);
  });
});

test('a task that does not yield shows in the delay of the event loop', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const run = async () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  };
  const server = await start(run, { env: { METRICS_PORT: '0' } });
  const turns = () => new Promise((resolve) => setTimeout(resolve, 100));
  // Node measures the delay between two samples of the time.
  await turns();
  await server.passTime(0);
  await turns();
  vi.advanceTimersByTime(SNAPSHOT_MS);
  const text = await (await fetch(server.metricsUrl as string)).text();
  const [, delay] = /^sui_enclave_event_loop_delay_seconds (\S+)$/m.exec(text) ?? [];
  expect(Number(delay)).toBeGreaterThanOrEqual(0.35);
});

test('the end of the server aborts a run, and waits for its end', async () => {
  const ended: unknown[] = [];
  const begun = Promise.withResolvers<void>();
  const server = await start(
    (_context, signal) =>
      new Promise<void>((resolve) => {
        begun.resolve();
        signal.addEventListener('abort', () => {
          setTimeout(() => {
            ended.push(signal.reason.name);
            resolve();
          }, 20);
        });
      }),
  );
  const running = server.runTask('mark');
  await begun.promise;
  await server.close();
  expect(ended).toEqual(['AbortError']);
  expect(await running).toBe('done');
});

test('errors that a task throws in a timer, or leaves behind in a promise, are counted and do not end the server', () => {
  const module = (path: string) => JSON.stringify(new URL(`../../../../src/${path}`, import.meta.url).href);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '--eval',
      `import { start } from ${module('server/start.ts')};
       import { defineApp, task } from ${module('server/index.ts')};
       let runs = 0;
       const run = async () => {
         runs += 1;
         if (runs === 2) return setTimeout(() => process.kill(process.pid, 'SIGTERM'));
         setTimeout(() => { throw new Error('hunter2'); });
         Promise.reject(new Error('hunter2'));
         void (async () => { await 1; throw new Error('hunter2'); })();
       };
       const app = defineApp({
         signs: [],
         create: () => ({ tasks: [task({ name: 'leaky', everyMs: 1000, jitterMs: 0, timeoutMs: 500, run })] }),
       });
       await start({
         version: 'test',
         nsmAddon: '/nonexistent',
         load: async () => ({ manifest: { endpoints: [], secrets: [] }, module: app, schema: undefined }),
       });`,
    ],
    {
      encoding: 'utf8',
      env: { ...process.env, APP: 'leaky', PORT: '0', EVENTS: 'true', LOG_LEVEL: 'debug' },
    },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).not.toContain('hunter2');
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ event }) => event === 'uncaught')).toHaveLength(3);
  expect(lines.filter(({ task, outcome }) => task === 'leaky' && outcome === 'done')).toHaveLength(2);
});
