/**
 * Tests an audit with its real build, and compares it with the image that `make image` has built from the
 * same files.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { measureImage } from '../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../src/cli/image/eif/read.ts';
import { rebuild } from '../../../src/toolchain/audit/rebuild.ts';
import { clonedFiles, ROOT } from '../../src/toolchain/audit/applications.ts';
import { type Application, hashRecord, World } from './world.ts';

const IMAGE = join(ROOT, 'out/nitro.eif');
const RELAY = join(ROOT, 'out/relay');
const CACHE = join(process.env['CACHE'] ?? join(process.env['HOME'] ?? '', '.cache/sui-enclave'), 'packages');

/** Returns whether `make image` has built weather from the current commit. */
function hasImage(): boolean {
  const record = join(ROOT, 'out/measurements.json');
  if (spawnSync('buildah', ['--version']).status !== 0 || !existsSync(IMAGE) || !existsSync(record))
    return false;
  const { commit, unchanged_tree, application } = JSON.parse(readFileSync(record, 'utf8'));
  const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  return commit === head && unchanged_tree === true && application === 'weather';
}

const WEATHER: Application = { files: clonedFiles(), folder: 'src/apps/weather', module: 'weather' };

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.close());

describe.runIf(hasImage())('an audit with a build', () => {
  test('builds the same image as make, but does not start it for trial, and agrees with a config of that image', async () => {
    const repository = world.repository();
    const commit = repository.writeCommit(WEATHER.files);
    const eif = readFileSync(IMAGE);
    const image = measureImage(readEif(eif));
    const outputs = { eif, relay: readFileSync(RELAY) };
    const measurementsSha256 = hashRecord(world.loadSource(WEATHER), outputs, commit, WEATHER.folder);
    const deployed = await world.deploy(WEATHER, repository, commit, {
      image,
      source: { measurementsSha256 },
    });
    const url = await world.serve(deployed);
    const options = ['--source', world.git.formatUrl(repository), '--url', url, '--cache', CACHE];
    const verdict = await world.audit(deployed.configId, options, { build: rebuild });
    expect(verdict, verdict.out).toMatchObject({ exit: 0, verdict: 'agrees' });
  }, 600_000);
});
