/** Runs the shipped haproxy.cfg in Debian's HAProxy, with backends that are added, killed, busy and slow. */

import { spawnSync } from 'node:child_process';
import { afterEach, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { buildInput } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import { requestFor, startTestFrontend } from '../../src/prover/frontend/support.ts';
import { createLargestRequest } from './largest.ts';
import {
  CONFIG,
  computeTag,
  HAPROXY,
  isInstalled,
  type Program,
  readWork,
  Site,
  stop,
  until,
} from './setup.ts';

/** Size of the largest body that HAProxy accepts, in bytes. */
const LIMIT = 24_576;
/** Settings under which HAProxy refuses no request of a burst. */
const PATIENT = { QUEUE_LENGTH: '100', QUEUE_SECONDS: '40', PROOF_SECONDS: '10' };
const NAME = isInstalled ? 'HAProxy' : `HAProxy (skipped: ${HAPROXY} is not installed)`;

let site: Site;

/** Returns a body that no other request has. */
const formatBody = (request: number, fields: object = {}) =>
  JSON.stringify({ request, padded_unsigned_jwt: Array(100).fill('101'), ...fields });

async function ask(body: string) {
  const response = await site.post(body);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** Returns the tag in a proof. */
const readTag = (text: string) => (JSON.parse(text) as { pi_a: string[] }).pi_a[0];

/** Waits for a backend that works on a body. @returns its address and process */
async function findWorker(body: string): Promise<[string, Program]> {
  let busyBackend: [string, Program] | undefined;
  await until('a backend has the request', () => {
    busyBackend = [...site.backends].find(([, backend]) =>
      readWork(backend).begun.includes(computeTag(body)),
    );
    return busyBackend !== undefined;
  });
  return busyBackend as [string, Program];
}

/** Kills the backend that works on a body, and checks that another one answers. */
async function expectSecondTry(body: string): Promise<void> {
  const answer = ask(body);
  const [address, backend] = await findWorker(body);
  await stop(backend);
  const { status, text } = await answer;
  expect([status, readTag(text)]).toEqual([200, computeTag(body)]);
  const otherBackends = [...site.backends].filter(([backend]) => backend !== address);
  expect(otherBackends.flatMap(([, backend]) => readWork(backend).ended)).toContain(computeTag(body));
  expect(readWork(backend).ended).not.toContain(computeTag(body));
}

describe.skipIf(!isInstalled)(NAME, () => {
  afterEach(() => site?.stop());

  test('accepts the configuration without a warning, with and without a DNS server of its own', () => {
    for (const env of [{}, { RESOLVER: '127.0.0.1:53' }, { METRICS_PORT: '8405' }]) {
      const { status, stdout, stderr } = spawnSync(HAPROXY, ['-c', '-f', CONFIG], { env, encoding: 'utf8' });
      expect([status, stdout + stderr]).toEqual([0, expect.not.stringMatching(/WARNING|ALERT/)]);
    }
  });

  test('serves metrics on loopback if METRICS_PORT is set, and they contain nothing of a request', async () => {
    const port = await findFreePort();
    site = await Site.start({ ...PATIENT, METRICS_PORT: String(port) });
    await site.add('127.0.0.1', 10);
    await site.ready(1);
    await ask(formatBody(1));
    const metrics = await fetch(`http://127.0.0.1:${port}/metrics`);
    const text = await metrics.text();
    expect(text).toContain('haproxy_backend_http_responses_total{proxy="backends",code="2xx"} 1\n');
    expect(text).not.toContain('padded_unsigned_jwt');
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
  });

  test('loses and swaps no answer of 40 simultaneous requests if a backend is killed and another added', async () => {
    site = await Site.start(PATIENT);
    const killed = await site.add('127.0.0.1', 100);
    const survivor = await site.add('127.0.0.2', 100);
    await site.ready(2);

    const bodies = Array.from({ length: 40 }, (_, request) => formatBody(request));
    const answers = Promise.all(bodies.map(ask));
    await until('the burst is under way', () => readWork(killed).ended.length >= 5);
    await until('a proof is being made', () => readWork(killed).begun.length > readWork(killed).ended.length);
    await stop(killed);
    const added = await site.add('127.0.0.3', 100, 500);

    const received = (await answers).map(({ status, text }) => [
      status,
      status === 200 ? readTag(text) : text,
    ]);
    expect(received).toEqual(bodies.map((body) => [200, computeTag(body)]));
    const [lost = ''] = readWork(killed).begun.filter((tag) => !readWork(killed).ended.includes(tag));
    // Another backend made the proof that the killed one had begun.
    expect([...readWork(survivor).ended, ...readWork(added).ended]).toContain(lost);
    expect(readWork(added).ended.length).toBeGreaterThan(2);
    for (const backend of site.backends.values()) expect(readWork(backend).maxSimultaneous).toBe(1);
    expect(site.log()).not.toMatch(/padded_unsigned_jwt|pi_a/);
    expect(site.log()).toMatch(/backend\d+ POST \/input 200 .* retries=\+1/);
  });

  test('sends the largest request of a front end again if a backend is killed', async () => {
    site = await Site.start(PATIENT);
    for (const address of ['127.0.0.1', '127.0.0.2']) await site.add(address, 300);
    await site.ready(2);

    const { request, key } = createLargestRequest();
    const body = JSON.stringify(buildInput(request, key, PROFILES.full).circuit);
    // The body is near HAProxy's default buffer of 16 KB, and far from the limit.
    expect(body.length).toBeGreaterThan(13_500);
    expect(body.length).toBeLessThan(LIMIT / 1.5);
    await expectSecondTry(body);
  });

  test('sends a body of the maximum size again, and refuses a larger body', async () => {
    site = await Site.start(PATIENT);
    for (const address of ['127.0.0.1', '127.0.0.2']) await site.add(address, 300);
    await site.ready(2);

    const room = LIMIT - formatBody(1, { more: '' }).length;
    await expectSecondTry(formatBody(1, { more: 'x'.repeat(room) }));
    const refused = await ask(formatBody(1, { more: 'x'.repeat(room + 1) }));
    expect([refused.status, refused.text]).toEqual([413, `The body must have at most ${LIMIT} bytes`]);
  });

  test('forwards the answers of a backend, and tries another backend only after status 503', async () => {
    site = await Site.start(PATIENT);
    await site.add('127.0.0.1', 1);
    await site.add('127.0.0.2', 1);
    await site.ready(2);
    for (const fault of [400, 500]) {
      const body = formatBody(fault, { fault });
      expect(await ask(body)).toMatchObject({
        status: fault,
        text: expect.stringMatching(`status ${fault} of`),
      });
      const tries = [...site.backends.values()].flatMap((backend) => readWork(backend).begun);
      expect(tries.filter((tag) => tag === computeTag(body))).toHaveLength(1);
    }
    const busy = formatBody(503, { fault: 503 });
    expect((await ask(busy)).status).toBe(503);
    const triers = [...site.backends.values()].filter((backend) =>
      readWork(backend).begun.includes(computeTag(busy)),
    );
    expect(triers).toHaveLength(2);
  });

  test('refuses a request immediately if the queue is full, and later if it waited too long', async () => {
    site = await Site.start({ QUEUE_LENGTH: '2', QUEUE_SECONDS: '1', PROOF_SECONDS: '10' });
    await site.add('127.0.0.1', 1500);
    await site.ready(1);
    const running = ask(formatBody(0));
    await findWorker(formatBody(0));
    const started = performance.now();
    const answers = await Promise.all(
      [1, 2, 3].map(async (request) => {
        const answer = await ask(formatBody(request));
        return { ...answer, seconds: (performance.now() - started) / 1000 };
      }),
    );
    for (const { status, text, headers } of answers) {
      expect([status, text, headers.get('retry-after')]).toEqual([503, 'Server at capacity', '5']);
    }
    const [first, second, third] = answers.map(({ seconds }) => seconds).sort();
    expect(first).toBeLessThan(0.9);
    for (const seconds of [second, third]) expect(seconds).toBeGreaterThan(0.9);
    expect((await running).status).toBe(200);
  });

  test('tells a backend that the caller has left: the next request begins immediately', async () => {
    site = await Site.start({ PROOF_SECONDS: '60' });
    const backend = await site.add('127.0.0.1', 30_000);
    await site.ready(1);
    const callers = [0, 1, 2].map((request) => {
      const leaver = new AbortController();
      return { leaver, body: formatBody(request), left: site.post(formatBody(request), leaver.signal) };
    });
    const outcomes = callers.map(({ left }) => left.catch((error: Error) => error.name));
    await until('a proof is being made', () => readWork(backend).begun.length === 1);
    for (const { leaver } of callers) leaver.abort();
    expect(await Promise.all(outcomes)).toEqual(Array(3).fill('AbortError'));
    await until('the backend knows', () => readWork(backend).left.length === readWork(backend).begun.length);
    // The other requests, which waited for this backend, have left the queue, so that the next request begins
    // at once.
    const last = new AbortController();
    const nextRequest = site.post(formatBody(3), last.signal).catch(() => {});
    await until('the next one is begun', () => readWork(backend).begun.includes(computeTag(formatBody(3))));
    last.abort();
    await nextRequest;
    expect(readWork(backend).ended).toEqual([]);
  });

  test('also tells a backend that the callers of a front end have left', async () => {
    site = await Site.start({ PROOF_SECONDS: '60' });
    const backend = await site.add('127.0.0.1', 30_000);
    await site.ready(1);
    const { post, token } = await startTestFrontend({ PROVER_URI: site.inputUrl });
    const request = requestFor(await token());
    const callers = [new AbortController(), new AbortController()];
    const abandoned = callers.map(({ signal }) =>
      post(request, { signal }).catch((error: Error) => error.name),
    );
    await until('a proof is being made', () => readWork(backend).begun.length === 1);
    for (const caller of callers) caller.abort();
    expect(await Promise.all(abandoned)).toEqual(['AbortError', 'AbortError']);
    await until('the backend knows', () => readWork(backend).left.length === 1);
    expect(readWork(backend).ended).toEqual([]);
  });

  test('gives up on a backend that is too slow, and tries no other backend', async () => {
    site = await Site.start({ PROOF_SECONDS: '1' });
    await site.add('127.0.0.1', 5000);
    await site.ready(1);
    const { status, text } = await ask(formatBody(0));
    expect([status, text]).toEqual([504, 'The proving component took too long']);
    expect(readWork(site.backends.get('127.0.0.1') as Program).begun).toHaveLength(1);
  });

  test('answers 503 without a backend, and serves only the paths of the contract', async () => {
    site = await Site.start();
    const { status, text, headers } = await ask(formatBody(0));
    expect([status, text, headers.get('retry-after')]).toEqual([503, 'Server at capacity', '5']);
    for (const path of ['/backends', '/healthz']) expect((await site.get(path)).status).toBe(503);
    await site.add('127.0.0.1', 1);
    await site.ready(1);
    expect((await site.get('/input')).status).toBe(404);
    expect((await ask(formatBody(0))).status).toBe(200);
  });

  test('forwards the health of a backend, even while all backends are proving', async () => {
    site = await Site.start(PATIENT);
    await site.add('127.0.0.1', 1500);
    await site.ready(1);
    const running = ask(formatBody(0));
    await findWorker(formatBody(0));
    const health = await site.get('/healthz');
    expect([health.status, await health.json()]).toEqual([200, { status: 'proving' }]);
    expect((await running).status).toBe(200);
  });
});
