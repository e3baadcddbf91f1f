import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { LogOutput } from '../../../src/service/log_output.ts';

/** Whether this is Linux, which has /dev/full, to which no byte can be written. */
const isLinux = process.platform === 'linux';
const MAX_WAITING_BYTES = 4 * 1024 ** 2;
const LOG = new URL('../../../src/service/log.ts', import.meta.url).href;

function open(path: string, flags: number): number {
  const fd = openSync(path, flags);
  onTestFinished(() => closeSync(fd));
  return fd;
}

/** Makes a pipe that only the test reads. */
function createPipe(): number {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  return open(path, constants.O_RDWR | constants.O_NONBLOCK);
}

function readAll(fd: number): string {
  const buffer = Buffer.alloc(64 * 1024);
  let text = '';
  try {
    for (;;) text += buffer.toString('latin1', 0, readSync(fd, buffer));
  } catch {
    // The pipe is empty (EAGAIN).
    return text;
  }
}

const formatLine = (number: number) => `${String(number).padStart(1023, '.')}\n`;

test('a log without a reader keeps at most 4 MiB of lines; once it is read again, it reports how many lines were lost', async () => {
  const pipe = createPipe();
  const lost: number[] = [];
  const output = new LogOutput(pipe, (lines) => lost.push(lines));
  const lineCount = 20_000;
  for (let number = 0; number < lineCount; number += 1) output.write(formatLine(number));
  expect(output.waitingBytes).toBe(MAX_WAITING_BYTES);
  let read = '';
  const drain = () => {
    read += readAll(pipe);
    return output.waitingBytes;
  };
  await expect.poll(drain, { interval: 5 }).toBe(0);
  drain();
  const keptCount = MAX_WAITING_BYTES / 1024;
  expect(read).toBe(Array.from({ length: keptCount }, (_, number) => formatLine(number)).join(''));
  expect(lost).toEqual([lineCount - keptCount]);
  output.write('again\n');
  await expect.poll(() => readAll(pipe)).toBe('again\n');
});

test('a log writes its first line immediately, and all lines of the pause after it together', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const pipe = createPipe();
  const output = new LogOutput(pipe, () => expect.fail());
  // `expect.poll` would advance the clock.
  const waitFor = async (bytes: number) => {
    while (output.waitingBytes > bytes) await new Promise(setImmediate);
    return readAll(pipe);
  };
  output.write('first\n');
  expect(await waitFor(0)).toBe('first\n');
  for (const line of ['second\n', 'third\n']) {
    output.write(line);
    await new Promise(setImmediate);
  }
  expect([readAll(pipe), output.waitingBytes]).toEqual(['', 13]);
  vi.advanceTimersByTime(10);
  expect(await waitFor(12)).toBe('second\nthird\n');
});

test.runIf(isLinux)('a log that can not be written drops its lines without an error', async () => {
  const lost: number[] = [];
  const output = new LogOutput(open('/dev/full', constants.O_WRONLY), (lines) => lost.push(lines));
  for (let number = 0; number < 100; number += 1) output.write(formatLine(number));
  await expect.poll(() => output.waitingBytes).toBe(0);
  expect(lost).toEqual([]);
});

test.runIf(isLinux)('a process whose log can not be written still exits with its own code', () => {
  const code = `const { createLog } = await import('${LOG}');
    const log = createLog('info');
    log.info('first');
    await new Promise((resolve) => setTimeout(resolve, 50));
    log.info('last');
    process.exit(7);`;
  const args = ['--input-type=module', '-e', code];
  const full = open('/dev/full', constants.O_WRONLY);
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', full, 'inherit'], timeout: 5000 });
  expect(status).toBe(7);
});
