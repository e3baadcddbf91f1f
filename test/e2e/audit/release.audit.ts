/** Audits a config together with the release by which an author vouches for its image. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { main as release } from '../../../src/cli/releases/release.ts';
import {
  readOptions,
  signOptions,
  signRelease,
  writeBuild,
  writeSigner,
} from '../../src/cli/releases/release_fixture.ts';
import { call } from '../../src/cli/run.ts';
import { weatherFiles } from '../../src/toolchain/audit/applications.ts';
import { type Application, type Deployed, World } from './world.ts';

const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };

let world: World;
let repository: ReturnType<World['repository']>;
let commit: string;
let deployed: Deployed;
beforeAll(async () => {
  world = await World.start();
  repository = world.repository();
  commit = repository.writeCommit(WEATHER.files);
  deployed = await world.deploy(WEATHER, repository, commit);
});
afterAll(() => world.close());

/** Signs a release of the config's image. @param measurements properties that differ from the config's */
async function writeRelease(measurements: object = {}): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeBuild(folder, deployed.image, { commit, folder: WEATHER.folder, ...measurements });
  writeSigner(folder);
  expect(await signRelease(folder)).toMatchObject({ status: 0 });
  return folder;
}

const audit = async (folder: string, ...options: string[]) =>
  await world.audit(deployed.configId, [
    '--source',
    world.git.formatUrl(repository),
    '--release',
    join(folder, 'out/release.json'),
    ...readOptions(folder),
    ...options,
  ]);

test('an audit names who signed a release of the image, and does not count that as a build', async () => {
  const folder = await writeRelease();
  const { publicKey } = JSON.parse(readFileSync(join(folder, 'signer.json'), 'utf8'));
  expect(await audit(folder, '--quick')).toMatchObject({
    exit: 3,
    code: 'NOT_FULLY_CHECKED',
    vouchers: [expect.stringContaining(`the key ${publicKey} signed the release v1.2.0`), expect.any(String)],
  });
});

test('an audit reports a release of a commit and folder that the config does not name', async () => {
  const folder = await writeRelease({ commit: 'd'.repeat(40), folder: 'src/apps/salt' });
  expect(await audit(folder, '--quick')).toMatchObject({
    exit: 1,
    code: 'RELEASE_DIFFERS',
    line: expect.stringMatching(/the release v1\.2\.0 differs from the config in commit, folder/),
    vouchers: [],
  });
});

test('an audit refuses a withdrawn release, which then vouches for nothing', async () => {
  const folder = await writeRelease();
  expect(await call(release, ['withdraw', 'v1.2.0', ...signOptions(folder)])).toMatchObject({ status: 0 });
  expect(await audit(folder, '--quick')).toMatchObject({
    exit: 1,
    code: 'RELEASE_REFUSED',
    line: expect.stringContaining('RELEASE_WITHDRAWN'),
    vouchers: [],
  });
});

test('an audit returns no verdict on a release without its log or with a malformed signer file', async () => {
  const folder = await writeRelease();
  const options = ['--release', join(folder, 'out/release.json')];
  expect(await world.audit(deployed.configId, options)).toMatchObject({ exit: 2, code: 'USAGE' });
  writeFileSync(join(folder, 'signer.json'), '{}');
  expect(await audit(folder)).toMatchObject({ exit: 2, code: 'SIGNER_FILE' });
});
