import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lastEnd, reportsPath, reportsSize } from '../../../../src/commands/parent/reports.ts';

const BOOT = '{"event":"boot","version":"1.0.0","app":"weather"}\n';
const FAILED = '{"event":"failed","code":"NSM_UNAVAILABLE"}\n';
const END = '{"event":"end","reason":"the server ended with status 1"}\n';

let dir: string;
const tell = (text: string) => writeFileSync(reportsPath(dir), text);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'reports-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test.each([
  ['nothing at all', '', undefined],
  ['a boot alone', BOOT, undefined],
  ['an end', END, 'the server ended with status 1'],
  ['an end with its code', FAILED + END, 'the server ended with status 1 (NSM_UNAVAILABLE)'],
  ['a code of an end before', FAILED + END + END, 'the server ended with status 1'],
  ['an end and another boot', END + BOOT, undefined],
  ['two ends', `${END + BOOT}{"event":"end","reason":"fork"}\n`, 'fork'],
])('from %s follows why the last enclave ended', (_what, text, expected) => {
  tell(text);
  expect(lastEnd(dir)).toBe(expected);
});

test('without any report the end is undefined', () => {
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
])('a line that no enclave of this project reports is ignored: %j', (line) => {
  tell(END + line);
  expect(lastEnd(dir)).toBe('the server ended with status 1');
});

test('earlier reports can be left out', () => {
  tell(END);
  const before = reportsSize(dir);
  expect(lastEnd(dir, before)).toBeUndefined();
  tell(`${END}{"event":"end","reason":"fork"}\n`);
  expect(lastEnd(dir, before)).toBe('fork');
});

test('after the relay has begun a new file, all of it counts', () => {
  tell(BOOT.repeat(10));
  const before = reportsSize(dir);
  tell(END);
  expect(lastEnd(dir, before)).toBe('the server ended with status 1');
});

test('only the end of a long file is read', () => {
  tell(END + BOOT.repeat(5000) + FAILED + END);
  expect(lastEnd(dir)).toBe('the server ended with status 1 (NSM_UNAVAILABLE)');
});
