/** Tasks and callers have separate shares of connections to upstreams, requests to them, and signatures. */
import { createServer, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  type AppContext,
  type Application,
  createBudget,
  defineApp,
  endpoint,
  signedType,
  startShared,
  struct,
  type TaskContext,
  task,
  type UpstreamClient,
  u8,
  waitForShared,
} from '../../../../src/server/index.ts';
import { SNAPSHOT_MS } from '../../../../src/server/reports/metrics.ts';
import { TASK_SOCKETS_PER_HOST } from '../../../../src/service/exchange.ts';
import { listen } from '../../library/loopback.ts';
import { startServer } from '../support.ts';

const CALLS_OF_A_RUN = 16;
const SOCKETS_OF_CALLERS = 256;
const HOST = 'feed.example';
const Mark = signedType(1, struct('Mark', { value: u8 }));

/** Starts a host that answers `/hold` only when the test says so, and all other paths immediately. */
async function startHost() {
  const held: ServerResponse[] = [];
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    if (request.url === '/hold') held.push(response);
    else response.end('{}');
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const release = () => {
    for (const response of held.splice(0)) response.end('{}');
  };
  onTestFinished(release);
  return { origin, held, release, requests: () => requests };
}

type Parts = Pick<AppContext, 'sign' | 'emit'> & { readonly feed: UpstreamClient };

/** Starts a server with one task, and one endpoint. */
async function start(
  run: (parts: Parts & TaskContext, signal: AbortSignal) => unknown,
  handle: (parts: Parts) => Promise<object> = async () => ({}),
  env: Record<string, string> = {},
) {
  const host = await startHost();
  const create = ({ env, upstream, sign, emit }: AppContext): Application => {
    const feed = upstream(HOST, { timeoutMs: 90_000, budget: createBudget(env) });
    const parts = { feed, sign, emit };
    return {
      tasks: [
        task({
          name: 'mark',
          everyMs: 1000,
          jitterMs: 0,
          timeoutMs: 90_000,
          run: async (context, signal) => void (await run({ ...parts, ...context }, signal)),
        }),
      ],
      endpoints: [endpoint({ method: 'GET', path: '/ask', handle: () => handle(parts) })],
    };
  };
  const server = await startServer({
    module: defineApp({ signs: [Mark], create }),
    manifest: { endpoints: [HOST], secrets: [] },
    origins: { [HOST]: host.origin },
    env: { UPSTREAM_CALLS_PER_MINUTE: '1000', REQUEST_TIMEOUT_MS: '120000', ...env },
  });
  return { server, host };
}

const holdAll = (feed: UpstreamClient, count: number) =>
  Promise.all(Array.from({ length: count }, () => feed.get('/hold')));

test('callers that take all their connections to a host do not block those of tasks', async () => {
  let runs = 0;
  const { server, host } = await start(
    async ({ feed }) => {
      await feed.get('/price');
      runs += 1;
    },
    async ({ feed }) => await holdAll(feed, SOCKETS_OF_CALLERS + 10),
  );
  const asking = server.get('/ask');
  await expect.poll(() => host.held).toHaveLength(SOCKETS_OF_CALLERS);
  expect(await server.runTask('mark')).toBe('done');
  expect(runs).toBe(1);
  host.release();
  await expect.poll(() => host.held).toHaveLength(10);
  host.release();
  expect((await asking).status).toBe(200);
});

test('tasks that take all their connections do not block those of callers', async () => {
  const { server, host } = await start(
    ({ feed }) => holdAll(feed, CALLS_OF_A_RUN),
    async ({ feed }) => (await feed.get('/price')).data as object,
  );
  const running = server.runTask('mark');
  await expect.poll(() => host.held).toHaveLength(TASK_SOCKETS_PER_HOST);
  expect((await server.get('/ask')).status).toBe(200);
  // The host has four requests at a time, and never more.
  for (let requests = 0; requests < CALLS_OF_A_RUN; requests += TASK_SOCKETS_PER_HOST) {
    await expect.poll(() => host.held).toHaveLength(TASK_SOCKETS_PER_HOST);
    host.release();
  }
  expect(await running).toBe('done');
});

test('callers that use up the budget do not stop the requests of tasks, which take nothing from the budget', async () => {
  const { server, host } = await start(
    async ({ feed }) => {
      for (let requests = 0; requests < CALLS_OF_A_RUN; requests += 1) await feed.get('/price');
    },
    async ({ feed }) => (await feed.get('/price')).data as object,
    { UPSTREAM_CALLS_PER_MINUTE: '1' },
  );
  expect(await server.runTask('mark')).toBe('done');
  expect((await server.get('/ask')).status).toBe(200);
  expect(await (await server.get('/ask')).json()).toMatchObject({ code: 'UPSTREAM_BUDGET_EXCEEDED' });
  expect(await server.runTask('mark')).toBe('done');
  expect(host.requests()).toBe(2 * CALLS_OF_A_RUN + 1);
});

test('a run sends at most 16 requests to upstreams, and the next run may send 16 again', async () => {
  const { server, host } = await start(async ({ feed }) => {
    for (;;) await feed.get('/price');
  });
  for (const requests of [CALLS_OF_A_RUN, 2 * CALLS_OF_A_RUN]) {
    expect(await server.runTask('mark')).toBe('failed');
    expect(host.requests()).toBe(requests);
  }
  expect(server.printed()).toContain('a run of the task mark may make at most 16 requests to upstreams');
});

test('a run can sign only one value, even if it tries another in a timer; requests of callers can sign more', async () => {
  const errors: unknown[] = [];
  const { server } = await start(
    async ({ sign, publish }) => {
      publish(sign(Mark, 1n, { value: 1 }));
      await new Promise<void>((resolve) => {
        setTimeout(() => {
          try {
            sign(Mark, 1n, { value: 2 });
          } catch (error) {
            errors.push(error);
          }
          resolve();
        });
      });
    },
    async ({ sign }) => {
      sign(Mark, 1n, { value: 3 });
      return sign(Mark, 1n, { value: 4 });
    },
  );
  expect(await server.runTask('mark')).toBe('done');
  expect(errors).toEqual([expect.objectContaining({ code: 'APPLICATION' })]);
  expect(await (await server.get('/ask')).json()).toMatchObject({ response: { data: { value: 4 } } });
});

test('work that a run leaves behind can neither ask upstreams nor sign', async () => {
  const errors: unknown[] = [];
  const ended = Promise.withResolvers<void>();
  const attempted = Promise.withResolvers<void>();
  const { server, host } = await start(({ feed, sign }) => {
    void (async () => {
      await ended.promise;
      await feed.get('/price').catch((error: unknown) => errors.push(error));
      try {
        sign(Mark, 1n, { value: 1 });
      } catch (error) {
        errors.push(error);
      }
      attempted.resolve();
    })();
  });
  expect(await server.runTask('mark')).toBe('done');
  ended.resolve();
  await attempted.promise;
  const mistake = expect.objectContaining({ code: 'APPLICATION' });
  expect(errors).toEqual([mistake, mistake]);
  expect(host.requests()).toBe(0);
});

test('a call that a task shares with callers counts as a call of the task', async () => {
  let loading: Promise<object> | undefined;
  const load = (feed: UpstreamClient) => {
    loading ??= startShared(async () => (await feed.get('/hold')).data as object);
    return loading;
  };
  const { server, host } = await start(
    ({ feed }) => load(feed),
    async ({ feed }) => await waitForShared(load(feed)),
    { UPSTREAM_CALLS_PER_MINUTE: '1' },
  );
  const running = server.runTask('mark');
  await expect.poll(() => host.held).toHaveLength(1);
  const answers = [server.get('/ask'), server.get('/ask')];
  host.release();
  for (const answer of answers) expect((await answer).status).toBe(200);
  expect(await running).toBe('done');
  expect(host.requests()).toBe(1);
});

test('the effects of a task do not count as those of plain requests, and its events name no request', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const module = defineApp({
    signs: [Mark],
    events: { marked: ['value'] },
    create: ({ sign, emit, upstream }) => ({
      tasks: [
        task({
          name: 'mark',
          everyMs: 1000,
          jitterMs: 0,
          timeoutMs: 1000,
          async run({ publish }) {
            await upstream(HOST).get('/price');
            publish(sign(Mark, 1n, { value: 1 }));
            emit('marked', { value: 1 });
          },
        }),
      ],
    }),
  });
  const { origin } = await startHost();
  const server = await startServer({
    module,
    manifest: { endpoints: [HOST], secrets: [], events: { marked: ['value'] } },
    origins: { [HOST]: origin },
    env: { METRICS_PORT: '0', EVENTS: 'true' },
  });
  await server.passTime(0);
  vi.advanceTimersByTime(SNAPSHOT_MS);
  const text = await (await fetch(server.metricsUrl as string)).text();
  expect(text).toContain('sui_enclave_task_runs_total{task="mark",outcome="done"} 1');
  expect(text).toContain('sui_enclave_plain_signatures_total 0');
  expect(text).toContain('sui_enclave_plain_upstream_requests_total{outcome="answered"} 0');
  expect(server.printed()).toContain('"name":"marked","request_id":null,"value":1');
});
