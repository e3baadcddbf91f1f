import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Queue } from '../../../../src/prover/backend/queue.ts';

interface Visitor {
  /** Whether the caller leaves the queue before its turn. */
  readonly leaves: boolean;
  /** Number of ticks for which the caller stays. */
  readonly ticks: number;
}

const visitorLists = fc.array(fc.record({ leaves: fc.boolean(), ticks: fc.nat(3) }), { maxLength: 8 });

/** Lets each caller enter in its turn. @returns the indexes of the callers that entered, in order of entry */
async function visit(queue: Queue, visitors: readonly Visitor[]): Promise<number[]> {
  const entered: number[] = [];
  let inside = 0;
  const end = await queue.enter();
  const visits = visitors.map(async ({ leaves, ticks }, index) => {
    const signal = leaves ? AbortSignal.timeout(0) : undefined;
    const done = await queue.enter(signal).catch(() => undefined);
    if (!done) return;
    entered.push(index);
    inside += 1;
    expect(inside).toBe(1);
    for (let tick = 0; tick < ticks; tick++) await setImmediate();
    inside -= 1;
    done();
  });
  // The callers that leave have left by now.
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(entered).toEqual([]);
  end();
  await Promise.all(visits);
  return entered;
}

test('callers enter one at a time, in the order of their arrival, even if others leave the queue', async () => {
  await fc.assert(
    fc.asyncProperty(visitorLists, async (visitors) => {
      const queue = new Queue();
      const stayingIndexes = visitors.flatMap(({ leaves }, index) => (leaves ? [] : [index]));
      expect(await visit(queue, visitors)).toEqual(stayingIndexes);
      // The queue is free again.
      expect(await visit(queue, visitors)).toEqual(stayingIndexes);
    }),
    { numRuns: 30 },
  );
});

test('a caller that leaves the queue gets the reason of its signal', async () => {
  const queue = new Queue();
  await queue.enter();
  const visitor = new AbortController();
  const turn = queue.enter(visitor.signal);
  visitor.abort('left');
  await expect(turn).rejects.toBe('left');
  await expect(new Queue().enter(AbortSignal.abort('left before'))).rejects.toBe('left before');
});
