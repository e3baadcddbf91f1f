import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lastEnd, reportsPath, reportsSize } from '../../../../src/cli/parent/reports.ts';

const BOOT = '{"event":"boot","version":"1.0.0","app":"weather"}\n';
const FAILED = '{"event":"failed","code":"NSM_UNAVAILABLE"}\n';
const END = '{"event":"end","reason":"the server ended with status 1"}\n';

let dir: string;
const writeReports = (text: string) => writeFileSync(reportsPath(dir), text);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'reports-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test.each([
  ['nothing at all', '', undefined],
  ['a boot alone', BOOT, undefined],
  ['an end', END, 'the server ended with status 1'],
  ['an end with its code', FAILED + END, 'the server ended with status 1 (NSM_UNAVAILABLE)'],
  ['the code of an earlier end', FAILED + END + END, 'the server ended with status 1'],
  ['an end and another boot', END + BOOT, undefined],
  ['two ends', `${END + BOOT}{"event":"end","reason":"fork"}\n`, 'fork'],
])('lastEnd reads the end of the last enclave from %s', (_case, text, expected) => {
  writeReports(text);
  expect(lastEnd(dir)).toBe(expected);
});

test('lastEnd returns undefined if there is no report', () => {
  expect(lastEnd(dir)).toBeUndefined();
  expect(reportsSize(dir)).toBe(0);
});

test.each([
  'not JSON\n',
  '{"event":"end"}\n',
  '{"event":"end","reason":"\\u001b[2J"}\n',
  '{"event":"end","reason":"two\\nlines"}\n',
  `{"event":"end","reason":"${'x'.repeat(201)}"}\n`,
  '{"event":"other","reason":"x"}\n',
  '{"event":"end","reason":"cut short',
  'null\n',
])('lastEnd ignores a line that no enclave of this project would report: %j', (line) => {
  writeReports(END + line);
  expect(lastEnd(dir)).toBe('the server ended with status 1');
});

test('lastEnd ignores reports before the position that it is passed', () => {
  writeReports(END);
  const before = reportsSize(dir);
  expect(lastEnd(dir, before)).toBeUndefined();
  writeReports(`${END}{"event":"end","reason":"fork"}\n`);
  expect(lastEnd(dir, before)).toBe('fork');
});

test('lastEnd reads all of a new file that the relay has begun', () => {
  writeReports(BOOT.repeat(10));
  const before = reportsSize(dir);
  writeReports(END);
  expect(lastEnd(dir, before)).toBe('the server ended with status 1');
});

describe('lastEnd, with files of a relay that was taken over,', () => {
  test('does not wait for a FIFO', () => {
    expect(spawnSync('mkfifo', [reportsPath(dir)]).status).toBe(0);
    // The read runs in a process of its own, since no timer can end a read that waits for the other end of a
    // FIFO.
    const module = fileURLToPath(new URL('../../../../src/cli/parent/reports.ts', import.meta.url));
    const program = `import { lastEnd, reportsSize } from ${JSON.stringify(module)};
console.log(JSON.stringify([lastEnd(process.argv[1]), reportsSize(process.argv[1])]));`;
    const args = ['--input-type=module', '-e', program, dir];
    const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 20_000 });
    expect(stdout).toBe(`["unknown: ${reportsPath(dir)} is not a regular file",0]\n`);
  });

  test.each<[string, (path: string) => void, RegExp]>([
    [
      'a link to a file of reports',
      (path) => {
        writeFileSync(`${path}.other`, END);
        symlinkSync(`${path}.other`, path);
      },
      /can't be read: ELOOP$/,
    ],
    ['a link to nothing', (path) => symlinkSync('/nothing', path), /can't be read: ELOOP$/],
    ['a link to a device without end', (path) => symlinkSync('/dev/zero', path), /can't be read: ELOOP$/],
    ['a folder', (path) => mkdirSync(path), /is not a regular file$/],
    [
      'a file of 4 TB',
      (path) => {
        writeFileSync(path, END);
        truncateSync(path, 4e12);
      },
      /is larger than any file that the relay writes$/,
    ],
  ])('does not read %s, and returns why the end is unknown', (_kind, make, reason) => {
    make(reportsPath(dir));
    expect(reportsSize(dir)).toBe(0);
    expect(lastEnd(dir)).toMatch(reason);
    expect(lastEnd(dir)).toMatch(/^unknown: \/.*reports\.jsonl /);
  });

  test('does not read a socket', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(reportsPath(dir), resolve));
    expect([lastEnd(dir), reportsSize(dir)]).toEqual([
      `unknown: ${reportsPath(dir)} can't be read: ENXIO`,
      0,
    ]);
    await new Promise((resolve) => server.close(resolve));
  });
});

test('lastEnd reads only the end of a long file', () => {
  writeReports(END + BOOT.repeat(5000) + FAILED + END);
  expect(lastEnd(dir)).toBe('the server ended with status 1 (NSM_UNAVAILABLE)');
});
