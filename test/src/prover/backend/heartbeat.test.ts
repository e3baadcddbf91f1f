/**
 * Tests which workers are killed: those that hang, but not those that work for long or have nothing to do.
 * supervisor.test.ts tests this with processes.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watch } from '../../../../src/prover/backend/heartbeat.ts';
import type { EngineError, EngineStatus } from '../../../../src/prover/engine.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/**
 * Watches a fake worker, which answers each request with the next status of the test. Without a status, it
 * does not answer.
 */
function watchFake(next: () => Partial<EngineStatus> | undefined) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const reasons: string[] = [];
  let beats = 0;
  watch({
    ended,
    kill(reason?: EngineError) {
      reasons.push(`${reason?.fault}: ${reason?.message}`);
      end();
    },
    status() {
      beats += 1;
      const status = next();
      if (status === undefined) return new Promise(() => {});
      return Promise.resolve({ state: 'idle', path: 'portable', progress: 0, ...status });
    },
  });
  return { reasons, end, countBeats: () => beats };
}

const passSeconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1000);

test('a worker is asked every second, as long as it runs', async () => {
  const { reasons, countBeats, end } = watchFake(() => ({}));
  await passSeconds(100);
  expect(countBeats()).toBe(100);
  end();
  await passSeconds(100);
  expect(countBeats()).toBe(100);
  expect(reasons).toEqual([]);
});

test('a worker is killed once it has not answered for 3 s', async () => {
  let isSilent = false;
  const { reasons } = watchFake(() => (isSilent ? undefined : {}));
  await passSeconds(50);
  isSilent = true;
  await passSeconds(3);
  expect(reasons).toEqual([]);
  await passSeconds(1);
  expect(reasons).toEqual(['hung: the engine did not answer for 3 s']);
  await passSeconds(10);
  expect(reasons).toHaveLength(1);
});

test('a worker is killed once its proof has made no progress for 30 s', async () => {
  const { reasons } = watchFake(() => ({ state: 'proving', progress: 7 }));
  await passSeconds(30);
  expect(reasons).toEqual([]);
  await passSeconds(1);
  expect(reasons).toEqual(['hung: the engine made no progress for 30 s']);
});

test('a worker may take an hour for a proof that makes progress', async () => {
  let beats = 0;
  const { reasons } = watchFake(() => ({ state: 'proving', progress: Math.floor(beats++ / 29) }));
  await passSeconds(3600);
  expect(reasons).toEqual([]);
});

test.each(['idle', 'loading', 'no key'] as const)(
  'a worker whose state is "%s" needs no progress',
  async (state) => {
    const { reasons } = watchFake(() => ({ state, progress: 7 }));
    await passSeconds(100);
    expect(reasons).toEqual([]);
  },
);

test('each proof of a worker has 30 s of its own', async () => {
  let beats = 0;
  const { reasons } = watchFake(() => ({ state: beats++ % 20 === 19 ? 'idle' : 'proving', progress: 7 }));
  await passSeconds(100);
  expect(reasons).toEqual([]);
});
