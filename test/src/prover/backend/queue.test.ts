import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Turns } from '../../../../src/prover/backend/queue.ts';

interface Visitor {
  /** Whether it leaves the line before its turn. */
  readonly leaves: boolean;
  /** How long it stays. */
  readonly ticks: number;
}

const visitors = fc.array(fc.record({ leaves: fc.boolean(), ticks: fc.nat(3) }), { maxLength: 8 });

/** Each enters when it is its turn. @returns who did, in this order */
async function visit(turns: Turns, all: readonly Visitor[]): Promise<number[]> {
  const entered: number[] = [];
  let inside = 0;
  const end = await turns.take();
  const visits = all.map(async ({ leaves, ticks }, index) => {
    const signal = leaves ? AbortSignal.timeout(0) : undefined;
    const done = await turns.take(signal).catch(() => undefined);
    if (!done) return;
    entered.push(index);
    inside += 1;
    expect(inside).toBe(1);
    for (let tick = 0; tick < ticks; tick++) await setImmediate();
    inside -= 1;
    done();
  });
  // Those that leave have done so.
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(entered).toEqual([]);
  end();
  await Promise.all(visits);
  return entered;
}

test('one at a time, in the order of arrival, whoever leaves the line', async () => {
  await fc.assert(
    fc.asyncProperty(visitors, async (all) => {
      const turns = new Turns();
      const staying = all.flatMap(({ leaves }, index) => (leaves ? [] : [index]));
      expect(await visit(turns, all)).toEqual(staying);
      // It is free again.
      expect(await visit(turns, all)).toEqual(staying);
    }),
    { numRuns: 30 },
  );
});

test('one who leaves the line gets the reason', async () => {
  const turns = new Turns();
  await turns.take();
  const visitor = new AbortController();
  const turn = turns.take(visitor.signal);
  visitor.abort('left');
  await expect(turn).rejects.toBe('left');
  await expect(new Turns().take(AbortSignal.abort('left before'))).rejects.toBe('left before');
});
