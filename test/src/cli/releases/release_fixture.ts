/** The files of a build, and a release of it that is signed by a key. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { main } from '../../../../src/cli/releases/release.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import type { Image } from '../../../../src/library/attestation/index.ts';
import { RUN } from '../../library/release/sigstore.ts';
import { call } from '../run.ts';

export const REGISTERS: Image = { pcr0: 'a0'.repeat(48), pcr1: 'b1'.repeat(48), pcr2: 'c2'.repeat(48) };
export const COMMIT = 'c'.repeat(40);
export const REPOSITORY = 'https://github.com/example/price';

/** Digests of the lists of packages, as measurements.json has them. */
export const LISTS = { npm_packages: '1'.repeat(64), debian_lock: '2'.repeat(64) };

/** Writes the files of a build. @param measurements the properties that differ in `measurements.json` */
export function writeBuild(folder: string, registers = REGISTERS, measurements: object = {}): void {
  const record = {
    application: 'price',
    commit: COMMIT,
    unchanged_tree: true,
    channel: 'stable',
    folder: '.',
    framework_version: '0.1.0',
    registers,
    sha256: { eif: createHash('sha256').update('eif').digest('hex'), ...LISTS },
    ...measurements,
  };
  const files = {
    'out/nitro.eif': 'eif',
    'out/nitro.pcrs': formatPcrs(registers),
    'out/sbom.json': '{}',
    'out/inputs.tar': 'inputs',
    'out/measurements.json': JSON.stringify(record),
    'schema.json': '{}',
    'price.bytecode.json': '{}',
  };
  mkdirSync(join(folder, 'out'), { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}

/** Writes `key.pem`, and `signer.json` that names it. */
export function writeSigner(folder: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ format: 'pem', type: 'pkcs8' }), {
    mode: 0o600,
  });
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  writeFileSync(join(folder, 'signer.json'), JSON.stringify({ publicKey: raw }));
}

/**
 * Writes the file of a signer that names the workflow of RUN, and `root.json` beside it.
 *
 * @param identity properties that differ
 */
export function writeWorkflowSigner(file: string, root: object, identity: object = {}): void {
  const { issuer, repositoryId, ownerId, workflow } = RUN;
  const signer = {
    identity: { issuer, repositoryId, ownerId, workflow, ...identity },
    trustedRoot: 'root.json',
  };
  writeFileSync(join(dirname(file), 'root.json'), JSON.stringify(root));
  writeFileSync(file, JSON.stringify(signer));
}

/** Options of the commands that sign. */
export const signOptions = (folder: string) => [
  '--log',
  join(folder, 'log.json'),
  '--key',
  join(folder, 'key.pem'),
];

/** Options of the commands that read. */
export const readOptions = (folder: string) => [
  '--log',
  join(folder, 'log.json'),
  '--signer',
  join(folder, 'signer.json'),
];

export async function signRelease(folder: string, version = 'v1.2.0') {
  const files = ['--out', join(folder, 'out'), '--schema', join(folder, 'schema.json')];
  const bytecode = ['--bytecode', join(folder, 'price.bytecode.json')];
  return await call(main, [
    'sign',
    version,
    '--repository',
    REPOSITORY,
    ...files,
    ...bytecode,
    ...signOptions(folder),
  ]);
}

/** Writes a build, its signer and its release, and returns the options that name the release. */
export async function writeRelease(
  folder: string,
  registers = REGISTERS,
  measurements: object = {},
): Promise<string[]> {
  writeBuild(folder, registers, measurements);
  writeSigner(folder);
  expect(await signRelease(folder)).toMatchObject({ status: 0, stderr: '' });
  return ['--release', join(folder, 'out/release.json'), ...readOptions(folder)];
}
