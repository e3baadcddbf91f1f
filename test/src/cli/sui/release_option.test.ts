/** The commands that write registers take them from a release that its author vouches for. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { main } from '../../../../src/cli/releases/release.ts';
import { checkSameSigner } from '../../../../src/cli/sui/contract.ts';
import { Deployments } from '../../../../src/cli/sui/deployments.ts';
import { formatRegisters } from '../../../../src/library/release/statement.ts';
import { readConfig } from '../../../../src/library/sui/objects.ts';
import { call } from '../run.ts';
import { ChainFixture, ofConfig } from './chain_fixture.ts';

const REGISTERS = { pcr0: 'a0'.repeat(48), pcr1: 'b1'.repeat(48), pcr2: 'c2'.repeat(48) };
const COMMIT = 'c'.repeat(40);
const REPOSITORY = 'https://github.com/example/price';

let fixture: ChainFixture;
let configId: string;
let folder: string;
let options: string[];
const at = (name: string) => join(folder, name);
const keyed = () => ['--log', at('log.json'), '--key', at('key.pem')];
const sent = () => fixture.node.ledger.executed.length;

beforeEach(async () => {
  fixture = await ChainFixture.start();
  configId = await fixture.config(fixture.publish());
  folder = mkdtempSync(join(tmpdir(), 'release-option-'));
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const measurements = { commit: COMMIT, unchanged_tree: true, folder: '.', registers: REGISTERS };
  for (const [name, content] of [
    ['nitro.eif', 'eif'],
    ['nitro.pcrs', formatRegisters(REGISTERS)],
    ['sbom.json', '{}'],
    ['inputs.tar', 'inputs'],
    ['measurements.json', JSON.stringify({ ...measurements, framework_version: '0.1.0' })],
    ['schema.json', '{}'],
  ] as const) {
    writeFileSync(at(name), content);
  }
  writeFileSync(at('key.pem'), privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  writeFileSync(at('signer.json'), JSON.stringify({ publicKey: raw }));
  const inputs = ['--out', folder, '--schema', at('schema.json'), '--repository', REPOSITORY];
  expect(await call(main, ['sign', 'v1.2.0', ...inputs, ...keyed()])).toMatchObject({ status: 0 });
  options = ['--release', at('release.json'), '--log', at('log.json'), '--signer', at('signer.json')];
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

test('a release that is withdrawn, or that nothing vouches for, is refused, and nothing is sent', async () => {
  const before = sent();
  const update = async (...argv: string[]) =>
    (await fixture.run('update_pcrs', ...ofConfig(configId), ...argv)).json();
  expect(await update('--release', at('release.json'))).toMatchObject({ code: 'USAGE' });
  expect(await update(...options, '--source-url', REPOSITORY)).toMatchObject({ code: 'USAGE' });
  await call(main, ['withdraw', 'v1.2.0', ...keyed()]);
  expect(await update(...options)).toMatchObject({ code: 'RELEASE_WITHDRAWN' });
  expect(sent()).toBe(before);
});

test('the signer with whose release a config was created is the only one', () => {
  const signer = { publicKey: 'ab'.repeat(32) };
  const entry = { package: configId, original: configId, registrars: [], enclaves: [] };
  const config = { id: configId, name: 'main', version: 0 };
  const file = {
    network: 'localnet',
    chain: '00000000',
    applications: { price: { ...entry, config, signer } },
  };
  writeFileSync(at('localnet.json'), JSON.stringify(file));
  const deployments = new Deployments('localnet', { DEPLOYMENTS: folder }, undefined);
  checkSameSigner(deployments, configId, signer);
  checkSameSigner(deployments, configId, undefined);
  checkSameSigner(deployments, `0x${'1'.repeat(64)}`, { publicKey: 'cd'.repeat(32) });
  expect(() => checkSameSigner(deployments, configId, { publicKey: 'cd'.repeat(32) })).toThrow(
    expect.objectContaining({ code: 'RELEASE_SIGNER' }),
  );
});
