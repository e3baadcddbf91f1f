/**
 * Tests that a request that waits for another request's call holds no slot, so that it can't block others.
 */
import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Response } from 'express';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { CLIENT_ID, GOOGLE, Issuer, startSalt } from '../../../src/apps/salt/test/support.ts';
import { createHttpServer, listen, shutDown } from '../../../src/service/http/http_server.ts';
import type { InFlight } from '../../../src/service/http/in_flight.ts';
import { sendJson } from '../../../src/service/http/respond.ts';
import { createLog } from '../../../src/service/log.ts';
import {
  CallerLeft,
  runAs,
  startShared,
  untilOneEnds,
  WaitingRoom,
  type Work,
  waitForShared,
} from '../../../src/service/waiting.ts';
import { requestFor, startTestFrontend } from '../prover/frontend/support.ts';
import { changeDeadline, startServer, startWeather } from '../server/support.ts';
import { type Flood, flood, getRequest, postRequest } from './flood.ts';

const OVERLOADED = { code: 'OVERLOADED', status: 503, retryAfterSeconds: 1 };

describe('the waiting room', () => {
  test('gives at most half of its places to one call, and refuses further callers immediately', async () => {
    const room = new WaitingRoom(8);
    const first = Promise.withResolvers<string>();
    const second = Promise.withResolvers<string>();
    const firstWaits = Array.from({ length: 4 }, () => room.waitFor(first.promise));
    await expect(room.waitFor(first.promise)).rejects.toMatchObject(OVERLOADED);
    const secondWaits = Array.from({ length: 4 }, () => room.waitFor(second.promise));
    await expect(room.waitFor(Promise.resolve('third'))).rejects.toMatchObject(OVERLOADED);
    expect(room.size).toBe(8);
    first.resolve('done');
    expect(await Promise.all(firstWaits)).toEqual(Array(4).fill('done'));
    expect(room.size).toBe(4);
    expect(await room.waitFor(Promise.resolve('third'))).toBe('third');
    second.reject(new Error('failed'));
    for (const wait of secondWaits) await expect(wait).rejects.toThrow('failed');
    expect(room.size).toBe(0);
  });

  test('frees the place of a caller who has left, although the call continues', async () => {
    const room = new WaitingRoom(2);
    const call = Promise.withResolvers<string>();
    const caller = new AbortController();
    const waiting = room.waitFor(call.promise, [caller.signal]);
    await expect(room.waitFor(call.promise)).rejects.toMatchObject(OVERLOADED);
    caller.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    await expect(room.waitFor(call.promise, [caller.signal])).rejects.toThrow('left');
    const otherWait = room.waitFor(call.promise, [new AbortController().signal]);
    call.resolve('done');
    expect(await otherWait).toBe('done');
    expect(room.size).toBe(0);
  });

  test('keeps no reference to callers who have left, not even in the call', async () => {
    const room = new WaitingRoom(4);
    const call = Promise.withResolvers<string>();
    const then = vi.spyOn(call.promise, 'then');
    const signalsOfLeavers: AbortSignal[] = [];
    for (let caller = 0; caller < 10_000; caller += 1) {
      const controller = new AbortController();
      const waiting = room.waitFor(call.promise, [controller.signal]);
      controller.abort(caller);
      await waiting.then(expect.fail, (reason) => expect(reason).toBe(caller));
      signalsOfLeavers.push(controller.signal);
    }
    expect(then).toHaveBeenCalledOnce();
    expect(room.size).toBe(0);
    expect(signalsOfLeavers.flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([]);
    const { signal } = new AbortController();
    const otherWaits = [room.waitFor(call.promise, [signal]), room.waitFor(call.promise, [signal])];
    call.resolve('done');
    expect(await Promise.all(otherWaits)).toEqual(['done', 'done']);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    // Callers who come when the call is settled do not wait.
    expect(await room.waitFor(call.promise, [signal])).toBe('done');
    const failed = Promise.reject(new Error('failed'));
    await expect(room.waitFor(failed, [signal])).rejects.toThrow('failed');
    await expect(room.waitFor(failed, [signal])).rejects.toThrow('failed');
  });

  test('is not entered outside of a request', async () => {
    expect(await waitForShared(Promise.resolve(1))).toBe(1);
    await expect(waitForShared(new Promise(() => {}), AbortSignal.abort('left'))).rejects.toBe('left');
  });
});

/** Sizes of a server and of an attack. The callers would take all slots if waiting callers held a slot. */
interface Size {
  readonly connections: number;
  readonly slots: number;
  readonly callers: number;
  /** Number of waiters for one call: an eighth of the connections. */
  readonly waiting: number;
}
/**
 * Size for the default settings. One attack has this size. The others have an eighth of it, to save time.
 */
const FULL: Size = { connections: 2048, slots: 256, callers: 2000, waiting: 256 };
const SMALL: Size = { connections: 256, slots: 32, callers: 250, waiting: 32 };
const SMALL_ENV = {
  MAX_CONNECTIONS: String(SMALL.connections),
  MAX_CONCURRENT_REQUESTS: String(SMALL.slots),
};

/** Expects that 20 successive honest calls are answered while the attackers' shared call still hangs. */
async function expectAnswered(attack: Flood, honest: () => Promise<number>, size = SMALL): Promise<void> {
  // The caller who began the call has a slot.
  await expect.poll(() => attack.answered(503)).toBe(size.callers - 1 - size.waiting);
  const statuses: number[] = [];
  for (let turn = 0; turn < 20; turn += 1) statuses.push(await honest());
  expect(statuses).toEqual(Array(20).fill(200));
}

/** Starts a service whose callers all wait for the same call, which the test ends. */
async function startHangingService() {
  const call = Promise.withResolvers<string>();
  const then = vi.spyOn(call.promise, 'then');
  let printed = '';
  let inFlight = undefined as unknown as InFlight;
  const server = createHttpServer({
    limits: {
      bodyLimitBytes: 1024,
      maxConcurrentRequests: 8,
      maxConnections: SMALL.connections,
      requestTimeoutMs: 60_000,
    },
    log: createLog('info', { write: (line) => (printed += line) }),
    upstreamHosts: 0,
    corsOrigins: '*',
    trustedProxies: 0,
    routes: (app, requests) => {
      inFlight = requests;
      const send = async (response: Response, body: Promise<string>) =>
        sendJson(response, 200, { result: await body });
      app.get('/work', (_request, response) =>
        inFlight.work(response, () => send(response, waitForShared(call.promise))),
      );
      app.get('/outside', (_request, response) => send(response, inFlight.waitFor(response, call.promise)));
    },
  });
  const url = await listen(server, { host: '127.0.0.1', port: 0, maxConnections: SMALL.connections });
  onTestFinished(() => shutDown(server, 0));
  return { url, reactions: then, inFlight, release: () => call.resolve('done'), printed: () => printed };
}

describe('callers who leave a hanging call', { timeout: 60_000 }, () => {
  test.each(['/work', '/outside'])('leave their places to others: %s', async (path) => {
    const { url, reactions, inFlight, release, printed } = await startHangingService();
    for (let wave = 0; wave < 4; wave += 1) {
      const leavers = await flood(url, Array(SMALL.waiting + 1).fill(getRequest(path)));
      // These callers have half of the places. There are a quarter as many places as connections.
      await expect.poll(() => inFlight.waiting).toBe(SMALL.waiting);
      await expect.poll(() => leavers.answered(503)).toBe(1);
      leavers.leave();
      await expect.poll(() => [inFlight.waiting, inFlight.size]).toEqual([0, 0]);
    }
    expect(reactions).toHaveBeenCalledOnce();
    const otherCallers = await flood(url, Array(25).fill(getRequest(path)));
    await expect.poll(() => inFlight.waiting).toBe(25);
    release();
    await expect.poll(() => otherCallers.answered(200)).toBe(25);
    expect(printed().split('request failed')).toHaveLength(1 + 4);
  });

  test('lose their places at /health_check when their deadline has passed', async () => {
    changeDeadline(5000, 120_000);
    const upstream = await startHangingHost();
    const server = await startServer({
      origins: { 'api.weatherapi.com': upstream.origin },
      env: { REQUEST_TIMEOUT_MS: '1000', ...SMALL_ENV },
    });
    const request = getRequest('/health_check');
    for (let wave = 0; wave < 2; wave += 1) {
      const lateCallers = await flood(server.url, Array(SMALL.waiting + 1).fill(request));
      await expect.poll(() => lateCallers.answered(504)).toBeGreaterThanOrEqual(SMALL.waiting);
    }
    expect(upstream.requestCount()).toBe(1);
    expect(server.printed()).not.toContain('TypeError');
  });
});

describe('a call that others wait for', () => {
  /**
   * Begins an outer call, which waits for an inner call. The caller who began the outer call leaves, while
   * another caller waits for it.
   *
   * @returns the answer or error that the other caller gets
   */
  async function leaveBehind(start: <T>(begin: () => T) => T) {
    const inner = Promise.withResolvers<string>();
    const leaving = new AbortController();
    const createWork = (left: AbortSignal): Work => ({
      isSealed: false,
      id: '',
      waitFor: untilOneEnds,
      leavingSignal: () => left,
    });
    const outer = runAs(createWork(leaving.signal), () =>
      start(async () => `outer ${await waitForShared(inner.promise)}`),
    );
    const outerWait = runAs(createWork(new AbortController().signal), () => waitForShared(outer));
    const answer = outerWait.catch((error: unknown) => error);
    leaving.abort(new CallerLeft());
    inner.resolve('inner');
    return await answer;
  }

  test('does not end with the request that has begun it', async () => {
    expect(await leaveBehind(startShared)).toBe('outer inner');
  });

  test('tells its waiting callers to try again if it was not begun as a shared call', async () => {
    expect(await leaveBehind((begin) => begin())).toMatchObject(OVERLOADED);
  });

  test('ends its own waits when no caller waits for it any more', async () => {
    const abandoned = new AbortController();
    const never = new Promise<never>(() => {});
    const shared = runAs(
      { isSealed: false, id: '', waitFor: untilOneEnds, leavingSignal: () => undefined },
      () => startShared(() => waitForShared(never), abandoned.signal),
    );
    abandoned.abort('abandoned');
    await expect(shared).rejects.toBe('abandoned');
  });
});

const MICROSOFT = 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0';
const CUSTOM_ISSUER = 'https://id.example';

/** Creates a token with an invalid signature, as anyone can. */
function createForgedToken(iss = MICROSOFT): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const tid = '9188040d-6c67-4c5b-b112-36a304b66dad';
  return `${part({ alg: 'RS256', kid: 'x' })}.${part({ iss, aud: CLIENT_ID, sub: '1', tid })}.AAAA`;
}

/** Starts a host whose answers all wait until the test releases them. */
async function startHangingHost(): Promise<{ origin: string; requestCount(): number; release(): void }> {
  const gate = Promise.withResolvers<void>();
  let requestCount = 0;
  const server = createServer(async (_, response) => {
    requestCount += 1;
    await gate.promise;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, requestCount: () => requestCount, release: gate.resolve };
}

describe('many callers of one slow upstream do not block other callers', { timeout: 120_000 }, () => {
  // With the usual deadline of the upstream, a busy machine might not finish in time.
  beforeEach(() => changeDeadline(5000, 120_000));

  test('if all request a location that is not cached', async () => {
    const { server, ask, weather } = await startWeather({ env: SMALL_ENV });
    expect((await ask('Paris')).status).toBe(200);
    const slow = postRequest('/process_data', { payload: { location: '!timeout' } });
    const attack = await flood(server.url, Array(SMALL.callers).fill(slow));
    await expectAnswered(attack, async () => (await ask('Paris')).status);
    expect(attack.answered(504)).toBe(0);
    expect(weather.asked.filter((place) => place === '!timeout')).toHaveLength(1);
  });

  test('if all request /health_check, and an endpoint hangs', async () => {
    const upstream = await startHangingHost();
    const server = await startServer({ origins: { 'api.weatherapi.com': upstream.origin } });
    const attack = await flood(server.url, Array(FULL.callers).fill(getRequest('/health_check')));
    await expectAnswered(attack, async () => (await server.get('/boot')).status, FULL);
    expect(attack.answered(200)).toBe(0);
    expect(upstream.requestCount()).toBe(1);
    upstream.release();
    await expect.poll(() => attack.answered(200)).toBe(FULL.waiting + 1);
  });

  test("if all send forged tokens to the salt service, and the issuer's keys hang", async () => {
    const issuer = await Issuer.start();
    const clients = [GOOGLE, MICROSOFT].map((issuer) => ({ issuer, client_id: CLIENT_ID, seed: 1 }));
    const server = await startSalt(issuer, { clients, ...SMALL_ENV });
    const token = await issuer.token();
    expect((await server.ask(token)).status).toBe(200);
    issuer.answer = () => {};
    const forged = postRequest('/get_salt', { token: createForgedToken() });
    const attack = await flood(server.url, Array(SMALL.callers).fill(forged));
    await expectAnswered(attack, async () => (await server.ask(token)).status);
    expect(issuer.asked).toBe(2);
    expect(attack.answered(504)).toBe(0);
  });

  test("if all send forged tokens to the proving service, and the issuer's keys hang", async () => {
    const issuer = await Issuer.start();
    const clients = [
      { issuer: GOOGLE, client_id: CLIENT_ID },
      { issuer: CUSTOM_ISSUER, client_id: CLIENT_ID, jwks_url: `${CUSTOM_ISSUER}/keys` },
    ];
    const { url, ask } = await startTestFrontend({
      issuer,
      CLIENTS: JSON.stringify(clients),
      USER_REQUESTS_PER_MINUTE: '100',
      configure: (config) => ({
        ...config,
        limits: {
          ...config.limits,
          maxConnections: SMALL.connections,
          maxConcurrentRequests: SMALL.slots,
        },
      }),
    });
    expect((await ask()).status).toBe(200);
    issuer.answer = () => {};
    // Each token has a salt of its own: with the same salt, callers would also wait for each other's proof.
    const forged = Array.from({ length: SMALL.callers }, (_, salt) =>
      postRequest('/v1', requestFor(createForgedToken(CUSTOM_ISSUER), { salt: String(salt) })),
    );
    const attack = await flood(url, forged);
    await expectAnswered(attack, async () => (await ask()).status);
    expect(issuer.asked).toBe(2);
    expect(attack.answered(504)).toBe(0);
  });
});

test('one call answers all callers who ask for a location whose cached reading has just expired', async () => {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  let answerTime = Promise.resolve();
  const { server, ask, weather } = await startWeather({
    env: { WEATHER_CACHE_SECONDS: '0' },
    beforeAnswer: () => answerTime,
  });
  expect((await ask('Paris')).status).toBe(200);
  answerTime = promise;
  const waits = vi.spyOn(WaitingRoom.prototype, 'waitFor');
  onTestFinished(() => waits.mockRestore());
  const cachedRequest = postRequest('/process_data', { payload: { location: 'Paris' } });
  const callers = await flood(server.url, Array(128).fill(cachedRequest));
  // All callers wait but the first, which sends the call.
  await expect.poll(() => waits.mock.calls.length).toBe(127);
  release();
  await expect.poll(() => callers.answered(200)).toBe(128);
  expect(weather.asked).toEqual(['paris', 'paris']);
});
