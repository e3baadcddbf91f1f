/** The lock that allows one rollout of a config at a time on a machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { takeLock } from '../../../../src/cli/rollout/lock.ts';

const MODULE = fileURLToPath(new URL('../../../../src/cli/rollout/lock.ts', import.meta.url));

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'lock-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  path = join(dir, 'localnet.weather.rollout.lock');
});

const refusal = (text: string) =>
  expect.objectContaining({ code: 'ROLLOUT_RUNNING', exit: 2, message: expect.stringContaining(text) });
const content = () => JSON.parse(readFileSync(path, 'utf8'));
const rewrite = (changes: object) => writeFileSync(path, JSON.stringify({ ...content(), ...changes }));

/** Starts a process that takes the lock when a line arrives, says so, and keeps it. */
function startHolder(): ChildProcess {
  const script = `
    const { takeLock } = await import(${JSON.stringify(MODULE)});
    process.stdin.once('data', () => {
      try {
        console.log('held', takeLock(process.argv[1]).takenFrom);
      } catch ({ code }) {
        console.log(code);
      }
    });
    console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, path]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function readLine(child: ChildProcess): Promise<string> {
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data');
  return String(chunk).trim();
}

async function hold(): Promise<ChildProcess> {
  const child = startHolder();
  expect(await readLine(child)).toBe('ready');
  child.stdin?.write('\n');
  expect(await readLine(child)).toMatch(/^held/);
  return child;
}

test('the lock refuses a second process and names the first, until the first releases it', () => {
  const lock = takeLock(path);
  expect(lock.takenFrom).toBe(undefined);
  expect(() => takeLock(path)).toThrow(refusal(`process ${process.pid} runs a rollout of this config`));
  lock.release();
  expect(readdirSync(dir)).toEqual([]);
  takeLock(path).release();
});

test('the lock is refused while its process runs or is stopped, and is free once the process has been killed', async () => {
  const child = await hold();
  expect(() => takeLock(path)).toThrow(refusal(`process ${child.pid} runs`));
  child.kill('SIGSTOP');
  expect(() => takeLock(path)).toThrow(refusal(`process ${child.pid} runs`));
  child.kill('SIGKILL');
  await once(child, 'exit');
  const lock = takeLock(path);
  expect([lock.takenFrom, content().pid]).toEqual([child.pid, process.pid]);
  lock.release();
  expect(readdirSync(dir)).toEqual([]);
});

test('the lock goes to exactly one of several processes that find the lock of an ended process', async () => {
  const ended = await hold();
  ended.kill('SIGKILL');
  await once(ended, 'exit');
  const children = Array.from({ length: 4 }, startHolder);
  await Promise.all(children.map(readLine));
  const lines = children.map(readLine);
  for (const child of children) child.stdin?.write('\n');
  expect((await Promise.all(lines)).sort()).toEqual([
    'ROLLOUT_RUNNING',
    'ROLLOUT_RUNNING',
    'ROLLOUT_RUNNING',
    expect.stringMatching(/^held/),
  ]);
  expect(readdirSync(dir)).toEqual([expect.stringMatching(/lock$/)]);
});

describe('the lock is taken over from', () => {
  const takeOver = (changes: object) => {
    takeLock(path);
    rewrite(changes);
    const lock = takeLock(path);
    expect(content().boot).not.toBe('another');
    lock.release();
    expect(readdirSync(dir)).toEqual([]);
  };

  test('a process of another boot, even if a process with its id runs now', () => {
    takeOver({ boot: 'another' });
  });

  test('a process that ended, even if a later process has its id', () => {
    takeOver({ started: '1' });
  });

  test('a process that ended while it took the lock over', () => {
    takeLock(`${path}.takeover`);
    const guard = readFileSync(`${path}.takeover`, 'utf8');
    writeFileSync(`${path}.takeover`, JSON.stringify({ ...JSON.parse(guard), started: '1' }));
    takeOver({ started: '1' });
  });
});

describe('the lock is refused', () => {
  test('for a process of another container, which this one can not see', () => {
    takeLock(path);
    rewrite({ namespace: 'pid:[1]' });
    expect(() => takeLock(path)).toThrow(refusal('of another container of this machine'));
  });

  test.each([
    ['not JSON', '{'],
    ['empty', ''],
    ['without a process', '{}'],
    ['with an id that names a group of processes', '{"pid":-1}'],
    ['with an unknown property', '{"pid":1,"more":1}'],
  ])('if the file is %s, and the file is left as it is', (_fault, text) => {
    writeFileSync(path, text);
    expect(() => takeLock(path)).toThrow(refusal('is not a lock that a rollout wrote'));
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('if the file can not be read or created, and a link in its place is not followed', () => {
    symlinkSync('/dev/null', path);
    expect(() => takeLock(path)).toThrow(refusal("can't be read: NOT_A_REGULAR_FILE"));
    expect(() => takeLock(join(dir, 'missing', 'lock'))).toThrow(refusal("can't be made: ENOENT"));
  });
});

test('the lock is not released by a process that has lost it', () => {
  const lock = takeLock(path);
  rewrite({ started: '1' });
  lock.release();
  expect(content().started).toBe('1');
});
