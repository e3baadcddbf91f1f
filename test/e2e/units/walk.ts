/**
 * Walks through a runbook of deploy/observe/RUNBOOKS.md in a machine: evaluates the alert's expression on the
 * metrics of the programs, and runs the runbook's commands.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect } from 'vitest';
import { RULES, readRunbook } from '../../runbooks.ts';
import { until } from './machine.ts';
import { type ParentMachine, PROGRAM } from './parent_machine.ts';

type Figures = ReadonlyMap<string, number>;

/**
 * Selector of an expression: a name, with a matcher of the label `job`, `code`, `kind` or `proxy` if it has
 * one.
 */
const SELECTOR = String.raw`(\w+)(?:\{(job|code|kind|proxy)(=|!=|=~|!~)"([^"]+)"\})?`;
const COMPARISON = /^(?:sum by \(\w+\) \((.+)\)|(.+)) (==|>=|>|<) (\d+|0\.1 \* \((\w+) \+ (\w+)\))$/;
/** Comparisons of PromQL that the rules use, by operator. */
const COMPARE = {
  '==': (value: number, limit: number) => value === limit,
  '>=': (value: number, limit: number) => value >= limit,
  '>': (value: number, limit: number) => value > limit,
  '<': (value: number, limit: number) => value < limit,
} as const;
/** Expression that compares a share with a bound. The share is the quotient of two sums of rates. */
const SHARE = new RegExp(
  String.raw`^sum by \(\w+\) \(rate\(${SELECTOR}\[\w+\]\)\) / sum by \(\w+\) \(rate\((\w+)\[\w+\]\)\) > (0\.\d+)$`,
);
const OPERAND = new RegExp(
  String.raw`^(time\(\) - )?(?:(?:changes|increase|min_over_time)\()?${SELECTOR}(?:\[\w+\]\))?$`,
);

export class Walk {
  readonly #machine: ParentMachine;
  /** Ports of the metrics, by a part of the job's or the metric's name. */
  readonly ports: Record<string, number>;
  /** Names in the machine, by their placeholders in the page. */
  readonly #names: Readonly<Record<string, string>>;
  /** Variables of the commands, such as the key of an admin. */
  readonly #env: Readonly<Record<string, string>>;
  /** Values that earlier evaluations read, by name and labels. */
  #earlierValues = new Map<string, number>();

  constructor(
    machine: ParentMachine,
    ports: Record<string, number>,
    names: Readonly<Record<string, string>>,
    env: Readonly<Record<string, string>> = {},
  ) {
    this.#env = env;
    this.#machine = machine;
    this.ports = ports;
    this.#names = names;
  }

  /** Evaluates an alert's expression once. @returns whether one of its alternatives holds */
  isFiring(alert: string): boolean {
    const expressions = RULES.find((rule) => rule.alert === alert)?.expr.split(' or ') ?? [];
    expect(expressions.length).toBeGreaterThan(0);
    return expressions.some((expression) => this.#holds(expression));
  }

  awaitClear = (alert: string) => until(`${alert} clears`, () => !this.isFiring(alert));
  awaitFiring = (alert: string) => until(`${alert} fires`, () => this.isFiring(alert));

  /** Returns whether an expression holds. It supports the forms of the alerts that the walks cover. */
  #holds(expression: string): boolean {
    if (SHARE.test(expression)) return this.#isShareBeyond(expression);
    const [, summed, single, operator, bound = '', ...sum] = COMPARISON.exec(expression) ?? [];
    const [, isAge, name = '', label, matcher, pattern = ''] = OPERAND.exec(summed ?? single ?? '') ?? [];
    expect(name, expression).not.toBe('');
    const figures = this.#scrape(this.#findPort(label === 'job' ? pattern : name));
    const isBeyond = (value: number, series: string) => {
      const limit = bound.startsWith('0.1') ? 0.1 * addFigures(figures, sum, series) : Number(bound);
      return COMPARE[operator as keyof typeof COMPARE](value, limit);
    };
    if (name === 'up') return isBeyond(figures === undefined ? 0 : 1, name);
    const values = [...(figures ?? [])].filter(([series]) => series.replace(/\{.*/, '') === name);
    expect(figures === undefined || values.length > 0, name).toBe(true);
    const matching =
      label === undefined || label === 'job'
        ? values
        : values.filter(([series]) => matches(series, label, matcher, pattern));
    const isDifference = /(changes|increase)\(/.test(expression);
    const results = matching.map(([series, value]) =>
      isBeyond(
        isAge
          ? Date.now() / 1000 - value
          : isDifference
            ? value - (this.#earlierValues.get(series) ?? value)
            : value,
        series,
      ),
    );
    // Another side of the expression may compare other series of the same name.
    this.#earlierValues = new Map([...this.#earlierValues, ...matching]);
    return results.some(Boolean);
  }

  /** Returns whether the share among the counts since the last evaluation exceeds its bound. */
  #isShareBeyond(expression: string): boolean {
    const [, name = '', label = '', matcher, pattern = '', total = '', bound] = SHARE.exec(expression) ?? [];
    const figures = this.#scrape(this.#findPort(name)) ?? new Map<string, number>();
    const counts = [...figures].filter(([series]) => series.replace(/\{.*/, '') === total);
    expect([name, counts.length > 0], expression).toEqual([total, true]);
    const grown = counts.map(
      ([series, value]) => [series, value - (this.#earlierValues.get(series) ?? value)] as const,
    );
    this.#earlierValues = new Map([...this.#earlierValues, ...counts]);
    const add = (all: typeof grown) => all.reduce((sum, [, count]) => sum + count, 0);
    const matching = grown.filter(([series]) => matches(series, label, matcher, pattern));
    return add(matching) / add(grown) > Number(bound);
  }

  #findPort(name: string): number {
    const word = Object.keys(this.ports).find((part) => name.includes(part)) ?? 'enclave';
    return this.ports[word] ?? 0;
  }

  /** Returns the metrics at a port, or undefined if they can't be read. Prometheus then records `up` as 0. */
  #scrape(port: number): Figures | undefined {
    const text = this.#machine.get(port, 'metrics');
    if (text === '') return undefined;
    const lines = [...text.matchAll(/^(\w+(?:\{[^}]*\})?) (\S+)$/gm)];
    return new Map(lines.map(([, series = '', value]) => [series, Number(value)]));
  }

  /** Runs a block of commands of a runbook. @returns their output */
  runBlock(heading: string, index: number, names: Readonly<Record<string, string>> = {}): string {
    const { blocks } = readRunbook(heading);
    const lines = blocks[index] ?? [];
    expect(lines, `${heading}, block ${index}`).not.toEqual([]);
    const words: Readonly<Record<string, string>> = { ...this.#names, ...names };
    return lines
      .map((line) => {
        const commandLine = line.replace(
          /\b(?:NAME|NEW|IMAGE|PORT|ID|URL|NETWORK)\b/g,
          (word) => words[word] ?? word,
        );
        const program = commandLine.replace('npx --offline sui-enclave', PROGRAM.join(' '));
        const variables = Object.entries(this.#env).map(([name, value]) => `${name}=${value}`);
        const { stdout, stderr } = this.#machine.run('env', ...variables, 'sh', '-c', program);
        return stdout + stderr;
      })
      .join('');
  }
}

/**
 * Returns the sum of the named metrics that have the labels of a series, or 0 if no metrics could be read.
 */
function addFigures(
  figures: Figures | undefined,
  names: readonly (string | undefined)[],
  series: string,
): number {
  if (figures === undefined) return 0;
  const labels = series.replace(/^\w+/, '');
  const values = names.map((name = '') => figures.get(name + labels));
  expect(values, names.join(', ')).not.toContain(undefined);
  return values.reduce<number>((total, value = 0) => total + value, 0);
}

function matches(series: string, label: string, matcher: string | undefined, pattern: string): boolean {
  const [, value = ''] = new RegExp(`\\b${label}="([^"]*)"`).exec(series) ?? [];
  return new RegExp(`^(?:${pattern})$`).test(value) !== (matcher?.startsWith('!') === true);
}

/**
 * Installs a unit of this repository.
 *
 * @param watch options in place of a `--watch` at the end of its command
 */
export function installUnit(machine: ParentMachine, path: string, watch = ' --watch'): void {
  const text = readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
  machine.write(`etc/systemd/system/${basename(path)}`, text.replace(/ --watch$/m, watch));
  machine.mustRun('systemctl', 'daemon-reload');
}
