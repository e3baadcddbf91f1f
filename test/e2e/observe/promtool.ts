/** Runs promtool on generated rule tests. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const FOLDER = fileURLToPath(new URL('../../../deploy/observe/', import.meta.url));
const PROMTOOL = process.env['PROMTOOL'] ?? 'promtool';
export const isInstalled = spawnSync(PROMTOOL, ['--version']).status === 0;

/** Minute of the last sample in a test. Each minute has a sample, from minute 0 on. */
const LAST_MINUTE = 30;
/** Minute at which the expressions are evaluated. */
export const EVAL_MINUTES = 25;
/** Names of series whose value is a time in seconds. In a test, the clock begins at 0. */
const TIMES = /(snapshot|last_round|last_poll)_seconds$/;

/** Values of series, by name and labels. */
export type Series = Map<string, string>;

export interface RuleTest {
  readonly series: Series;
  /** Samples that each expression must yield, by expression. A sample is a value by its labels. */
  readonly expects: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export const constant = (value: number) => `${value}+0x${LAST_MINUTE}`;
/** Returns the values of a series that grows from 0 by this much each minute. */
export const growing = (perMinute: number) => `0+${perMinute}x${LAST_MINUTE}`;
/** Returns the values of a series that changes once, at minute 20. */
export const changing = (before: number, after: number) => `${before}+0x19 ${after}+0x${LAST_MINUTE - 20}`;

/** Runs promtool. @returns its output, and whether it succeeded */
export function run(...args: string[]): { passed: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync(PROMTOOL, args, { encoding: 'utf8' });
  return { passed: status === 0, output: stdout + stderr };
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'observe-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/**
 * Parses a scrape into series, and adds the labels of the target as Prometheus does. Times follow the clock;
 * all other values are constant.
 */
export function parseSeries(scrape: string, labels: Readonly<Record<string, string>>): Series {
  const series: Series = new Map();
  for (const line of scrape.split('\n')) {
    const [, name = '', labelText = '', value = ''] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === '' || name.startsWith('nodejs_')) continue;
    const target = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    const all = [...(labelText === '' ? [] : [labelText]), ...target].join(',');
    series.set(`${name}{${all}}`, TIMES.test(name) ? growing(60) : constant(Number(value)));
  }
  return series;
}

export function testRules(tests: readonly RuleTest[]): { passed: boolean; output: string } {
  const file = join(temporaryFolder(), 'test.yml');
  // promtool reads YAML, of which JSON is a subset.
  const content = {
    rule_files: [join(FOLDER, 'alerts.yml')],
    evaluation_interval: '1m',
    tests: tests.map(({ series, expects }) => ({
      interval: '1m',
      input_series: [...series].map(([name, values]) => ({ series: name, values })),
      promql_expr_test: Object.entries(expects).map(([expr, samples]) => ({
        expr,
        eval_time: `${EVAL_MINUTES}m`,
        exp_samples: Object.entries(samples).map(([labels, value]) => ({ labels, value })),
      })),
    })),
  };
  writeFileSync(file, JSON.stringify(content));
  return run('test', 'rules', file);
}
