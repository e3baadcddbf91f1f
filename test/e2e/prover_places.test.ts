/**
 * Tests the proving service with 200 simultaneous callers and an engine that takes 2 s for a proof, in real
 * time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test, vi } from 'vitest';
import { FakeBackend, requestFor, startTestFrontend } from '../src/prover/frontend/support.ts';

const CALLERS = 200;
const PROOF_MS = 2000;
const ANSWER_SECONDS = 12;

const { decodeCalls } = vi.hoisted(() => ({ decodeCalls: vi.fn() }));
vi.mock('jose', async (original) => {
  const jose = await original<typeof import('jose')>();
  return {
    ...jose,
    decodeJwt: (jwt: string) => {
      decodeCalls();
      return jose.decodeJwt(jwt);
    },
  };
});
beforeEach(() => decodeCalls.mockClear());

/** Fakes an engine that makes one proof at a time, in the order of the requests. */
async function startSlowBackend(): Promise<FakeBackend> {
  const backend = await FakeBackend.start();
  const { prove } = backend;
  let last: Promise<unknown> = Promise.resolve();
  backend.prove = (...proveArguments) => {
    last = last.then(() => sleep(PROOF_MS)).then(() => prove(...proveArguments));
  };
  return backend;
}

test('the front end answers every admitted caller in time, and decodes no token of the refused callers', async () => {
  const frontend = await startTestFrontend({
    backend: await startSlowBackend(),
    ANSWER_SECONDS: String(ANSWER_SECONDS),
    PROOF_SECONDS: String(PROOF_MS / 1000),
    USER_REQUESTS_PER_MINUTE: '10000',
  });
  // The first request fetches the issuer's keys, which the service then keeps.
  expect((await frontend.ask()).status).toBe(200);
  const jwt = await frontend.token();
  for (let burst = 0; burst < 2; burst++) {
    decodeCalls.mockClear();
    const answers = await Promise.all(
      Array.from({ length: CALLERS }, async (_, caller) => {
        const start = performance.now();
        const answer = await frontend.post(requestFor(jwt, { salt: String(caller) }));
        return { ...answer, seconds: (performance.now() - start) / 1000 };
      }),
    );
    const proved = answers.filter(({ status }) => status === 200);
    const refused = answers.filter((answer) => !proved.includes(answer));
    expect(proved.length).toBeGreaterThanOrEqual(5);
    // On a busy machine, the last callers arrive after the first proofs, whose places are then free.
    const arrivalMs = 1000 * Math.max(...refused.map(({ seconds }) => seconds));
    expect(proved.length).toBeLessThanOrEqual(5 + arrivalMs / PROOF_MS);
    for (const { seconds } of proved) expect(seconds).toBeLessThan(ANSWER_SECONDS);
    for (const { status, body, headers } of refused) {
      expect([status, body['code']]).toEqual([503, 'PROVER_BUSY']);
      expect(headers.get('retry-after')).toMatch(/^[1-3]$/);
    }
    expect(decodeCalls).toHaveBeenCalledTimes(proved.length);
  }
});
