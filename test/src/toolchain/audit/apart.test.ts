/**
 * A task in a process of its own returns only data and known errors. It ends within its bounds,
 * and has no side effect.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type ApartOptions, BOUNDS, computeApart, runApart } from '../../../../src/toolchain/audit/apart.ts';

const task = (name: string) => ({ module: new URL('tasks.ts', import.meta.url).href, name });

async function compute(name: string, order: unknown, options: ApartOptions = {}): Promise<unknown> {
  try {
    return await computeApart('the task', task(name), order, options);
  } catch (error) {
    const { code = 'none', message } = error as { code?: string; message: string };
    return `${code}: ${message}`;
  }
}

test('a task returns data unchanged, and an error of the audit with its code', async () => {
  const order = { map: new Map([['a', Uint8Array.of(1)]]), text: '\u001b\u202e', nothing: undefined };
  expect(await compute('echo', order)).toEqual(order);
  expect(await compute('refuse', 'the file a')).toBe('SOURCE_INVALID: the file a');
});

test('an error that no file has caused is not an error of the audit', async () => {
  expect(await compute('refuseOtherwise', null)).toBe('none: the task: USAGE: no such thing');
  const failed = await compute('fail', 'a \u001b[2J fault');
  expect(failed).toMatch(/^none: the task ended without a result: .*TypeError: a \\u\{1b\}\[2J fault/);
  expect(failed).not.toMatch(/[^\x20-\x7e…]/);
});

test('the time limit ends a task, no matter what it does', async () => {
  for (const name of ['loop', 'wait']) {
    const bounds = { ...BOUNDS, ms: 300 };
    expect(await compute(name, null, { bounds })).toBe('SOURCE_TOO_LARGE: the task takes longer than 0.3 s');
  }
});

test('the memory limit ends a task, and so does endless recursion', async () => {
  const bounds = { ...BOUNDS, megabytes: 40 };
  for (const name of ['fill', 'grow', 'recur']) {
    expect(await compute(name, 0, { bounds }), name).toMatch(/^SOURCE_TOO_LARGE: the task takes more memory/);
  }
});

test('a task has no environment, writes no file and starts no program', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-apart-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'x');
  const names = (await compute('environment', null)) as string[];
  expect(names.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))).toEqual([]);
  for (const name of ['write', 'run']) {
    expect(await compute(name, path), name).toMatch(/^none: the task ended .*ERR_ACCESS_DENIED/);
  }
  expect(existsSync(path)).toBe(false);
});

test('the output of a task goes only to the log, in bounded lines without control characters', async () => {
  const lines: string[] = [];
  const log = (line: string) => void lines.push(line);
  const text = `\u001b[2J\u0085\u202e${'long'.repeat(200)}`;
  expect(await compute('print', text, { log })).toBe('printed');
  expect(lines.filter((line) => line.includes('\\u{1b}[2J\\u{85}\\u{202e}long'))).toHaveLength(3);
  expect(lines.join('')).toMatch(/^[\x20-\x7e…]*$/);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(500);
});

test('this process answers requests of a task, and the time limit does not count the wait', async () => {
  const answer = async (part: unknown) => Number(part) * 10;
  expect(await compute('sum', [1, 2, 3], { answer })).toBe(60);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const answerLate = async () => {
    await vi.advanceTimersByTimeAsync(60_000);
    return 7;
  };
  expect(await compute('sum', [1, 2], { answer: answerLate })).toBe(14);
  const refused = await compute('sum', [1], { answer: () => Promise.reject(new Error('not \u001b there')) });
  expect(refused).toMatch(/^none: the task ended without a result: .*not \\u\{1b\} there/);
});

test('a task without bounds may do everything that this program may do', async () => {
  const outcome = await runApart('the task', task('environment'), null, {});
  expect(outcome).toEqual({ value: expect.arrayContaining(['PATH']) });
});
