/**
 * A worker that hangs is ended. A worker that works for long, or has nothing to do, is not.
 * supervisor.test.ts tests this with processes.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watch } from '../../../../src/prover/backend/heartbeat.ts';
import type { EngineError, EngineStatus } from '../../../../src/prover/engine.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/**
 * A worker that answers each question with the next status of the test. Without a status, it does not answer.
 */
function watched(next: () => Partial<EngineStatus> | undefined) {
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
  return { reasons, end, asked: () => beats };
}

const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1000);

test('a worker is asked every second, as long as it runs', async () => {
  const { reasons, asked: countBeats, end } = watched(() => ({}));
  await seconds(100);
  expect(countBeats()).toBe(100);
  end();
  await seconds(100);
  expect(countBeats()).toBe(100);
  expect(reasons).toEqual([]);
});

test('a worker is ended once it has not answered for 3 s', async () => {
  let isSilent = false;
  const { reasons } = watched(() => (isSilent ? undefined : {}));
  await seconds(50);
  isSilent = true;
  await seconds(3);
  expect(reasons).toEqual([]);
  await seconds(1);
  expect(reasons).toEqual(['hung: the engine did not answer for 3 s']);
  await seconds(10);
  expect(reasons).toHaveLength(1);
});

test('a worker is ended once its proof has made no progress for 30 s', async () => {
  const { reasons } = watched(() => ({ state: 'proving', progress: 7 }));
  await seconds(30);
  expect(reasons).toEqual([]);
  await seconds(1);
  expect(reasons).toEqual(['hung: the engine made no progress for 30 s']);
});

test('a worker may take an hour for a proof that makes progress', async () => {
  let beats = 0;
  const { reasons } = watched(() => ({ state: 'proving', progress: Math.floor(beats++ / 29) }));
  await seconds(3600);
  expect(reasons).toEqual([]);
});

test.each(['idle', 'loading', 'no key'] as const)(
  'a worker needs no progress while it is: %s',
  async (state) => {
    const { reasons } = watched(() => ({ state, progress: 7 }));
    await seconds(100);
    expect(reasons).toEqual([]);
  },
);

test('a worker has 30 s again for each proof', async () => {
  let beats = 0;
  const { reasons } = watched(() => ({ state: beats++ % 20 === 19 ? 'idle' : 'proving', progress: 7 }));
  await seconds(100);
  expect(reasons).toEqual([]);
});
