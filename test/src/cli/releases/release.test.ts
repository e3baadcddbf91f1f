/** The command `release`, from an author's build to a reader who refuses the withdrawn release. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { RELEASE_COMMAND_CODES } from '../../../../src/cli/releases/errors.ts';
import { main } from '../../../../src/cli/releases/release.ts';
import { Sigstore } from '../../library/release/sigstore.ts';
import { call } from '../run.ts';
import {
  COMMIT,
  LISTS,
  REGISTERS,
  REPOSITORY,
  readOptions,
  signOptions,
  signRelease,
  writeBuild,
  writeSigner,
  writeWorkflowSigner,
} from './release_fixture.ts';

const DAY_MS = 86_400_000;
let folder: string;
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'release-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeBuild(folder);
  writeSigner(folder);
});

const run = (...argv: string[]) => call(main, argv);
const sign = (version?: string) => signRelease(folder, version);
const verify = (...more: string[]) => run('verify', at('out/release.json'), ...readOptions(folder), ...more);

test('a release is signed, verified, listed, withdrawn, and then refused', async () => {
  expect(await sign()).toMatchObject({ status: 0, stderr: '' });
  const verified = await verify('--json');
  expect(JSON.parse(verified.stdout)).toMatchObject({
    version: 'v1.2.0',
    image: REGISTERS,
    source: { url: REPOSITORY, commit: COMMIT, folder: '', frameworkVersion: '0.1.0' },
    subjects: {
      'nitro.eif': createHash('sha256').update('eif').digest('hex'),
      'move/price.bytecode.json': createHash('sha256').update('{}').digest('hex'),
    },
    head: { sequence: 1 },
  });
  expect((await verify()).stdout).toMatch(/^VOUCHED FOR v1\.2\.0: .* An audit proves it\.\n/);
  expect((await run('list', ...readOptions(folder))).stdout).toMatch(
    /^release {5}v1\.2\.0 {2}[0-9a-f]{64}\nfresh until /,
  );
  expect(await run('withdraw', 'v1.2.0', ...signOptions(folder))).toMatchObject({ status: 0 });
  expect(await verify()).toMatchObject({ status: 1, stderr: expect.stringMatching(/^RELEASE_WITHDRAWN: /) });
  expect(await run('withdraw', 'v1.2.0', ...signOptions(folder))).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^LOGGED: /),
  });
  expect(await sign()).toMatchObject({ status: 1, stderr: expect.stringMatching(/^LOGGED: .* final/) });
});

test('a key that openssl wrote can sign', async () => {
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', at('key.pem')], { stdio: 'ignore' });
  chmodSync(at('key.pem'), 0o600);
  expect(await sign()).toMatchObject({ status: 0 });
  expect(await verify()).toMatchObject({ status: 1, stderr: expect.stringMatching(/^RELEASE_SIGNATURE: /) });
});

test('a reader who keeps the head refuses an older log, and a fresh head needs the key', async () => {
  await sign();
  const older = readFileSync(at('log.json'));
  await sign('v1.3.0');
  expect(await run('list', ...readOptions(folder), '--seen', at('seen.json'))).toMatchObject({ status: 0 });
  expect(JSON.parse(readFileSync(at('seen.json'), 'utf8'))).toMatchObject({ sequence: 2 });
  writeFileSync(at('log.json'), older);
  const listing = await run('list', ...readOptions(folder), '--seen', at('seen.json'));
  expect(listing).toMatchObject({ status: 1, stderr: expect.stringMatching(/^RELEASE_HEAD_ROLLED_BACK: /) });
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31 * DAY_MS });
  onTestFinished(() => void vi.useRealTimers());
  expect((await run('list', ...readOptions(folder))).stderr).toMatch(/^RELEASE_HEAD_EXPIRED: /);
  expect(await run('renew', ...signOptions(folder), '--days', '7')).toMatchObject({ status: 0 });
  expect(await run('list', ...readOptions(folder))).toMatchObject({ status: 0 });
});

test('an author who keeps the head signs no older copy of the log, and no other log, by mistake', async () => {
  const seenOption = ['--seen', at('seen.json')];
  const releaseOptions = ['--repository', REPOSITORY, '--out', at('out'), '--schema', at('schema.json')];
  const signNext = (version: string) =>
    run('sign', version, ...releaseOptions, ...signOptions(folder), ...seenOption);
  expect((await signNext('v1.2.0')).stdout).toContain(`began the log ${at('log.json')}\n`);
  const older = readFileSync(at('log.json'));
  expect((await signNext('v1.3.0')).stdout).toContain(`\nwrote ${at('log.json')}\n`);
  expect(await run('withdraw', 'v1.2.0', ...signOptions(folder), ...seenOption)).toMatchObject({ status: 0 });
  expect(JSON.parse(readFileSync(at('seen.json'), 'utf8'))).toMatchObject({ sequence: 3 });
  writeFileSync(at('log.json'), older);
  const rolledBack = { status: 1, stderr: expect.stringMatching(/^RELEASE_HEAD_ROLLED_BACK: /) };
  expect(await run('renew', ...signOptions(folder), ...seenOption)).toMatchObject(rolledBack);
  expect(await signNext('v1.4.0')).toMatchObject(rolledBack);
  expect(readFileSync(at('log.json'))).toEqual(older);
  rmSync(at('log.json'));
  expect((await signNext('v1.4.0')).stderr).toMatch(/log\.json can't be read: ENOENT/);
  expect(existsSync(at('log.json'))).toBe(false);
});

test('a release without a key is verified by its identity, with the root beside the file of the signer', async () => {
  await sign();
  const sigstore = await Sigstore.start();
  const resign = async (envelope: { payload: string }) =>
    await sigstore.sign(Buffer.from(envelope.payload, 'base64').toString(), { commit: COMMIT });
  const release = JSON.parse(readFileSync(at('out/release.json'), 'utf8'));
  const log = JSON.parse(readFileSync(at('log.json'), 'utf8'));
  const statements = await Promise.all(release.statements.map(resign));
  writeFileSync(at('out/release.json'), JSON.stringify({ ...release, statements }));
  writeFileSync(at('log.json'), JSON.stringify({ ...log, head: await resign(log.head) }));
  writeWorkflowSigner(at('signer.json'), sigstore.root());
  expect(await verify()).toMatchObject({ status: 0, stderr: '' });
  writeWorkflowSigner(at('signer.json'), sigstore.root(), { repositoryId: '1' });
  expect(await verify()).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^RELEASE_IDENTITY: .*repository id/),
  });
});

describe('release refuses', () => {
  test.each<[string, object]>([
    ['a build of changes that were not committed', { unchanged_tree: false }],
    ['a build without a commit', { commit: null }],
    ['a build with another Node', { node_version: '24.0.0' }],
    ['a build whose record has other registers', { registers: { ...REGISTERS, pcr2: 'd3'.repeat(48) } }],
    ['a build whose record has another image', { sha256: { ...LISTS, eif: 'e'.repeat(64) } }],
    ['a build without digests of its packages', { sha256: { eif: 'e'.repeat(64) } }],
    ['a build that is experimental', { channel: 'experimental' }],
    ['a build without a channel', { channel: undefined }],
  ])('%s', async (_, measurements) => {
    writeBuild(folder, REGISTERS, measurements);
    expect(await sign()).toMatchObject({ status: 1, stderr: expect.stringMatching(/^NOT_RELEASABLE: /) });
    expect([existsSync(at('out/release.json')), existsSync(at('log.json'))]).toEqual([false, false]);
  });

  test('a key that others can read, and a file that is not a key; no message has its content', async () => {
    chmodSync(at('key.pem'), 0o644);
    expect(await sign()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^RELEASE_KEY: .*chmod 600/),
    });
    writeFileSync(at('key.pem'), 'secret text', { mode: 0o600 });
    chmodSync(at('key.pem'), 0o600);
    const { status, stderr } = await sign();
    expect([status, stderr.includes('secret text'), /^RELEASE_KEY: /.test(stderr)]).toEqual([1, false, true]);
  });

  test.each<[string[], RegExp]>([
    [['sign', 'v1.2.0'], /^USAGE: sign needs --log <file>/],
    [['sign', 'v1.2.0', '--log', 'x', '--key', 'x'], /^USAGE: sign needs --repository <url>/],
    [['sign', 'latest', '--log', 'x', '--key', 'x', '--repository', REPOSITORY], /^USAGE: <version> must be/],
    [['verify', '--log', 'x', '--signer', 'x'], /^USAGE: verify needs a version or a file/],
    [['verify', 'x', '--log', 'x'], /^USAGE: verify needs --signer/],
    [['list', '--log', 'x', '--signer', 'x', '--key', 'x'], /^USAGE: list takes no --key/],
    [['list', '--log', 'x', '--signer', 'x', '--days', '9'], /^USAGE: list takes no --days/],
    [
      ['renew', '--log', 'x', '--key', 'x', '--signer', 'x'],
      /^USAGE: renew needs --key <file>, or in a work/,
    ],
    [['withdraw', 'v1.2.0', '--log', 'x'], /^USAGE: withdraw needs --key <file>, or in a workflow --signer/],
    [['renew', '--log', 'x', '--key', 'x', '--rekor', 'https://x.example'], /^USAGE: --fulcio and --rekor/],
    [['renew', '--log', 'x', '--signer', 'x', '--rekor', 'http://x.example'], /^USAGE: .*https/],
    [['subjects', '--log', 'x'], /^USAGE: subjects takes no --log/],
    [
      ['withdraw', 'v1.2.0', '--log', 'x', '--key', 'x', '--bytecode', 'x'],
      /^USAGE: withdraw takes no --byt/,
    ],
    [['verify', 'x', '--log', 'x', '--signer', 'x', '--out', 'x'], /^USAGE: verify takes no --out/],
    [['renew', 'v1.2.0', '--log', 'x', '--key', 'x'], /^USAGE: unexpected argument/],
    [['publish'], /^USAGE: /],
  ])('the command line %j', async (argv, message) => {
    expect(await run(...argv)).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
  });

  test.each([['{"publicKey":"00"}'], ['{"publicKey":"00","identity":{}}'], ['[]'], ['{']])(
    'the signer %s',
    async (content) => {
      await sign();
      writeFileSync(at('signer.json'), content);
      expect(await verify()).toMatchObject({ status: 1, stderr: expect.stringMatching(/^SIGNER_FILE: /) });
    },
  );

  test('a malformed file of the last head', async () => {
    await sign();
    writeFileSync(at('seen.json'), '{}');
    expect(await verify('--seen', at('seen.json'))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SEEN_FILE: /),
    });
  });
});

test('each code has a meaning, which is a sentence', () => {
  for (const meaning of Object.values(RELEASE_COMMAND_CODES)) expect(meaning).toMatch(/^.+\.$/);
});
