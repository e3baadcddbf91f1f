/** Tests that callers who ask for the same work at the same time share it, until the last of them leaves. */
import { expect, test } from 'vitest';
import { SingleFlight } from '../../../../src/prover/frontend/single_flight.ts';

const NEVER = new AbortController().signal;

/** Creates work that lasts until the test resolves it, or until its callers have left. */
function createLastingWork() {
  const singleFlight = new SingleFlight<string>();
  const runs: { resolve: (proof: string) => void; abandoned: AbortSignal }[] = [];
  const work = (abandoned: AbortSignal) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    abandoned.addEventListener('abort', () => reject(abandoned.reason));
    runs.push({ resolve, abandoned });
    return promise;
  };
  const ask = (caller?: AbortController) => singleFlight.run('a', caller?.signal ?? NEVER, work);
  return { singleFlight, runs, ask };
}

test('a run that fails gives its error to all of its callers, and the next caller starts another run', async () => {
  const singleFlight = new SingleFlight<string>();
  let runs = 0;
  const fail = () => singleFlight.run('a', NEVER, () => Promise.reject(new Error(`run ${++runs}`)));
  const outcomes = await Promise.allSettled([fail(), fail()]);
  expect(outcomes).toMatchObject([{ reason: { message: 'run 1' } }, { reason: { message: 'run 1' } }]);
  await expect(fail()).rejects.toThrow('run 2');
  expect(singleFlight.size).toBe(0);
});

test('the work continues until its last caller has left, no matter who started it', async () => {
  const { singleFlight, runs, ask } = createLastingWork();
  const callers = [new AbortController(), new AbortController(), new AbortController()] as const;
  const [first, second, third] = callers;
  const outcomes = callers.map((caller) => ask(caller).catch((reason: unknown) => reason));
  first.abort('first left');
  third.abort('third left');
  expect(await outcomes[2]).toBe('third left');
  expect(runs.map(({ abandoned }) => abandoned.aborted)).toEqual([false]);
  second.abort('second left');
  expect(runs.map(({ abandoned }) => abandoned.aborted)).toEqual([true]);
  expect(await Promise.all(outcomes)).toEqual(['second left', 'second left', 'third left']);
  expect(singleFlight.size).toBe(0);
});

test('a caller who arrives at the moment when the last caller leaves starts the work again', async () => {
  const { singleFlight, runs, ask } = createLastingWork();
  const leaver = new AbortController();
  const abandoned = ask(leaver).catch((reason: unknown) => reason);
  leaver.signal.addEventListener('abort', () => {});
  leaver.abort('left');
  const joined = ask();
  expect(await abandoned).toBe('left');
  expect(runs).toHaveLength(2);
  // The end of the first work does not remove the second one.
  const joinedLater = ask();
  expect(runs).toHaveLength(2);
  runs[1]?.resolve('proof');
  expect(await Promise.all([joined, joinedLater])).toEqual(['proof', 'proof']);
  expect(singleFlight.size).toBe(0);
});

test('a caller that has already left starts nothing', async () => {
  const { runs, ask } = createLastingWork();
  const leaver = new AbortController();
  leaver.abort(new Error('left'));
  await expect(ask(leaver)).rejects.toThrow('left');
  expect(runs).toEqual([]);
});
