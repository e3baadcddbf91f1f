/** Releases that a workflow signs without a key, by a fake Sigstore on loopback. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { main } from '../../../../src/cli/releases/release.ts';
import { RUN, type Run, Sigstore } from '../../library/release/sigstore.ts';
import { REQUEST_TOKEN, type SigstoreServer, serveSigstore } from '../../library/release/sigstore_server.ts';
import { call } from '../run.ts';
import { LISTS, REPOSITORY, readOptions, writeBuild, writeWorkflowSigner } from './release_fixture.ts';

let sigstore: Sigstore;
let service: SigstoreServer;
let folder: string;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  sigstore = await Sigstore.start();
  service = await serveSigstore(sigstore);
});
afterAll(async () => await service[Symbol.asyncDispose]());
beforeEach(() => {
  service.run = RUN;
  service.refusals = { fulcio: 0, rekor: 0 };
  folder = mkdtempSync(join(tmpdir(), 'release-'));
  writeBuild(folder);
  writeWorkflowSigner(at('signer.json'), sigstore.root());
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** Runs a command in a step of the workflow. */
async function runStep(argv: readonly string[], env = service.env()) {
  for (const name of ['ACTIONS_ID_TOKEN_REQUEST_URL', 'ACTIONS_ID_TOKEN_REQUEST_TOKEN']) {
    vi.stubEnv(name, env[name]);
  }
  const urls = ['--fulcio', service.url, '--rekor', service.url];
  return await call(main, [...argv, ...readOptions(folder), ...urls], { env });
}

const files = () => [
  '--out',
  at('out'),
  '--schema',
  at('schema.json'),
  '--bytecode',
  at('price.bytecode.json'),
];
const sign = (version = 'v1.2.0', ...more: string[]) =>
  runStep(['sign', version, '--repository', REPOSITORY, ...files(), ...more]);
const verify = () => call(main, ['verify', at('out/release.json'), ...readOptions(folder), '--json']);
const refusal = (pattern: RegExp) => ({ status: 1, stderr: expect.stringMatching(pattern) });
const areWritten = () => [existsSync(at('out/release.json')), existsSync(at('log.json'))];
/** Changes properties of the run, such as its tag and its event. */
const change = (run: Partial<Run>) => {
  service.run = { ...service.run, ...run };
};

test("a run on a tag signs both statements and the log, which readers verify by the workflow's identity", async () => {
  expect(await sign()).toMatchObject({ status: 0, stderr: '', stdout: expect.not.stringContaining('key') });
  const verified = await verify();
  expect(JSON.parse(verified.stdout)).toMatchObject({
    version: 'v1.2.0',
    source: { url: REPOSITORY, commit: RUN.commit },
  });
  const { statements } = JSON.parse(readFileSync(at('out/release.json'), 'utf8'));
  const [provenance, release] = statements.map((bundle: { dsseEnvelope: { payload: string } }) =>
    JSON.parse(String(Buffer.from(bundle.dsseEnvelope.payload, 'base64'))),
  );
  const packages = { npm: LISTS.npm_packages, debian: LISTS.debian_lock };
  expect(release.predicate).toMatchObject({ version: 'v1.2.0', commit: RUN.commit, packages });
  expect(provenance.predicate).toMatchObject({
    buildDefinition: {
      externalParameters: { workflow: { ref: RUN.ref, repository: REPOSITORY, path: RUN.workflow } },
      internalParameters: { github: { event_name: 'push', repository_id: RUN.repositoryId } },
      resolvedDependencies: [{ uri: `git+${REPOSITORY}@${RUN.ref}`, digest: { gitCommit: RUN.commit } }],
    },
    runDetails: {
      builder: { id: `${REPOSITORY}/${RUN.workflow}@${RUN.ref}` },
      metadata: { invocationId: `${REPOSITORY}/actions/runs/1234567890/attempts/1` },
    },
  });
});

test('a run by hand on the newest tag renews the head and withdraws releases', async () => {
  await sign();
  change({ event: 'workflow_dispatch' });
  expect(await runStep(['renew', '--days', '3'])).toMatchObject({ status: 0, stderr: '' });
  expect(await verify()).toMatchObject({ status: 0 });
  expect(await runStep(['withdraw', 'v1.2.0'])).toMatchObject({ status: 0, stderr: '' });
  expect(await verify()).toMatchObject({ status: 1, stdout: expect.stringContaining('"RELEASE_WITHDRAWN"') });
  expect(await runStep(['renew'])).toMatchObject({ status: 0 });
});

test('a run by hand on an older tag renews and withdraws nothing: what it signs is not written', async () => {
  await sign();
  change({ ref: 'refs/tags/v1.3.0' });
  expect(await sign('v1.3.0')).toMatchObject({ status: 0 });
  const log = readFileSync(at('log.json'));
  change({ ref: 'refs/tags/v1.2.0', event: 'workflow_dispatch' });
  expect(await runStep(['renew'])).toMatchObject(refusal(/^RELEASE_IDENTITY: .*source ref/));
  expect(await runStep(['withdraw', 'v1.3.0'])).toMatchObject(refusal(/^RELEASE_IDENTITY: /));
  expect(readFileSync(at('log.json'))).toEqual(log);
});

describe('nothing is written, and the error names the cause, if', () => {
  test.each<[string, Partial<Run>, RegExp]>([
    ['a run by hand signs a release', { event: 'workflow_dispatch' }, /^RELEASE_IDENTITY: .*event/],
    ['a pull request starts the run', { event: 'pull_request_target' }, /^RELEASE_IDENTITY: .*event/],
    ['another workflow runs', { workflow: '.github/workflows/x.yml' }, /^RELEASE_IDENTITY: .*workflow/],
    ['the repository has another id', { repositoryId: '1' }, /^RELEASE_IDENTITY: .*repository id/],
    ["the runner is not one of GitHub's", { runner: 'self-hosted' }, /^RELEASE_IDENTITY: .*runner/],
    ['the run has another commit', { commit: 'd'.repeat(40) }, /^RELEASE_COMMIT: /],
    ['the run has another tag', { ref: 'refs/tags/v1.2.1' }, /^RELEASE_(COMMIT|IDENTITY): /],
    ['the run is on a branch', { ref: 'refs/heads/main' }, /^NOT_IN_WORKFLOW: .*GITHUB_WORKFLOW_REF/],
  ])('%s', async (_, run, message) => {
    change(run);
    expect(await sign()).toMatchObject(refusal(message));
    expect(areWritten()).toEqual([false, false]);
  });

  test('the command does not run in a workflow', async () => {
    const argv = ['sign', 'v1.2.0', '--repository', REPOSITORY, ...files()];
    expect(await runStep(argv, {})).toMatchObject(refusal(/^NOT_IN_WORKFLOW: .*id-token: write/));
    expect(areWritten()).toEqual([false, false]);
  });

  test.each(['fulcio', 'rekor'] as const)(
    '%s refuses; the error does not contain the token of the run',
    async (name) => {
      service.refusals[name] = 400;
      const { status, stdout, stderr } = await sign();
      expect([status, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^SIGSTORE: Sigstore did not sign: [A-Z_]+, status 400\n$/);
      expect(areWritten()).toEqual([false, false]);
    },
  );

  test('the run can get no token; the error does not contain the secret of its request', async () => {
    const argv = ['sign', 'v1.2.0', '--repository', REPOSITORY, ...files()];
    const env = { ...service.env(), ACTIONS_ID_TOKEN_REQUEST_TOKEN: `not-${REQUEST_TOKEN}` };
    const { status, stderr } = await runStep(argv, env);
    expect([status, stderr.includes(REQUEST_TOKEN)]).toEqual([1, false]);
    expect(stderr).toMatch(/^SIGSTORE: Sigstore did not sign: IDENTITY_TOKEN_[A-Z_]+\n$/);
  });

  test('another build has other bytes', async () => {
    const { stdout } = await call(main, ['subjects', ...files()]);
    expect(stdout.split('\n')).toHaveLength(2);
    writeFileSync(at('rebuilt.json'), stdout.replace(/("sbom.json":")./, '$1x'));
    expect(await sign('v1.2.0', '--rebuilt', at('rebuilt.json'))).toMatchObject(
      refusal(/^NOT_REPRODUCED: .*: sbom\.json\n$/),
    );
    writeFileSync(at('rebuilt.json'), stdout.replace(/"sbom.json":"[^"]*",/, ''));
    expect(await sign('v1.2.0', '--rebuilt', at('rebuilt.json'))).toMatchObject(refusal(/: sbom\.json\n$/));
    writeFileSync(at('rebuilt.json'), '{');
    expect(await sign('v1.2.0', '--rebuilt', at('rebuilt.json'))).toMatchObject(
      refusal(/^NOT_REPRODUCED: .*release subjects/),
    );
    expect(areWritten()).toEqual([false, false]);
    writeFileSync(at('rebuilt.json'), stdout);
    expect(await sign('v1.2.0', '--rebuilt', at('rebuilt.json'))).toMatchObject({ status: 0 });
  });

  test('the file of the signer names a key', async () => {
    onTestFinished(() => expect(areWritten()).toEqual([false, false]));
    writeFileSync(at('signer.json'), JSON.stringify({ publicKey: 'a'.repeat(64) }));
    expect(await sign()).toMatchObject({ status: 2, stderr: expect.stringMatching(/^USAGE: .*--key/) });
  });
});
