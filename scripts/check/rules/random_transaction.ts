/** Makes random transactions with the probe's functions. A network accepts most of them, and refuses some. */
import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import type { Probe } from './case.ts';

export type Random = (below: number) => number;

/** Kind of a value or a parameter. */
export type Kind = 'Thing' | 'Frozen' | 'Pinned' | 'Box' | 'Potato' | 'Coin' | 'u64' | 'clock';
/** Kind of a parameter. `Thing&` is a thing that is only read, and that may be frozen. */
type ParameterKind = Exclude<Kind, 'Frozen'> | 'Thing&';

/** An argument that both nodes understand; it names an object by its place in the pool. */
type Source =
  | { readonly object: number }
  | { readonly result: number; readonly nested?: number }
  | { readonly number: number }
  | { readonly named: 'gas' | 'clock' };

type Step =
  | { readonly call: string; readonly args: readonly Source[] }
  /** Coins go to another address, because they would otherwise pay for gas. */
  | { readonly transfer: readonly Source[]; readonly isAway: boolean }
  | { readonly split: Source; readonly amounts: readonly number[] }
  | { readonly merge: Source; readonly coins: readonly Source[] };

export type Plan = readonly Step[];

interface Signature {
  readonly takes: readonly ParameterKind[];
  /** Indices of the parameters that the function takes by value. Their arguments can't be used afterwards. */
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
  isConsumed: boolean;
}

/** Makes a random plan. @param pool kinds of the objects that exist */
export function randomPlan(random: Random, pool: readonly Kind[]): Plan {
  const steps: Step[] = [];
  const values: Value[] = [
    ...pool.map((kind, object) => ({ source: { object }, kind, isConsumed: false })),
    { source: { named: 'clock' }, kind: 'clock', isConsumed: false },
  ];
  const results: Value[] = [];
  const listFitting = (parameter: ParameterKind) =>
    values.filter(
      ({ kind, isConsumed }) =>
        !isConsumed && (parameter === 'Thing&' ? /Thing|Frozen/.test(kind) : kind === parameter),
    );
  const choose = (parameter: ParameterKind): Source => {
    if (parameter === 'u64' && random(4) > 0) return { number: random(4) };
    // In one of 30 choices, the argument is any value, even one that was consumed.
    const candidates = random(30) === 0 ? values : listFitting(parameter);
    return candidates[random(candidates.length)]?.source ?? { number: random(4) };
  };
  const chooseCall = () => {
    const callableNames = NAMES.filter((name) =>
      FUNCTIONS[name]?.takes.every((parameter) => parameter === 'u64' || listFitting(parameter).length > 0),
    );
    const names = random(40) === 0 ? NAMES : callableNames;
    return names[random(names.length)] ?? '';
  };
  const add = (step: Step, gives: readonly Kind[] = []) => {
    for (const [nested, kind] of gives.entries()) {
      const command = steps.length;
      const source =
        gives.length === 1 && random(2) === 0 ? { result: command } : { result: command, nested };
      const value = { source, kind, isConsumed: false };
      values.push(value);
      results.push(value);
    }
    steps.push(step);
  };
  const consume = (source: Source | undefined) => {
    const value = values.find((candidate) => candidate.source === source);
    if (value !== undefined) value.isConsumed = true;
  };
  // One plan in eight uses the clock together with a value that is not shared yet. Entry functions may then
  // not take the clock.
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
    } else if (random(6) === 0 && listFitting('Coin').length > 0) {
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
  const dispose = ({ source, kind, isConsumed }: Value) => {
    if (isConsumed || kind === 'u64' || random(30) === 0) return;
    if (kind === 'Pinned') add({ call: 'share_pinned', args: [source] });
    else if (kind === 'Potato') add({ call: 'eat', args: [source] });
    else add({ transfer: [source], isAway: kind === 'Coin' });
  };
  // Usually, each result is used.
  for (const value of results) dispose(value);
  return steps;
}

/** Adds a plan's commands to a transaction. @param ids of the pool's objects on the node */
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
    const { result: command, nested } = source;
    return nested === undefined
      ? { $kind: 'Result', Result: command }
      : { $kind: 'NestedResult', NestedResult: [command, nested] };
  };
  for (const step of plan) {
    if ('call' in step) call(tx, step.call, step.args.map(argument));
    else if ('transfer' in step) {
      tx.transferObjects(step.transfer.map(argument), step.isAway ? AWAY : sender);
    } else if ('split' in step) tx.splitCoins(argument(step.split), [...step.amounts]);
    else tx.mergeCoins(argument(step.merge), step.coins.map(argument));
  }
}
