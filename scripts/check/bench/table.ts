import { Console } from 'node:console';
import { Writable } from 'node:stream';

/** Formats rows as console.table does. @param rows by their names */
export function formatTable(rows: Readonly<Record<string, object>>): string {
  let text = '';
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  new Console({ stdout }).table(rows);
  return text.trimEnd();
}

/** A figure with its floor, which is the cost of the same work without this project. */
export interface Comparison {
  readonly name: string;
  readonly floorName: string;
  readonly unit: '/s' | 'ms' | 'MB' | 'µs';
  readonly ours: number;
  readonly floor: number;
  /** Median of `ours / floor` over the turns. It can differ from the ratio of the two medians. */
  readonly ratio: number;
  readonly p99?: { readonly ours: number; readonly floor: number };
  /** CPU time of the server's process for a request, user and system, in microseconds. */
  readonly cpu?: { readonly ours: number; readonly floor: number };
  readonly target?: Target;
}

/** A bound, either on the ratio or on our own figure in its unit. */
export interface Target {
  readonly of: 'ratio' | 'ours';
  readonly bound: 'at least' | 'at most';
  readonly value: number;
}

/** Returns whether the target is met; undefined without a target. */
export function isMet({ target, ...figures }: Comparison): boolean | undefined {
  if (!target) return undefined;
  const figure = figures[target.of];
  return target.bound === 'at least' ? figure >= target.value : figure <= target.value;
}

/** Returns the comparisons as rows of a table. */
export function toRows(comparisons: readonly Comparison[]): Record<string, object> {
  return Object.fromEntries(
    comparisons.map((comparison) => [
      comparison.name,
      {
        ours: withUnit(comparison.ours, comparison.unit),
        floor: `${withUnit(comparison.floor, comparison.unit)} ${comparison.floorName}`,
        ratio: comparison.ratio.toFixed(2),
        target: formatTarget(comparison),
        met: { true: 'yes', false: 'no', undefined: '' }[`${isMet(comparison)}`],
        'p99 ms': comparison.p99
          ? `${comparison.p99.ours.toFixed(1)} / ${comparison.p99.floor.toFixed(1)}`
          : '',
        'CPU µs': comparison.cpu
          ? `${comparison.cpu.ours.toFixed(0)} / ${comparison.cpu.floor.toFixed(0)}`
          : '',
      },
    ]),
  );
}

function formatTarget({ target, unit }: Comparison): string {
  if (!target) return '';
  return `${target.bound} ${target.of === 'ratio' ? target.value.toFixed(2) : withUnit(target.value, unit)}`;
}

function withUnit(value: number, unit: Comparison['unit']): string {
  if (unit === '/s') return `${Math.round(value)}/s`;
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ${unit}`;
}
