import { connect } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { endpoint } from '../../../../src/server/application/app.ts';
import { FIXTURE_APPS, sleep, startServer, startWeather } from '../../server/support.ts';

const dice = (env: Record<string, string> = {}, options: { requestTimeoutMs?: number } = {}) =>
  startServer({ apps: FIXTURE_APPS, env: { APP: 'dice', ...env }, ...options });

/** Short deadline for Node's own timers, which have no clock that a test could set. */
const SOON = { requestTimeoutMs: 300 };

/** Stops the clock of the deadlines of requests. @returns a function that lets the deadlines pass */
function stopDeadlines(): () => void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  return () => void vi.advanceTimersByTime(31_000);
}

/** Sends raw bytes and returns everything received until the server closes or `ms` have passed. */
function raw(url: string, bytes: string, ms = 8000): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
    setTimeout(() => socket.destroy(), ms);
  });
}

const formatGet = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

describe('the limit of concurrent requests', () => {
  test('refuses further requests with 503 and Retry-After, except for liveness, until an answer releases its slot', async () => {
    const { get } = await dice({ MAX_CONCURRENT_REQUESTS: '2' });
    const busy = [get('/slow'), get('/slow')];
    await sleep(200);
    const refusal = await get('/rules');
    expect(refusal.status).toBe(503);
    expect(refusal.headers.get('retry-after')).toBe('1');
    expect(await refusal.json()).toMatchObject({ code: 'OVERLOADED' });
    for (const path of ['/', '/boot', '/health_check']) expect((await get(path)).status).toBe(503);
    expect((await get('/livez')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
    expect((await Promise.all(busy)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await get('/rules')).status).toBe(200);
  });

  test('counts the work for a disconnected caller until it is done', async () => {
    const { get } = await dice({ MAX_CONCURRENT_REQUESTS: '1' });
    // The abort is late enough for a busy machine to have begun the work, which takes 2 s.
    await expect(get('/slow', { signal: AbortSignal.timeout(1000) })).rejects.toThrow();
    expect((await get('/rules')).status).toBe(503);
    await expect.poll(async () => (await get('/rules')).status).toBe(200);
  });

  test('counts endless work until its deadline', async () => {
    const passDeadlines = stopDeadlines();
    const { get } = await dice({ MAX_CONCURRENT_REQUESTS: '1' });
    const leaving = new AbortController();
    const abandoned = get('/hang', { signal: leaving.signal });
    await expect.poll(async () => (await get('/rules')).status).toBe(503);
    leaving.abort();
    await expect(abandoned).rejects.toThrow();
    expect((await get('/rules')).status).toBe(503);
    passDeadlines();
    expect((await get('/rules')).status).toBe(200);
  });

  test('does not count answers that wait for an earlier answer of their connection', async () => {
    const { get, url } = await dice({ MAX_CONCURRENT_REQUESTS: '2' });
    const last = formatGet('/rules').replace('Host', 'Connection: close\r\nHost');
    const answers = raw(url, formatGet('/slow') + formatGet('/rules').repeat(6) + last);
    await sleep(200);
    expect((await get('/rules')).status).toBe(200);
    expect((await answers).match(/HTTP\/1.1 (200|503)/g)).toHaveLength(8);
  });

  test('closes a connection that sends a ninth request while eight are unanswered', async () => {
    const { get, url, printed } = await dice();
    const startLength = printed().length;
    expect(await raw(url, formatGet('/slow') + formatGet('/rules').repeat(8))).toBe('');
    // Of thousands of requests in one read, only the first eight have an effect.
    expect(await raw(url, formatGet('/rules').repeat(2000))).not.toMatch(/(200.*){9}/s);
    expect((await get('/rules')).status).toBe(200);
    expect(printed().slice(startLength).split('"msg":"request"').length - 1).toBeLessThan(20);
  });

  test('allows any number of sequential requests of a connection', async () => {
    const { url } = await dice();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    for (let times = 0; times < 30; times += 1) {
      const answer = new Promise((resolve) => socket.once('data', resolve));
      socket.write(formatGet('/rules'));
      expect(String(await answer)).toMatch(/^HTTP\/1.1 200/);
    }
  });

  test('regains the slots of handlers that fail', async () => {
    const { get, post } = await dice({ MAX_CONCURRENT_REQUESTS: '1' });
    for (let times = 0; times < 3; times += 1) {
      expect((await post('/process_data', '{')).status).toBe(400);
      expect((await get('/crash')).status).toBe(500);
    }
    expect((await get('/rules')).status).toBe(200);
  });
});

describe('after a time limit', () => {
  test('a request without an answer gets 504, and releases its slot', async () => {
    const passDeadlines = stopDeadlines();
    const { get } = await dice({ MAX_CONCURRENT_REQUESTS: '1' });
    const pending = get('/hang');
    await expect.poll(async () => (await get('/rules')).status).toBe(503);
    passDeadlines();
    const answer = await pending;
    expect(answer.status).toBe(504);
    expect(await answer.json()).toMatchObject({ code: 'ANSWER_TIMEOUT' });
    expect((await get('/rules')).status).toBe(200);
  });

  test('a handler that fails after its deadline is logged, and does not close the connection of a later request', async () => {
    const passDeadlines = stopDeadlines();
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const lateEndpoint = endpoint({
      method: 'GET',
      path: '/late',
      async handle() {
        begun.resolve();
        await released.promise;
        throw Object.assign(new Error('hunter2'), { config: { url: 'hunter2' } });
      },
    });
    const { url, printed: log } = await startServer({
      manifest: { endpoints: [], secrets: [] },
      module: { signs: [], create: () => ({ endpoints: [lateEndpoint] }) },
    });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.write(formatGet('/late'));
    await begun.promise;
    passDeadlines();
    await expect.poll(() => received).toMatch(/504 .*"code":"ANSWER_TIMEOUT"/s);
    released.resolve();
    await expect.poll(log).toMatch(/request failed.*request failed/s);
    received = '';
    socket.write(formatGet('/livez'));
    await expect.poll(() => received).toMatch(/^HTTP\/1.1 200 .*"live":true/s);
    expect(printed).not.toHaveBeenCalled();
    expect(log()).not.toMatch(/hunter2/);
  });

  test('a request whose body does not arrive gets 408, and the connection is closed', async () => {
    const { url } = await dice({}, SOON);
    const head = 'POST /process_data HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
    const received = await raw(url, `${head}Content-Length: 100\r\n\r\n{"payload"`);
    expect(received).toMatch(/^HTTP\/1\.1 408 .*"code":"REQUEST_TIMEOUT"/s);
  });

  test.each([
    ['does not arrive', ''],
    ['is malformed', 'zz\r\n'],
  ])(
    'a body that %s after its request was answered closes the connection without another answer',
    async (_, bodyRest) => {
      const { url } = await dice({}, SOON);
      const head = 'GET /rules HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n';
      const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(head));
      let received = '';
      socket.on('data', (chunk) => {
        received += chunk;
        if (bodyRest !== '') socket.write(bodyRest);
      });
      await new Promise((resolve) => socket.on('close', resolve));
      expect(received.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    },
  );

  test('a request whose headers do not end gets 408', async () => {
    const { url } = await dice({}, SOON);
    const received = await raw(url, 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    expect(received).toMatch(/^HTTP\/1\.1 408 .*"code":"REQUEST_TIMEOUT"/s);
  });
});

describe('the log', () => {
  /** Lists the lines of the requests, without ids and times. */
  const listRequests = (printed: string) =>
    printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg === 'request')
      .map(({ level, route, status, code }) => ({ level, route, status, ...(code && { code }) }));

  test('has a line for each request, which names the code of a refusal', async () => {
    const { get, post, printed } = await dice();
    await get('/rules');
    await get('/nothing?code=hunter2');
    await get('/process_data');
    await post('/process_data', '{');
    await get('/crash');
    await expect
      .poll(() => listRequests(printed()))
      .toEqual([
        { level: 'debug', route: '/rules', status: 200 },
        { level: 'info', route: null, status: 404, code: 'NOT_FOUND' },
        { level: 'info', route: '/process_data', status: 405, code: 'METHOD_NOT_ALLOWED' },
        { level: 'info', route: '/process_data', status: 400, code: 'MALFORMED_JSON' },
        { level: 'info', route: '/crash', status: 500, code: 'INTERNAL' },
      ]);
  });

  test('has a line for bytes that are not a request, without repeating them', async () => {
    const { url, printed } = await dice();
    await raw(url, 'hunter2\r\n\r\n');
    await raw(url, `GET /rules HTTP/1.1\r\nHost: x\r\nCookie: ${'hunter2'.repeat(4000)}\r\n\r\n`);
    await raw(url, 'CONNECT hunter2:443 HTTP/1.1\r\nHost: hunter2:443\r\n\r\n');
    await expect
      .poll(() => listRequests(printed()))
      .toEqual([
        { level: 'info', route: null, status: 400, code: 'MALFORMED_HTTP' },
        { level: 'info', route: null, status: 431, code: 'HEADERS_TOO_LARGE' },
        { level: 'info', route: null, status: 405, code: 'METHOD_NOT_ALLOWED' },
      ]);
    expect(printed()).not.toMatch(/hunter2/);
  });

  test('has no line for a connection that a browser opens in advance', async () => {
    const { url, printed } = await dice({}, SOON);
    expect(await raw(url, '')).toMatch(/408/);
    expect(listRequests(printed())).toEqual([]);
  });

  test('names the code of the answer to a request that reached its deadline', async () => {
    const { get, printed } = await dice({}, SOON);
    await get('/hang');
    const line = { level: 'info', route: '/hang', status: 504, code: 'ANSWER_TIMEOUT' };
    await expect.poll(() => listRequests(printed())).toEqual([line]);
  });
});

describe('malformed HTTP', () => {
  test('is not answered in place of an earlier request', async () => {
    const { url } = await dice();
    const started = performance.now();
    const received = await raw(url, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n');
    expect(received).toMatch(/^HTTP\/1\.1 200 .*\{"slow":true\}$/s);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  test.each([
    ['hello\r\n\r\n', 400, 'MALFORMED_HTTP'],
    ['GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n', 400, 'MALFORMED_HTTP'],
    [
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      'MALFORMED_HTTP',
    ],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    [
      `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${'a:b\r\n'.repeat(99)}\r\n`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'INVALID_INPUT'],
    ['GET / HTTP/1.1\r\nHost: x\r\nhOST: x\r\nConnection: close\r\n\r\n', 400, 'INVALID_INPUT'],
  ])('is answered with JSON too: %j', async (bytes, status, code) => {
    const { url } = await dice();
    const received = await raw(url, bytes);
    expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const [head = '', body = ''] = received.split('\r\n\r\n');
    expect(JSON.parse(body)).toEqual({ error: expect.any(String), code });
    expect(head).toMatch(new RegExp(`Content-Length: ${body.length}\\b`, 'i'));
  });

  test('causes no warning in the log if a body is shorter than its Content-Length', async () => {
    const { url, printed } = await dice();
    const head =
      'POST /process_data HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n';
    await raw(url, `${head}{}`, 100);
    await sleep(50);
    expect(printed()).not.toMatch(/"level":"(warn|error)"/);
  });
});

describe('a connection after an error', () => {
  test('serves the next request', async () => {
    const { url } = await dice();
    const failingRequests = 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\nPUT / HTTP/1.1\r\nHost: x\r\n\r\n';
    const received = await raw(
      url,
      `${failingRequests}GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 405', 'HTTP/1.1 200']);
  });

  test('does not parse an unread body as the next request', async () => {
    const { url } = await dice();
    const smuggled = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';
    const length = smuggled.length + 100;
    const received = await raw(
      url,
      `POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${smuggled}`,
    );
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404']);
    expect(received).toMatch(/connection: close/i);
  });
});

describe('a server that shuts down', () => {
  test('finishes the requests in flight and refuses new ones', async () => {
    const { get, close, url } = await dice();
    const inFlight = get('/slow');
    await sleep(200);
    const closed = close();
    await expect(fetch(`${url}/rules`, { headers: { connection: 'close' } })).rejects.toThrow();
    expect(await (await inFlight).json()).toEqual({ slow: true });
    const start = performance.now();
    await closed;
    expect(performance.now() - start).toBeLessThan(2000);
  });

  test('aborts requests that do not finish within the grace period', async () => {
    const { get, close } = await dice({ SHUTDOWN_GRACE_MS: '200' });
    const inFlight = get('/hang').catch(() => 'ended');
    await sleep(100);
    await close();
    expect(await inFlight).toBe('ended');
  });

  test('also closes a connection on which CONNECT follows a request', async () => {
    const { url, close } = await dice({ SHUTDOWN_GRACE_MS: '200' });
    const received = raw(url, `${formatGet('/hang')}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await sleep(100);
    const start = performance.now();
    await close();
    expect(performance.now() - start).toBeLessThan(2000);
    expect(await received).toBe('');
  });

  test('does not wait for idle connections', async () => {
    const { server, ask } = await startWeather();
    await ask('Paris');
    const start = performance.now();
    await server.close();
    expect(performance.now() - start).toBeLessThan(1000);
  });
});
