import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePcrs } from '../../../../../src/library/attestation/image.ts';
import { main } from '../../../../../src/toolchain/image/eif.ts';
import { call, spawnScript } from '../../../cli/run.ts';

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'eif-'));
  for (const name of ['kernel', 'boot', 'app']) writeFileSync(join(dir, name), name);
  writeFileSync(join(dir, 'cmdline'), 'console=ttyS0\n');
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Runs the command. Names of files are relative to the folder of the test. */
const eif = (...args: string[]) =>
  call(
    main,
    args.map((arg) => (FILES.includes(arg) ? join(dir, arg) : arg)),
  );

const FILES = ['kernel', 'boot', 'app', 'cmdline', 'x.eif'];
const BUILD = [
  'build',
  '--kernel',
  'kernel',
  '--cmdline',
  'cmdline',
  '--ramdisk',
  'boot',
  '--ramdisk',
  'app',
  '--name',
  'weather',
  '--version',
  '1.2.3',
  '--kernel-version',
  '6.12',
  '--out',
  'x.eif',
];

test('eif builds, describes and measures an image', async () => {
  expect(await eif(...BUILD)).toEqual({ status: 0, stdout: '', stderr: '' });
  const description = JSON.parse((await eif('describe', 'x.eif')).stdout);
  expect(description).toMatchObject({
    architecture: 'x86_64',
    signed: false,
    metadata: { ImageName: 'weather', ImageVersion: '1.2.3' },
    cmdline: 'console=ttyS0',
    kernel: { bytes: 6 },
    ramdisks: [{ bytes: 4 }, { bytes: 3 }],
  });
  const { stdout } = await eif('pcrs', 'x.eif');
  expect(parsePcrs(stdout)).toEqual(description.registers);
  expect(await spawnScript('../toolchain/image/eif.ts', ['pcrs', 'x.eif'], { cwd: dir })).toEqual({
    status: 0,
    stdout,
    stderr: '',
  });
});

test('eif builds the same bytes each time', async () => {
  await eif(...BUILD);
  const first = readFileSync(join(dir, 'x.eif'));
  await eif(...BUILD);
  expect(readFileSync(join(dir, 'x.eif')).equals(first)).toBe(true);
});

test.each([
  [[], 2, /^USAGE: missing: <action>\. See sui-enclave eif --help\n$/],
  [['sign', 'x.eif'], 2, /^USAGE: <action> must be build, describe or pcrs\. See/],
  [['describe'], 2, /^USAGE: missing: <file>\. See/],
  [['describe', 'kernel', '0x5'], 2, /^USAGE: unexpected argument: 0x5\. See/],
  [['pcrs', 'kernel', '--name', 'weather'], 2, /^USAGE: --name is an option of build only\. See/],
  [['describe', 'kernel'], 1, /^EIF_INVALID: the file is shorter than the header/],
  [['pcrs', 'nowhere'], 1, /^CONFIG: nowhere can't be read: ENOENT/],
  [['build', '--kernel', 'kernel'], 2, /^USAGE: --cmdline is required/],
  [['build', '--signing-key', 'x'], 2, /^USAGE: Unknown option '--signing-key'\. See/],
  [[...BUILD, 'more'], 2, /^USAGE: unexpected argument: more\. See/],
])('eif with %j ends with one message', async (args, code, message) => {
  const { status, stderr, stdout } = await eif(...args);
  expect(status).toBe(code);
  expect(stderr).toMatch(message);
  expect(stdout).toBe('');
});
