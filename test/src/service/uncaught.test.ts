/**
 * Tests that an error outside of a request does not end a running process, and that a starting process ends
 * and prints one line.
 */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { HOSTILE_THROWN } from './hostile_thrown.ts';

const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);

/** Runs a process. @param body its code, which uses `setRunning`, `log` and `HOSTILE_THROWN` */
function run(body: string) {
  const source = `
    import { HOSTILE_THROWN } from ${url('./hostile_thrown.ts')};
    import { createLog } from ${url('../../../src/service/log.ts')};
    import { handleUncaught } from ${url('../../../src/service/uncaught.ts')};
    const log = createLog('info');
    const setRunning = handleUncaught((code) => console.log(code));
    ${body}`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', source],
    { encoding: 'utf8', maxBuffer: 2 ** 24 },
  );
  expect((stdout + stderr).includes('hunter2')).toBe(false);
  return { status, stdout, stderr, lines: stdout.trim().split('\n') };
}

test('a running process logs a line for each error, even if its listener for errors fails', () => {
  const { status, stderr, lines } = run(`
    const values = HOSTILE_THROWN.map(([, make]) => make());
    setRunning(log, () => { throw values[0]; });
    for (const thrown of values) {
      setTimeout(() => { throw thrown; });
      Promise.reject(thrown);
    }
    setTimeout(() => console.log('alive'), 200);`);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const messages = lines.map((line) => (line.startsWith('{') ? JSON.parse(line).msg : line));
  const countLogged = (text: string) => messages.filter((msg) => msg.includes(text)).length;
  expect(countLogged('outside of any request: the server continues')).toBe(2 * HOSTILE_THROWN.length);
  expect(countLogged('could not be reported')).toBe(2 * HOSTILE_THROWN.length);
  expect(messages).toContain('alive');
  // Each error has a line, and no line is longer than a reader accepts.
  for (const line of lines) expect(line.length).toBeLessThan(10_000);
});

test('a starting process prints one line, reports an error code, and exits with 1', () => {
  // Each value takes a process of its own, so this tests only values that throw when a property is read.
  for (const thrownName of [
    'an error whose getters throw',
    'an error of this project',
    'a proxy that was revoked',
  ]) {
    const index = HOSTILE_THROWN.findIndex(([name]) => name === thrownName);
    const { status, stdout, stderr } = run(`setTimeout(() => { throw HOSTILE_THROWN[${index}][1](); });`);
    expect({ status, stdout }).toEqual({ status: 1, stdout: 'INTERNAL\n' });
    expect(stderr).toMatch(/^sui-enclave: \{"type":"(Error|object)".*\}\n$/);
  }
});
