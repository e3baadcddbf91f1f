/** The commands that write registers take them from a release that its author vouches for. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { main } from '../../../../src/cli/releases/release.ts';
import { Deployments } from '../../../../src/cli/sui/deployments.ts';
import { checkSameSigner } from '../../../../src/cli/sui/image_to_allow.ts';
import { readConfig } from '../../../../src/library/sui/objects.ts';
import {
  COMMIT,
  REGISTERS,
  REPOSITORY,
  readOptions,
  signOptions,
  writeRelease,
} from '../releases/release_fixture.ts';
import { call } from '../run.ts';
import { ChainFixture, ofApplication, ofConfig, PACKAGE } from './chain_fixture.ts';

let fixture: ChainFixture;
let configId: string;
let folder: string;
let options: string[];
const inFolder = (name: string) => join(folder, name);
const countSent = () => fixture.node.ledger.executed.length;

beforeEach(async () => {
  fixture = await ChainFixture.start();
  configId = await fixture.config(fixture.publish());
  folder = mkdtempSync(join(tmpdir(), 'release-option-'));
  options = await writeRelease(folder);
});
afterEach(() => {
  fixture.close();
  rmSync(folder, { recursive: true });
});

test('update_pcrs allows the image of a release, and the config names its source', async () => {
  expect(await fixture.done('update_pcrs', ...ofConfig(configId), ...options)).toMatchObject({
    status: 'done',
  });
  const { image, source } = await readConfig(
    new SuiGrpcClient({ network: 'localnet', baseUrl: fixture.node.url }),
    configId,
  );
  expect(image).toEqual(REGISTERS);
  expect(source).toMatchObject({ url: REPOSITORY, commit: COMMIT, folder: '', frameworkVersion: '0.1.0' });
});

test('a release that is withdrawn or not vouched for is refused, and nothing is sent', async () => {
  const before = countSent();
  const update = async (...argv: string[]) =>
    (await fixture.run('update_pcrs', ...ofConfig(configId), ...argv)).json();
  expect(await update('--release', inFolder('out/release.json'))).toMatchObject({ code: 'USAGE' });
  expect(await update(...options, '--source-url', REPOSITORY)).toMatchObject({ code: 'USAGE' });
  expect(await update(...options, '--pcrs', inFolder('out/nitro.pcrs'))).toMatchObject({ code: 'USAGE' });
  // Without --release, nothing would be verified.
  expect(await update('--pcrs', inFolder('out/nitro.pcrs'), ...readOptions(folder))).toMatchObject({
    code: 'USAGE',
  });
  await call(main, ['withdraw', 'v1.2.0', ...signOptions(folder)]);
  expect(await update(...options)).toMatchObject({ code: 'RELEASE_WITHDRAWN' });
  expect(countSent()).toBe(before);
});

test('create_config --open takes a release whose measurements.json says that it needs no secrets', async () => {
  const before = countSent();
  const ids = ofApplication(PACKAGE, PACKAGE, 'weather', 'WEATHER');
  const create = async (argv: string[]) =>
    (await fixture.run('create_config', ...ids, 'main', '--open', ...argv)).json();
  expect(await create(options)).toMatchObject({ code: 'SECRETS_UNKNOWN' });
  const secretsFolder = mkdtempSync(join(folder, 'again-'));
  const releaseWithSecrets = await writeRelease(secretsFolder, REGISTERS, { secrets: ['API_KEY'] });
  expect(await create(releaseWithSecrets)).toMatchObject({ code: 'OPEN_SECRETS' });
  const noSecretsFolder = mkdtempSync(join(folder, 'last-'));
  const releaseWithoutSecrets = await writeRelease(noSecretsFolder, REGISTERS, { secrets: [] });
  // The file must have the digest that the release signs.
  const path = join(noSecretsFolder, 'out/measurements.json');
  const record = readFileSync(path);
  writeFileSync(path, `${record} `);
  expect(await create(releaseWithoutSecrets)).toMatchObject({ code: 'SECRETS_UNKNOWN' });
  rmSync(path);
  expect(await create(releaseWithoutSecrets)).toMatchObject({ code: 'SECRETS_UNKNOWN' });
  expect(countSent()).toBe(before);
  writeFileSync(path, record);
  expect(await create(releaseWithoutSecrets)).toMatchObject({ status: 'done', isOpen: true });
});

test('checkSameSigner accepts only the signer that the deployment file has for a config', () => {
  const signer = { publicKey: 'ab'.repeat(32) };
  const entry = { package: configId, original: configId, registrars: [], enclaves: [] };
  const config = { id: configId, name: 'main', version: 0 };
  const file = {
    network: 'localnet',
    chain: '00000000',
    applications: { price: { ...entry, config, signer } },
  };
  writeFileSync(inFolder('localnet.json'), JSON.stringify(file));
  const deployments = new Deployments('localnet', { DEPLOYMENTS: folder }, undefined);
  checkSameSigner(deployments, configId, signer);
  checkSameSigner(deployments, configId, undefined);
  checkSameSigner(deployments, `0x${'1'.repeat(64)}`, { publicKey: 'cd'.repeat(32) });
  expect(() => checkSameSigner(deployments, configId, { publicKey: 'cd'.repeat(32) })).toThrow(
    expect.objectContaining({ code: 'RELEASE_SIGNER' }),
  );
});
