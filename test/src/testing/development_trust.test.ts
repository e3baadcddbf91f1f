import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { certificatesFromPem, parsePcrs, verifyAttestation } from '../../../src/library/attestation/index.ts';
import { Nsm } from '../../../src/server/nsm/nsm.ts';
import { createRoot, toPem } from '../../../src/testing/attestation_ca.ts';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Makes a folder to which a first start has written. */
function createStartedFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-trust-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const url = pathToFileURL(`${folder}/out/`);
  DevelopmentTrust.load(url, 'weather').save();
  const file = (name: string) => join(folder, 'out', name);
  const read = (name: string) => readFileSync(file(name), 'utf8');
  const isRootKept = (now = Date.now()) => {
    const pem = read('dev-root.pem');
    return DevelopmentTrust.load(url, 'weather', { now }).nsm.rootPem() === pem;
  };
  return { url, file, read, isRootKept };
}

test('the root stays the same from start to start, and only its owner can read its key', () => {
  const { url, file, read, isRootKept } = createStartedFolder();
  const [pem, key] = [read('dev-root.pem'), read('dev-root.key')];
  expect(statSync(file('dev-root.key')).mode & 0o777).toBe(0o600);
  expect(isRootKept()).toBe(true);
  expect(DevelopmentTrust.load(url, 'weather').save()).toMatch(
    /under the root in out\/dev-root\.pem: .* prove nothing/,
  );
  expect([read('dev-root.pem'), read('dev-root.key')]).toEqual([pem, key]);
});

test('the root, its key and the registers replace links, and do not change their targets', () => {
  const { url, file, read } = createStartedFolder();
  writeFileSync(file('victim'), 'kept');
  rmSync(file('dev.pcrs'));
  symlinkSync(file('victim'), file('dev.pcrs'));
  for (const name of ['key', 'pem']) {
    rmSync(file(`dev-root.${name}`));
    symlinkSync(file('victim'), file(`dev-root.${name}.${process.pid}`));
  }
  DevelopmentTrust.load(url, 'weather').save();
  expect(read('victim')).toBe('kept');
  expect(read('dev-root.key')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
});

test('documents of a later start verify under the root of the first', async () => {
  const { url, read } = createStartedFolder();
  const roots = certificatesFromPem(read('dev-root.pem'));
  const images = [parsePcrs(read('dev.pcrs'))];
  const document = await new Nsm(DevelopmentTrust.load(url, 'weather').nsm).attestation({
    publicKey: new Uint8Array(32),
    nonce: null,
    userData: null,
  });
  const verified = await verifyAttestation(document, { now: Date.now(), policy: { images }, roots });
  expect(verified.document.publicKey).toEqual(new Uint8Array(32));
});

test('each application has its own PCR2, in a file of its own, under the same root', () => {
  const { url, read } = createStartedFolder();
  const [pem, weather] = [read('dev-root.pem'), read('dev.pcrs')];
  expect(DevelopmentTrust.load(url, 'salt').save()).toMatch(/Registers: out\/dev-salt\.pcrs\.$/);
  expect([read('dev-root.pem'), read('dev.pcrs')]).toEqual([pem, weather]);
  const [weatherImage, saltImage] = [parsePcrs(weather), parsePcrs(read('dev-salt.pcrs'))];
  expect(saltImage).toEqual({ ...weatherImage, pcr2: expect.not.stringMatching(weatherImage.pcr2) });
});

test('each image of an application has its own PCR2, in a file of its own', () => {
  const { url, read } = createStartedFolder();
  const weather = read('dev.pcrs');
  expect(DevelopmentTrust.load(url, 'weather', { image: 2 }).save()).toMatch(/out\/dev\.2\.pcrs\.$/);
  expect(DevelopmentTrust.load(url, 'salt', { image: 2 }).save()).toMatch(/out\/dev-salt\.2\.pcrs\.$/);
  expect(read('dev.pcrs')).toBe(weather);
  const images = [weather, read('dev.2.pcrs'), read('dev-salt.2.pcrs')].map(parsePcrs);
  expect(new Set(images.map(({ pcr0, pcr1 }) => pcr0 + pcr1)).size).toBe(1);
  expect(new Set(images.map(({ pcr2 }) => pcr2)).size).toBe(3);
});

test('a root that cannot be used is replaced, not trusted', () => {
  const otherRoot = createRoot(new Date());
  const key = otherRoot.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const impostor = createRoot(new Date(), { name: 'another root' });
  for (const spoil of [
    ({ file }) => writeFileSync(file('dev-root.key'), key),
    ({ file }) => writeFileSync(file('dev-root.pem'), toPem(otherRoot.certificate)),
    ({ file }) => writeFileSync(file('dev-root.pem'), 'damaged'),
    ({ file }) => writeFileSync(file('dev-root.key'), 'damaged'),
    ({ file }) => rmSync(file('dev-root.key')),
    ({ file }) => chmodSync(file('dev-root.key'), 0o644),
    ({ file }) => {
      writeFileSync(file('dev-root.pem'), toPem(impostor.certificate));
      writeFileSync(file('dev-root.key'), impostor.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    },
  ] satisfies ((folder: ReturnType<typeof createStartedFolder>) => void)[]) {
    const folder = createStartedFolder();
    expect(folder.isRootKept()).toBe(true);
    spoil(folder);
    expect(DevelopmentTrust.load(folder.url, 'weather').save()).toMatch(/under a new root/);
    expect(folder.isRootKept()).toBe(true);
    expect(statSync(folder.file('dev-root.key')).mode & 0o777).toBe(0o600);
  }
});

test('programs that start at the same moment have the same root', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-trust-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const module = new URL('../../../src/testing/development_trust.ts', import.meta.url);
  const code = `
    const { DevelopmentTrust } = await import(${JSON.stringify(module.href)});
    process.stdin.once('data', () => {
      const { nsm, isNew } = DevelopmentTrust.load(new URL(${JSON.stringify(`${pathToFileURL(folder)}/`)}), 'weather');
      console.log(JSON.stringify({ pem: nsm.rootPem(), isNew }));
      process.exit();
    });
    console.log('ready');`;
  const programs = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  onTestFinished(() => {
    for (const program of programs) program.kill('SIGKILL');
  });
  await Promise.all(programs.map(({ stdout }) => once(stdout, 'data')));
  const answers = programs.map(({ stdout }) => once(stdout, 'data'));
  for (const { stdin } of programs) stdin.write('start\n');
  const roots = (await Promise.all(answers)).map(([data]) => JSON.parse(String(data)));
  expect(new Set(roots.map(({ pem }) => pem))).toEqual(
    new Set([readFileSync(join(folder, 'dev-root.pem'), 'utf8')]),
  );
  expect(roots.filter(({ isNew }) => isNew)).toHaveLength(1);
  expect(readdirSync(folder).sort()).toEqual(['dev-root.key', 'dev-root.pem']);
});

test('the lock of a program that was killed expires', () => {
  const { url, file, isRootKept } = createStartedFolder();
  rmSync(file('dev-root.key'));
  mkdirSync(file('dev-root.lock'));
  utimesSync(file('dev-root.lock'), 0, 0);
  expect(DevelopmentTrust.load(url, 'weather').isNew).toBe(true);
  expect(isRootKept()).toBe(true);
});

test('a root is replaced before it expires', () => {
  const { isRootKept } = createStartedFolder();
  expect(isRootKept(Date.now() + 29 * 365 * DAY_MS)).toBe(true);
  expect(isRootKept(Date.now() + 30 * 365 * DAY_MS)).toBe(false);
});
