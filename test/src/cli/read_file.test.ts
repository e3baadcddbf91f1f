/** Tests that commands refuse FIFOs, whose readers would wait for a writer, and devices immediately. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { readRegularFile } from '../../../src/cli/read_file.ts';
import { formatPcrs } from '../../../src/library/attestation/image.ts';
import { callScript } from './run.ts';

let dir: string;
let fifo: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'read-file-'));
  fifo = join(dir, 'file.eif');
  expect(spawnSync('mkfifo', ['-m', '600', fifo]).status).toBe(0);
  // A writer releases waiting readers after 30 s, so that the test fails instead of hanging.
  const writer = spawn('sh', ['-c', 'sleep 30; : >"$0"', fifo], { detached: true, stdio: 'ignore' });
  onTestFinished(() => {
    process.kill(-(writer.pid as number), 'SIGKILL');
    rmSync(dir, { recursive: true });
  });
});

describe('readRegularFile', () => {
  test('reads a file, also through a link', () => {
    writeFileSync(join(dir, 'file'), 'content');
    symlinkSync(join(dir, 'file'), join(dir, 'link'));
    for (const name of ['file', 'link']) expect(readRegularFile(join(dir, name)).toString()).toBe('content');
  });

  test.each<[string, () => string, string]>([
    ['a FIFO', () => fifo, 'NOT_A_REGULAR_FILE'],
    ['a device without end', () => '/dev/zero', 'NOT_A_REGULAR_FILE'],
    ['a folder', () => dir, 'EISDIR'],
    ['a file that does not exist', () => join(dir, 'none'), 'ENOENT'],
  ])('refuses %s with its error code', (_kind, path, code) => {
    expect(() => readRegularFile(path())).toThrow(expect.objectContaining({ code }));
  });
});

const URL = 'http://127.0.0.1:9';
const PCR = '1'.repeat(96);

test.each<[string, (path: string, dir: string) => readonly string[]]>([
  ['provision/provision.ts', (path, dir) => [URL, '--pcrs', join(dir, 'pcrs'), '--secrets', path]],
  ['provision/provision.ts', (path) => ['--print-key', '--key', path]],
  ['provision/provision.ts', (path) => [URL, '--pcrs', path, '--secrets', '-']],
  ['parent/run_enclave.ts', (path) => ['--eif', path]],
  ['parent/configure_enclave.ts', (path, dir) => [...AWS, '--release', makeRelease(path, dir)]],
  ['../toolchain/image/eif.ts', (path) => ['describe', path]],
  ['salt/salt_seed.ts', (path) => ['fingerprint', path]],
  ['rollout/rollout.ts', (path) => [path]],
  ['keeper/keep.ts', (path) => [path]],
  ['verify/verify_enclave.ts', (path) => [URL, '--pcrs', path]],
  ['../toolchain/prover/check_key.ts', (path) => [path]],
])(
  '%s does not wait for a FIFO (%#)',
  async (script, args) => {
    writeFileSync(join(dir, 'pcrs'), formatPcrs({ pcr0: PCR, pcr1: PCR, pcr2: PCR }));
    const { status, stderr } = await callScript(script, args(fifo, dir), { env: {} });
    expect(stderr).toMatch(/NOT_A_REGULAR_FILE|can't be read/);
    expect(status).not.toBe(0);
  },
  9000,
);

test('status does not wait for a FIFO in place of the deployment file', async () => {
  mkdirSync(join(dir, 'deployments'));
  symlinkSync(fifo, join(dir, 'deployments/testnet.json'));
  const env = { DEPLOYMENTS: join(dir, 'deployments') };
  const { stderr } = await callScript('sui/status.ts', ['--network', 'testnet'], { env });
  expect(stderr).toMatch(/^DEPLOYMENT: .*testnet\.json can't be read: NOT_A_REGULAR_FILE/);
}, 25_000);

const AWS = [
  '--region',
  'eu-west-1',
  '--bucket',
  'releases',
  '--cidr',
  '192.0.2.1/32',
  '--vpc',
  'vpc-0a1b2c3d',
  '--subnets',
  'subnet-0a1b2c3d',
];
/** Makes a folder in which a file of the release is a link to this path. */
function makeRelease(path: string, dir: string): string {
  const release = join(dir, 'release');
  mkdirSync(release);
  symlinkSync(path, join(release, 'node-1.tar.gz'));
  return release;
}
