/**
 * Runs the steps of the release workflow as its jobs do: with the template's `.ci/release`, a bare git
 * repository, and a fake of Sigstore on loopback. Two programs on the PATH are fakes too: `npx`, which runs
 * this tree's `sui-enclave` and copies prepared files in place of the builds; and `gh`, which keeps assets in
 * a folder.
 */
import { execFile, execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { main } from '../../src/cli/releases/release.ts';
import { writeBuild, writeWorkflowSigner } from '../src/cli/releases/release_fixture.ts';
import { call } from '../src/cli/run.ts';
import { RUN, Sigstore } from '../src/library/release/sigstore.ts';
import { type SigstoreServer, serveSigstore } from '../src/library/release/sigstore_server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = join(ROOT, 'src/cli/main.ts');
const SCRIPT = join(ROOT, 'src/create/templates/repository/.ci/release');

const NPX = `#!/usr/bin/env bash
set -euo pipefail
shift 2
case $1 in
  build) cp "$BUILD"/out/* out ;;
  compile) cp "$BUILD/price.bytecode.json" "out/$2.$4.bytecode.json" ;;
  *)
    urls=()
    case $2 in sign | renew | withdraw) urls=(--fulcio "$SIGSTORE" --rekor "$SIGSTORE") ;; esac
    exec "$NODE" "$PROGRAM" "$@" "\${urls[@]}"
    ;;
esac
`;
const GH = `#!/usr/bin/env bash
set -euo pipefail
echo "$*" >>"$GH_FOLDER/calls"
case "$1 $2" in
  'release view') [ -d "$GH_FOLDER/$3" ] ;;
  'release create') mkdir "$GH_FOLDER/$3" ;;
  'release upload') cp "\${@:5}" "$GH_FOLDER/$3" ;;
  'workflow run') ;;
  *) exit 1 ;;
esac
`;

let sigstore: Sigstore;
let service: SigstoreServer;
let folder: string;
const pathOf = (name: string) => join(folder, name);

beforeAll(async () => {
  sigstore = await Sigstore.start();
  service = await serveSigstore(sigstore);
});
afterAll(async () => await service[Symbol.asyncDispose]());

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'release-workflow-'));
  service.run = RUN;
  for (const name of ['bin', 'gh', 'build', 'work/out', 'work/move/price', 'work/.ci']) {
    mkdirSync(pathOf(name), { recursive: true });
  }
  writeFileSync(pathOf('bin/npx'), NPX, { mode: 0o755 });
  writeFileSync(pathOf('bin/npm'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(pathOf('bin/gh'), GH, { mode: 0o755 });
  writeBuild(pathOf('build'));
  cpSync(SCRIPT, pathOf('work/.ci/release'));
  writeFileSync(pathOf('work/schema.json'), '{}');
  writeWorkflowSigner(pathOf('work/release-signer.json'), sigstore.root());
  execFileSync('git', ['init', '--quiet', '--bare', pathOf('origin.git')]);
  execFileSync('git', ['init', '--quiet', pathOf('work')]);
  git('remote', 'add', 'origin', pathOf('origin.git'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: pathOf('work'), encoding: 'utf8' }).trim();

/** Runs a step of a job. */
function run(step: string, variables: Readonly<Record<string, string>> = {}) {
  const env = {
    PATH: `${pathOf('bin')}:${process.env['PATH']}`,
    HOME: folder,
    NODE: process.execPath,
    PROGRAM,
    BUILD: pathOf('build'),
    SIGSTORE: service.url,
    GH_FOLDER: pathOf('gh'),
    GITHUB_OUTPUT: pathOf('output'),
    GITHUB_REF_NAME: service.run.ref.replace('refs/tags/', ''),
    ...service.env(),
    ...variables,
  };
  return new Promise<{ status: number; stderr: string }>((resolve) => {
    const file = join(pathOf('work'), '.ci/release');
    const child = execFile(file, [step], { cwd: pathOf('work'), env }, (_error, _stdout, stderr) =>
      resolve({ status: child.exitCode ?? -1, stderr }),
    );
  });
}

/**
 * Runs both jobs of a tag.
 *
 * @param changeRebuilt changes the digests that the first job passes to the second
 */
async function release(tag: string, changeRebuilt = (subjects: string) => subjects) {
  service.run = { ...RUN, ref: `refs/tags/${tag}` };
  rmSync(pathOf('output'), { force: true });
  expect(await run('build')).toMatchObject({ status: 0 });
  const [, subjects = ''] = /^subjects=(\{.*\})\n$/.exec(readFileSync(pathOf('output'), 'utf8')) ?? [];
  return await run('publish', { REBUILT: changeRebuilt(subjects) });
}

/** Verifies the published release, as a user who has the signer's file. */
async function verify(tag: string) {
  const log = execFileSync('git', ['--git-dir', pathOf('origin.git'), 'show', 'releases:releases.json']);
  writeFileSync(pathOf('log.json'), log);
  const signer = pathOf('work/release-signer.json');
  const argv = ['verify', pathOf(`gh/${tag}/release.json`), '--log', pathOf('log.json'), '--signer', signer];
  return await call(main, argv);
}

const calls = () => readFileSync(pathOf('gh/calls'), 'utf8').trim().split('\n');
const countCommits = () =>
  execFileSync('git', ['--git-dir', pathOf('origin.git'), 'rev-list', '--count', 'releases'], {
    encoding: 'utf8',
  });

test('a tag is released with its files, and the log has a commit for each change', async () => {
  expect(await release('v1.2.0')).toEqual({ status: 0, stderr: '' });
  expect(readdirSync(pathOf('gh/v1.2.0')).sort()).toEqual([
    'inputs.tar',
    'measurements.json',
    'nitro.eif',
    'nitro.pcrs',
    'price.testnet.bytecode.json',
    'release.json',
    'sbom.json',
    'schema.json',
  ]);
  expect(await verify('v1.2.0')).toMatchObject({ status: 0 });
  expect(await release('v1.3.0')).toMatchObject({ status: 0 });
  expect(await verify('v1.2.0')).toMatchObject({ status: 0 });
  expect(await verify('v1.3.0')).toMatchObject({ status: 0 });

  expect(await run('request_renewal')).toMatchObject({ status: 0 });
  expect(calls().at(-1)).toBe('workflow run release.yml --ref v1.3.0');
  service.run = { ...service.run, event: 'workflow_dispatch' };
  expect(await run('head', { WITHDRAW: '' })).toMatchObject({ status: 0 });
  expect(await run('head', { WITHDRAW: 'v1.2.0' })).toMatchObject({ status: 0 });
  expect(await verify('v1.2.0')).toMatchObject({ stderr: expect.stringMatching(/^RELEASE_WITHDRAWN: /) });
  expect(await verify('v1.3.0')).toMatchObject({ status: 0 });
  expect(countCommits()).toBe('4\n');
});

describe('nothing is published', () => {
  test('if a byte of the other build differs', async () => {
    const changed = await release('v1.2.0', (subjects) => subjects.replace(/("nitro.eif":")./, '$1x'));
    expect(changed).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^NOT_REPRODUCED: .*nitro\.eif/),
    });
    expect(existsSync(pathOf('gh/calls'))).toBe(false);
  });

  test('if the other job has no output, or output of another form', async () => {
    const missing = /REBUILT: must be the output of the other job/;
    expect(await release('v1.2.0', () => '')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(missing),
    });
    expect(await release('v1.2.0', () => '{}')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^NOT_REPRODUCED: /),
    });
    expect(existsSync(pathOf('gh/calls'))).toBe(false);
  });

  test('if the log can not be read, and no new log is created', async () => {
    await release('v1.2.0');
    git('remote', 'set-url', 'origin', pathOf('missing.git'));
    expect(await release('v1.3.0')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("the branch releases can't be read"),
    });
    expect(existsSync(pathOf('gh/v1.3.0'))).toBe(false);
  });

  test('if somebody else wrote the log', async () => {
    const forged = JSON.stringify({ version: 1, entries: [], head: {} });
    execFileSync('git', ['init', '--quiet', '-b', 'releases', pathOf('forged')]);
    writeFileSync(pathOf('forged/releases.json'), forged);
    const commit = ['-c', 'user.name=x', '-c', 'user.email=x', 'commit', '--quiet', '-m', 'x'];
    for (const args of [['add', '.'], commit, ['push', '--quiet', pathOf('origin.git'), 'releases']]) {
      execFileSync('git', args, { cwd: pathOf('forged') });
    }
    expect(await release('v1.2.0')).toMatchObject({ status: 1, stderr: expect.stringMatching(/^RELEASE_/) });
    expect(existsSync(pathOf('gh/calls'))).toBe(false);
  });

  test('twice under one version', async () => {
    await release('v1.2.0');
    const assets = readFileSync(pathOf('gh/v1.2.0/release.json'));
    expect(await release('v1.2.0')).toMatchObject({ status: 1, stderr: expect.stringMatching(/^LOGGED: /) });
    expect(readFileSync(pathOf('gh/v1.2.0/release.json'))).toEqual(assets);
  });

  test('without the file of the signer, which the build requires', async () => {
    rmSync(pathOf('work/release-signer.json'));
    expect(await run('build')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^release-signer\.json is missing/),
    });
  });
});

test('a run that failed between the release and its entry in the log can be repeated', async () => {
  writeFileSync(pathOf('origin.git/hooks/pre-receive'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  expect(await release('v1.2.0')).toMatchObject({ status: 1 });
  expect(existsSync(pathOf('gh/v1.2.0'))).toBe(true);
  rmSync(pathOf('origin.git/hooks/pre-receive'));
  expect(await release('v1.2.0')).toMatchObject({ status: 0 });
  expect(await verify('v1.2.0')).toMatchObject({ status: 0 });
});

test('a renewal before the first release is not requested', async () => {
  expect(await run('request_renewal')).toEqual({ status: 0, stderr: '' });
  expect(existsSync(pathOf('gh/calls'))).toBe(false);
});
