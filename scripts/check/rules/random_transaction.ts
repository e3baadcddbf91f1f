/** Makes random transactions with the probe's functions. A network accepts most of them, and refuses some. */
import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import type { Probe } from './case.ts';

export type Random = (below: number) => number;

/** Kind of a value or a parameter. */
export type Kind = 'Thing' | 'Frozen' | 'Pinned' | 'Box' | 'Potato' | 'Coin' | 'u64' | 'clock';
/** Kind of a parameter. `Thing&` is a thing that is only read, and that may be frozen. */
type Taken = Exclude<Kind, 'Frozen'> | 'Thing&';

/** An argument that both nodes understand; it names an object by its place in the pool. */
type Source =
  | { readonly object: number }
  | { readonly result: number; readonly nested?: number }
  | { readonly number: number }
  | { readonly named: 'gas' | 'clock' };

type Step =
  | { readonly call: string; readonly args: readonly Source[] }
  /** Coins go to another address, since they would pay for gas otherwise. */
  | { readonly transfer: readonly Source[]; readonly isAway: boolean }
  | { readonly split: Source; readonly amounts: readonly number[] }
  | { readonly merge: Source; readonly coins: readonly Source[] };

export type Plan = readonly Step[];

interface Signature {
  readonly takes: readonly Taken[];
  /** Indices of the parameters that the function takes by value. Their arguments are gone afterwards. */
  readonly consumes?: readonly number[];
  readonly gives?: readonly Kind[];
}

const FUNCTIONS: Readonly<Record<string, Signature>> = {
  thing: { takes: ['u64'], gives: ['Thing'] },
  two: { takes: [], gives: ['Thing', 'Thing'] },
  pinned: { takes: ['u64'], gives: ['Pinned'] },
  potato: { takes: ['u64'], gives: ['Potato'] },
  eat: { takes: ['Potato'], consumes: [0] },
  read: { takes: ['Thing&'] },
  write: { takes: ['Thing', 'u64'] },
  both: { takes: ['Thing', 'Thing&'] },
  swap: { takes: ['Thing', 'Thing'] },
  look: { takes: ['Thing&', 'Thing&'] },
  absorb: { takes: ['Thing', 'Thing'], consumes: [1] },
  take_then_read: { takes: ['Thing', 'Thing&'], consumes: [0] },
  take: { takes: ['Thing'], consumes: [0] },
  wrap: { takes: ['Thing'], consumes: [0], gives: ['Box'] },
  unwrap: { takes: ['Box'], consumes: [0], gives: ['Thing'] },
  share: { takes: ['Thing'], consumes: [0] },
  freeze_it: { takes: ['Thing'], consumes: [0] },
  share_pinned: { takes: ['Pinned'], consumes: [0] },
  end_pinned: { takes: ['Pinned'], consumes: [0] },
  join: { takes: ['Pinned', 'clock'] },
  enter: { takes: ['u64'] },
  enter_clock: { takes: ['clock'] },
  enter_pinned: { takes: ['Pinned'] },
  enter_thing: { takes: ['Thing&'] },
  enter_potato: { takes: ['Potato'], consumes: [0] },
  bump: { takes: ['u64'] },
  is: { takes: ['u64', 'u64'] },
  subtract: { takes: ['u64', 'u64'], gives: ['u64'] },
  item: { takes: ['u64'], gives: ['u64'] },
  bare: { takes: ['u64'] },
  coded: { takes: ['u64'] },
};
const AWAY = `0x${'a'.repeat(64)}`;
const NAMES = Object.keys(FUNCTIONS);

interface Value {
  readonly source: Source;
  readonly kind: Kind;
  isGone: boolean;
}

/** @param pool kinds of the objects that exist */
export function randomPlan(random: Random, pool: readonly Kind[]): Plan {
  const steps: Step[] = [];
  const values: Value[] = [
    ...pool.map((kind, object) => ({ source: { object }, kind, isGone: false })),
    { source: { named: 'clock' }, kind: 'clock', isGone: false },
  ];
  const results: Value[] = [];
  const fitting = (taken: Taken) =>
    values.filter(
      ({ kind, isGone }) => !isGone && (taken === 'Thing&' ? /Thing|Frozen/.test(kind) : kind === taken),
    );
  const choose = (taken: Taken): Source => {
    if (taken === 'u64' && random(4) > 0) return { number: random(4) };
    // In one of 30 choices, the argument is any value, even one that no longer exists.
    const candidates = random(30) === 0 ? values : fitting(taken);
    return candidates[random(candidates.length)]?.source ?? { number: random(4) };
  };
  const chooseCall = () => {
    const possible = NAMES.filter((name) =>
      FUNCTIONS[name]?.takes.every((taken) => taken === 'u64' || fitting(taken).length > 0),
    );
    const names = random(40) === 0 ? NAMES : possible;
    return names[random(names.length)] ?? '';
  };
  const add = (step: Step, gives: readonly Kind[] = []) => {
    for (const [nested, kind] of gives.entries()) {
      const at = steps.length;
      const source = gives.length === 1 && random(2) === 0 ? { result: at } : { result: at, nested };
      const value = { source, kind, isGone: false };
      values.push(value);
      results.push(value);
    }
    steps.push(step);
  };
  const consume = (source: Source | undefined) => {
    const value = values.find((candidate) => candidate.source === source);
    if (value !== undefined) value.isGone = true;
  };
  // The clock comes together with a value that is not shared yet. Some entry functions may not take the clock
  // then.
  if (random(8) === 0) {
    add({ call: 'pinned', args: [{ number: 1 }] }, ['Pinned']);
    add({ call: 'join', args: [results[0]?.source ?? { number: 1 }, { named: 'clock' }] });
    if (random(2) === 0) add({ call: 'enter_clock', args: [{ named: 'clock' }] });
  }
  const addStep = () => {
    if (random(8) === 0) {
      const amounts = Array.from({ length: 1 + random(2) }, () => 1 + random(9));
      add(
        { split: { named: 'gas' }, amounts },
        amounts.map((): Kind => 'Coin'),
      );
    } else if (random(6) === 0 && fitting('Coin').length > 0) {
      const coins = [choose('Coin')];
      add({ merge: random(2) === 0 ? { named: 'gas' } : choose('Coin'), coins });
      for (const coin of coins) consume(coin);
    } else {
      const call = chooseCall();
      const { takes = [], consumes = [], gives = [] } = FUNCTIONS[call] ?? {};
      const args = takes.map(choose);
      for (const index of consumes) consume(args[index]);
      add({ call, args }, gives);
    }
  };
  for (let count = 1 + random(5); count > 0; count -= 1) addStep();
  const dispose = ({ source, kind, isGone }: Value) => {
    if (isGone || kind === 'u64' || random(30) === 0) return;
    if (kind === 'Pinned') add({ call: 'share_pinned', args: [source] });
    else if (kind === 'Potato') add({ call: 'eat', args: [source] });
    else add({ transfer: [source], isAway: kind === 'Coin' });
  };
  // Mostly, no result is left unused.
  results.forEach(dispose);
  return steps;
}

/** @param ids of the pool's objects on the node */
export function buildPlan(
  plan: Plan,
  tx: Transaction,
  { call, sender }: Probe,
  ids: readonly string[],
): void {
  const argument = (source: Source): TransactionArgument => {
    if ('object' in source) return tx.object(ids[source.object] ?? '');
    if ('number' in source) return tx.pure.u64(source.number);
    if ('named' in source) return source.named === 'gas' ? tx.gas : tx.object.clock();
    const { result, nested } = source;
    return nested === undefined
      ? { $kind: 'Result', Result: result }
      : { $kind: 'NestedResult', NestedResult: [result, nested] };
  };
  for (const step of plan) {
    if ('call' in step) call(tx, step.call, step.args.map(argument));
    else if ('transfer' in step) {
      tx.transferObjects(step.transfer.map(argument), step.isAway ? AWAY : sender);
    } else if ('split' in step) tx.splitCoins(argument(step.split), [...step.amounts]);
    else tx.mergeCoins(argument(step.merge), step.coins.map(argument));
  }
}
