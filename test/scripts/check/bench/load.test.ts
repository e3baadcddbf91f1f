import { spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import {
  findLoad,
  loadByAutocannon,
  parseWrk,
  writeLuaScript,
} from '../../../../scripts/check/bench/load.ts';
import { listenOnLoopback } from '../../../../src/testing/fakes.ts';

const REPORT = `Running 2s test @ http://127.0.0.1:3000/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.65ms    4.46ms  66.80ms   95.64%
    Req/Sec    16.16k     3.28k   21.61k    65.00%
  Latency Distribution
     50%    1.53ms
     75%    2.01ms
     90%    4.32ms
     99%   21.43ms
  32217 requests in 2.00s, 8.42MB read
Requests/sec:  16072.93
Transfer/sec:      4.20MB
`;

test('reads the report of wrk', () => {
  expect(parseWrk(REPORT)).toEqual({ requests: 32217, perSecond: 16072.93, p99Ms: 21.43 });
});

test.each([
  ['812.00us', 0.812],
  ['1.02s', 1020],
  ['1.50m', 90_000],
])('reads the latency %s', (latency, p99Ms) => {
  expect(parseWrk(REPORT.replace('21.43ms', latency)).p99Ms).toBeCloseTo(p99Ms);
});

test.each([
  ['refused', `${REPORT}  Non-2xx or 3xx responses: 7\n`, 'Non-2xx or 3xx responses: 7'],
  ['failed', `${REPORT}  Socket errors: connect 0, read 3, write 0, timeout 0\n`, 'read 3'],
  ['never answered', REPORT.replace('32217 requests', '0 requests'), 'no answers'],
  ['not reported', 'unable to connect', 'no answers'],
])('no figure comes from requests that were %s', (_name, report, message) => {
  expect(() => parseWrk(report)).toThrow(message);
});

test('a fixed request has no Lua function, which wrk would run for each request', () => {
  expect(writeLuaScript({ path: '/' }, 'x')).toBe('');
  const fixed = writeLuaScript({ path: '/', bodies: ['{"a":"]] \\" \'"}'] }, 'x');
  expect(fixed).toContain('wrk.body = [==[{"a":"]] \\" \'"}]==]');
  expect(fixed).not.toContain('function');
});

/** Starts a server on loopback that records the bodies of its requests. */
async function listen(status = 200): Promise<{ origin: string; bodies: string[] }> {
  const bodies: string[] = [];
  const { origin, close } = await listenOnLoopback(async (request, response) => {
    bodies.push(await text(request));
    response.writeHead(status).end();
  });
  onTestFinished(close);
  return { origin, bodies };
}

const TARGET = { path: '/', bodies: ['{"place":"a {n}"}', '{"place":"b {n}"}'] };
const AMOUNT = { connections: 2, seconds: 1 };
const hasWrk = spawnSync('wrk', ['--version']).error === undefined;
const LOADS = [
  { name: 'autocannon', load: loadByAutocannon },
  ...(hasWrk ? [{ name: 'wrk', load: findLoad().load }] : []),
];

test.each(LOADS)('$name sends all bodies in turn, each with a string of its own', async ({ load }) => {
  const { origin, bodies } = await listen();
  const { requests, perSecond, p99Ms } = await load(origin, TARGET, AMOUNT);
  const places = bodies.map((body) => (JSON.parse(body) as { place: string }).place);
  expect(new Set(places).size).toBe(bodies.length);
  for (const letter of ['a ', 'b ']) expect(places.some((place) => place.startsWith(letter))).toBe(true);
  expect(requests).toBeGreaterThan(0);
  // Some requests were under way at the end.
  expect(bodies.length - requests).toBeLessThanOrEqual(2 * AMOUNT.connections);
  expect(perSecond).toBeGreaterThan(0);
  expect(p99Ms).toBeGreaterThanOrEqual(0);
});

test.each(LOADS)('$name gives no figure if requests are refused', async ({ load }) => {
  const { origin } = await listen(503);
  await expect(load(origin, { path: '/' }, AMOUNT)).rejects.toThrow(/Non-2xx|refused/);
});
