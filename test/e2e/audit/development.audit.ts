/**
 * Audits configs of a development network, whose image is an emulated enclave's. An audit compares everything
 * else, and never agrees with such a config.
 */
import { createHash } from 'node:crypto';
import { Transaction } from '@mysten/sui/transactions';
import { toHex } from '@mysten/sui/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Image } from '../../../src/library/attestation/image.ts';
import { retireConfig } from '../../../src/library/sui/transactions.ts';
import { developmentRegisters } from '../../../src/testing/emulated_nsm.ts';
import { createDevelopmentMeasurements } from '../../../src/toolchain/image/measurements.ts';
import { weatherFiles } from '../../src/toolchain/audit/applications.ts';
import type { TestRepository } from '../../src/toolchain/audit/git_server.ts';
import { type Application, type Deployed, World } from './world.ts';

const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };

let world: World;
let repository: TestRepository;
let commit: string;
let source: string[];
beforeAll(async () => {
  world = await World.start();
  repository = world.repository();
  commit = repository.writeCommit(WEATHER.files);
  source = ['--source', repository.folder];
});
afterAll(() => world.close());

function createImage(application: string, image = 1): Image {
  const [pcr0 = '', pcr1 = '', pcr2 = ''] = developmentRegisters(application, image).map(toHex);
  return { pcr0, pcr1, pcr2 };
}

/** Returns the SHA-256 of the record of an image, as `dev` writes it. */
function hashRecord(image: Image, sourceCommit = commit): string {
  const origin = { folder: WEATHER.folder, commit: sourceCommit, isUnchanged: true };
  const record = createDevelopmentMeasurements(world.loadSource(WEATHER), image, origin);
  return createHash('sha256')
    .update(`${JSON.stringify(record, null, 2)}\n`)
    .digest('hex');
}

const deploy = (image: Image, measurementsSha256 = hashRecord(image)) =>
  world.deploy(WEATHER, repository, commit, { image, source: { measurementsSha256 } });

async function retire(deployed: Deployed): Promise<void> {
  const tx = new Transaction();
  retireConfig(tx, deployed);
  await world.submit(tx);
}

/** Fails the test if an audit builds the image. */
const build = () => Promise.reject(new Error('it was built'));

describe('a development image', () => {
  test('is named in the verdict, and has an exit code of its own, though everything else is the same', async () => {
    for (const image of [createImage('weather'), createImage('weather', 2)]) {
      const deployed = await deploy(image);
      const url = await world.serve(deployed);
      const verdict = await world.audit(deployed.configId, [...source, '--url', url], { build });
      expect(verdict, verdict.out).toMatchObject({
        exit: 4,
        verdict: 'development image',
        code: 'DEVELOPMENT_IMAGE',
      });
      expect(verdict.line).toMatch(/^DEVELOPMENT_IMAGE: no verdict on an image\. .* a DEVELOPMENT image/);
      expect(
        verdict.checks.filter(({ result: outcome }) => outcome !== 'same').map(({ code }) => code),
      ).toEqual(['DEVELOPMENT_IMAGE']);
      // The next audit would report this config as another config of the application.
      await retire(deployed);
    }
  });

  test('without an enclave is not fully checked, and still named', async () => {
    const deployed = await deploy(createImage('weather'));
    const verdict = await world.audit(deployed.configId, source, { build });
    expect(verdict, verdict.out).toMatchObject({ exit: 3, code: 'NOT_FULLY_CHECKED' });
    expect(verdict.line).toContain('a DEVELOPMENT image');
    await retire(deployed);
  });

  test('of another application, or with the record of another commit, differs', async () => {
    const otherDeployment = await deploy(createImage('salt'));
    expect(await world.audit(otherDeployment.configId, source, { build })).toMatchObject({
      exit: 1,
      code: 'REGISTERS_DIFFER',
    });
    const image = createImage('weather');
    const stale = await deploy(image, hashRecord(image, '1'.repeat(40)));
    expect(await world.audit(stale.configId, source, { build })).toMatchObject({
      exit: 1,
      code: 'MEASUREMENTS_DIFFER',
    });
  });

  test('differs on a real network, where the audit builds the image and gets other registers', async () => {
    const deployed = await deploy(createImage('weather'));
    const verdict = await world.audit(deployed.configId, [...source, '--network', 'testnet'], {
      root: false,
    });
    expect(verdict, verdict.out).toMatchObject({ exit: 1, code: 'REGISTERS_DIFFER' });
  });
});
