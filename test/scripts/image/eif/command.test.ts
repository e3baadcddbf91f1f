import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePcrs } from '../../../../src/attestation/image.ts';

const EIF = fileURLToPath(new URL('../../../../scripts/image/eif.ts', import.meta.url));
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'eif-'));
  for (const name of ['kernel', 'boot', 'app']) writeFileSync(join(dir, name), name);
  writeFileSync(join(dir, 'cmdline'), 'console=ttyS0\n');
});
afterAll(() => rmSync(dir, { recursive: true }));

function eif(...args: string[]) {
  return spawnSync(process.execPath, [EIF, ...args], { cwd: dir, encoding: 'utf8' });
}

const BUILD = [
  ...['build', '--kernel', 'kernel', '--cmdline', 'cmdline', '--ramdisk', 'boot', '--ramdisk', 'app'],
  ...['--name', 'weather', '--version', '1.2.3', '--kernel-version', '6.12', '--out', 'x.eif'],
];

test('builds, describes and measures', () => {
  expect(eif(...BUILD)).toMatchObject({ status: 0, stderr: '' });
  const described = JSON.parse(eif('describe', 'x.eif').stdout);
  expect(described).toMatchObject({
    architecture: 'x86_64',
    signed: false,
    metadata: { ImageName: 'weather', ImageVersion: '1.2.3' },
    cmdline: 'console=ttyS0',
    kernel: { bytes: 6 },
    ramdisks: [{ bytes: 4 }, { bytes: 3 }],
  });
  expect(parsePcrs(eif('pcrs', 'x.eif').stdout)).toEqual(described.registers);
});

test('builds the same bytes again', () => {
  eif(...BUILD);
  const first = readFileSync(join(dir, 'x.eif'));
  eif(...BUILD);
  expect(readFileSync(join(dir, 'x.eif')).equals(first)).toBe(true);
});

test.each([
  [[], /^USAGE: usage/],
  [['sign', 'x.eif'], /^USAGE: usage/],
  [['describe'], /^USAGE: usage/],
  [['describe', 'kernel'], /^EIF_INVALID: the file is shorter than the header/],
  [['pcrs', 'nowhere'], /^CONFIG: nowhere can't be read: ENOENT/],
  [['build', '--kernel', 'kernel'], /^USAGE: --cmdline is missing/],
  [['build', '--signing-key', 'x'], /^ERR_PARSE_ARGS_UNKNOWN_OPTION: /],
])('%j ends with one message', (args, message) => {
  const { status, stderr, stdout } = eif(...args);
  expect(status).toBe(/^(USAGE|ERR_PARSE)/.test(stderr) ? 2 : 1);
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(stdout).toBe('');
});
