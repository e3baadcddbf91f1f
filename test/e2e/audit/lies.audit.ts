/**
 * Audits honest configs, and configs and enclaves that lie. The audit agrees with the honest configs, and
 * reports each lie with a code of its own.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { retireConfig, updatePcrs } from '../../../src/library/sui/transactions.ts';
import { AuditError } from '../../../src/toolchain/audit/errors.ts';
import type { Rebuild } from '../../../src/toolchain/audit/rebuild.ts';
import { createdFiles, weatherFiles } from '../../src/toolchain/audit/applications.ts';
import type { TestRepository } from '../../src/toolchain/audit/git_server.ts';
import { type Application, quickImage, type Verdict, World } from './world.ts';

const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };
const PRICE: Application = { files: createdFiles(), folder: '', module: 'price' };

let world: World;
/** Repository whose branch has weather at the commit `honest`. */
let repository: TestRepository;
let honest: string;
let source: string[];
beforeAll(async () => {
  world = await World.start();
  repository = world.repository();
  honest = repository.writeCommit(WEATHER.files);
  source = ['--source', world.git.formatUrl(repository)];
});
afterAll(() => world.close());

const deploy = (lies = {}, commit = honest) => world.deploy(WEATHER, repository, commit, lies);
const listFaultCodes = ({ checks }: Verdict) =>
  checks.filter(({ result: outcome }) => outcome !== 'same').map(({ code }) => code);

/** Expects that an audit reports a lie as a difference, with this code. */
function expectLie(verdict: Verdict, code: string): void {
  expect(verdict, verdict.out).toMatchObject({ exit: 1, verdict: 'differs', code });
  expect(verdict.line).toMatch(new RegExp(`^DIFFERS \\(${code}\\): `));
}

describe('an honest config', () => {
  test('of weather agrees, from the commit to the key of the enclave', async () => {
    const deployed = await deploy();
    const url = await world.serve(deployed);
    const verdict = await world.audit(deployed.configId, [...source, '--url', url]);
    expect(verdict, verdict.out).toMatchObject({ exit: 0, verdict: 'agrees', code: null });
    expect(verdict.line).toBe(
      `AGREES: the commit ${honest} gives the image of the config "weather", and 1 enclave with a registered key runs it`,
    );
    expect(
      verdict.checks.map(
        ({ what: subject, result: outcome }) =>
          `${outcome}: ${subject.replace(/0x\w+|http\S+|\b\w{40}\b/g, '…')}`,
      ),
    ).toEqual([
      'same: the config "weather" at version 0',
      'same: the commit …',
      'same: the commit …',
      'same: the framework in the sources',
      'same: the registers of the sources',
      'same: the record of the build (measurements.json)',
      'same: the package …',
      'same: the package …',
      'same: the enclave at …',
      'same: other configs of the application',
    ]);
    expect(verdict.proves[0]).toContain('gave the image that contracts accept');
    expect(verdict.err).toMatch(/^Reading|^Fetching/);
  });

  test('of an application in its own repository agrees', async () => {
    const priceRepository = world.repository();
    const commit = priceRepository.writeCommit(PRICE.files);
    const deployed = await world.deploy(PRICE, priceRepository, commit);
    const url = await world.serve(deployed);
    const verdict = await world.audit(deployed.configId, ['--source', priceRepository.folder, '--url', url]);
    expect(verdict, verdict.out).toMatchObject({ exit: 0, verdict: 'agrees' });
    expect(verdict.settings[0]).toBe(
      'Secrets (PRICE_API_KEY): the host of the enclave sees them, and chooses them.',
    );
  });

  test('is reported with the holders of its capabilities', async () => {
    const deployed = await deploy();
    const { holders } = await world.audit(deployed.configId, [...source, '--quick']);
    expect(holders.map(({ what: capability, holder }) => [capability, holder])).toEqual([
      ['EnclaveCap', world.address],
      ['UpgradeCap', world.address],
    ]);
    expect(holders[0]?.id).toBe(deployed.capId);
  });

  test('is not fully checked without a build, without an enclave, or with a silent one', async () => {
    const deployed = await deploy();
    const url = await world.serve(deployed);
    const codes = { exit: 3, verdict: 'not fully checked', code: 'NOT_FULLY_CHECKED' };
    const quick = await world.audit(deployed.configId, [...source, '--url', url, '--quick']);
    expect(quick, quick.out).toMatchObject(codes);
    expect(quick.line).toMatch(/not checked: the registers of the sources \(--quick: /);
    const withoutEnclave = await world.audit(deployed.configId, source);
    expect(withoutEnclave).toMatchObject(codes);
    expect(withoutEnclave.line).toMatch(/not checked: enclaves \(no --url was given\)$/);
    await world.serve(deployed);
    const silent = await world.audit(deployed.configId, [...source, '--url', url]);
    expect(silent).toMatchObject(codes);
    expect(silent.line).toMatch(/not checked: other registered enclaves \(no URL reached 0x[0-9a-f]{64}\)$/);
  });
});

test('an audit does not agree with a config that changes while the image is built', async () => {
  const deployed = await deploy();
  const url = await world.serve(deployed);
  const build: Rebuild = async ({ app }) => {
    const tx = new Transaction();
    retireConfig(tx, deployed);
    await world.submit(tx);
    return { eif: quickImage(app), relay: Buffer.from('relay') };
  };
  const verdict = await world.audit(deployed.configId, [...source, '--url', url], { build });
  expect(verdict, verdict.out).toMatchObject({ exit: 3, verdict: 'not fully checked' });
  expect(verdict.line).toMatch(/not checked: the config after the build \(it changed during the audit: /);
});

describe('an audit reports', () => {
  test('a wrong commit', async () => {
    const otherCommit = repository.writeCommit({ ...WEATHER.files, 'NOTE.md': 'more' }, { parent: honest });
    const deployed = await deploy({ source: { commit: otherCommit } });
    const verdict = await world.audit(deployed.configId, source);
    expectLie(verdict, 'MEASUREMENTS_DIFFER');
    expect(verdict.checks).toContainEqual(
      expect.objectContaining({ what: 'the registers of the sources', result: 'same' }),
    );
  });

  test('a missing commit', async () => {
    const deployed = await deploy({ source: { commit: '1'.repeat(40) } });
    expectLie(await world.audit(deployed.configId, source), 'COMMIT_MISSING');
  });

  test('a branch that moved away from the commit', async () => {
    const ownRepository = world.repository();
    const commit = ownRepository.writeCommit(WEATHER.files);
    const deployed = await world.deploy(WEATHER, ownRepository, commit);
    const url = ['--source', world.git.formatUrl(ownRepository)];
    expect(await world.audit(deployed.configId, url)).toMatchObject({ exit: 3 });
    ownRepository.writeCommit({ 'README.md': 'nothing was here' });
    expectLie(await world.audit(deployed.configId, url), 'COMMIT_NOT_ON_BRANCH');
  });

  test('wrong registers', async () => {
    const [pcr0, pcr1, pcr2] = ['a', 'b', 'c'].map((digit) => digit.repeat(96)) as [string, string, string];
    const deployed = await deploy({ image: { pcr0, pcr1, pcr2 } });
    // The enclave runs the image that the config names.
    const verdict = await world.audit(deployed.configId, [...source, '--url', await world.serve(deployed)]);
    expectLie(verdict, 'REGISTERS_DIFFER');
    expect(listFaultCodes(verdict)).toEqual(['REGISTERS_DIFFER']);
  });

  test('a server that signs with a key other than the attested one', async () => {
    const deployed = await deploy();
    const url = await world.serve(deployed);
    const proxy = createServer(async (request, response) => {
      if (request.url === '/health_check') return void response.end(JSON.stringify({ pk: '5'.repeat(64) }));
      response.setHeader('content-type', 'application/json');
      response.end(await (await fetch(url + request.url)).text());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void proxy.close());
    const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    expectLie(await world.audit(deployed.configId, [...source, '--url', proxyUrl]), 'KEY_DIFFERS');
  });

  test('an unregistered key', async () => {
    const deployed = await deploy();
    const url = await world.startEnclave(deployed.image);
    expectLie(await world.audit(deployed.configId, [...source, '--url', url]), 'KEY_NOT_REGISTERED');
  });

  test('a retired config', async () => {
    const deployed = await deploy();
    const url = await world.serve(deployed);
    const tx = new Transaction();
    retireConfig(tx, deployed);
    await world.submit(tx);
    expectLie(await world.audit(deployed.configId, [...source, '--url', url]), 'CONFIG_RETIRED');
  });

  test('a stale enclave', async () => {
    const { configId, image, ...deployedIds } = await deploy();
    const deployed = { ...deployedIds, configId };
    const url = await world.serve({ ...deployed, image });
    const { checks } = await world.audit(configId, source);
    expect(checks[0]?.result).toBe('same');
    const namedSource = await readConfigSource(configId);
    for (const next of [{ ...image, pcr0: 'f'.repeat(96) }, image]) {
      const tx = new Transaction();
      updatePcrs(tx, { ...deployed, image: next, source: namedSource });
      await world.submit(tx);
    }
    const verdict = await world.audit(configId, [...source, '--url', url]);
    expectLie(verdict, 'ENCLAVE_STALE');
    expect(listFaultCodes(verdict)).toEqual(['ENCLAVE_STALE']);
  });

  async function readConfigSource(configId: string) {
    const { Chain } = await import('../../../src/cli/sui/chain.ts');
    const { readConfig } = await import('../../../src/library/sui/objects.ts');
    const { source: namedSource } = await readConfig(
      new Chain({ 'rpc-url': world.node.url }, {}).client,
      configId,
    );
    if (namedSource === null) throw new Error('the config has no source');
    return namedSource;
  }

  /** Deploys the created application from a commit with a changed lockfile, and audits it. */
  async function auditWithLock(change: Parameters<typeof createdFiles>[1]): Promise<Verdict> {
    const ownRepository = world.repository();
    const commit = ownRepository.writeCommit(createdFiles('price', change));
    const deployed = await world.deploy(PRICE, ownRepository, commit);
    return await world.audit(deployed.configId, ['--source', world.git.formatUrl(ownRepository)]);
  }

  test('a changed lockfile', async () => {
    const verdict = await auditWithLock((packages) => {
      packages['node_modules/valibot'] = {
        version: '1.5.0',
        resolved: 'git+https://evil.example/valibot.git#1',
      };
    });
    expectLie(verdict, 'LOCK_UNTRUSTED');
  });

  test('a changed framework tarball', async () => {
    const verdict = await auditWithLock((packages) => {
      const server = packages['node_modules/sui-enclave-server'];
      if (server) server['integrity'] = `sha512-${'Z'.repeat(86)}==`;
    });
    expectLie(verdict, 'FRAMEWORK_UNKNOWN');
  });

  test('a changed server.env, by its path if the auditor passes an image to compare', async () => {
    const files = { ...WEATHER.files, 'src/apps/weather/server.env': 'LOG_LEVEL=debug\n' };
    const commit = repository.writeCommit(files, { parent: honest });
    const deployed = await deploy({ source: { commit } });
    const file = join(world.root, 'theirs.eif');
    writeFileSync(file, quickImage(world.loadSource(WEATHER).app));
    const verdict = await world.audit(deployed.configId, [...source, '--image', file]);
    expectLie(verdict, 'APPLICATION_DIFFERS');
    expect(verdict.out).toContain('/app/server.env: only in the first');
  });

  test('an unreachable enclave as not checked', async () => {
    const deployed = await deploy();
    await world.serve(deployed);
    const verdict = await world.audit(deployed.configId, [...source, '--url', 'http://127.0.0.1:9']);
    expect(verdict, verdict.out).toMatchObject({ exit: 3, code: 'NOT_FULLY_CHECKED' });
    expect(verdict.line).toMatch(/not checked: the enclave at http:\/\/127\.0\.0\.1:9 \(.* does not answer/);
  });

  test('an emulated root unless the auditor names it, and refuses to trust it on a real network', async () => {
    const deployed = await deploy();
    const url = await world.serve(deployed);
    const options = [...source, '--url', url];
    expectLie(await world.audit(deployed.configId, options, { root: false }), 'ROOT_UNKNOWN');
    const before = world.node.calls.length;
    const real = await world.audit(deployed.configId, [...options, '--network', 'testnet']);
    expect(real).toMatchObject({ exit: 2, code: 'DEVELOPMENT_TRUST' });
    expect(world.node.calls.length).toBe(before);
  });

  test('debug registers', async () => {
    const deployed = await deploy();
    const zero = '0'.repeat(96);
    const url = await world.startEnclave({ pcr0: zero, pcr1: zero, pcr2: zero });
    expectLie(await world.audit(deployed.configId, [...source, '--url', url]), 'ENCLAVE_DEBUG');
  });

  test('wrong bytecode', async () => {
    const path = 'move/weather/sources/weather.move';
    const text = String(WEATHER.files[path]);
    const changed = text.replace(/(const \w+: u64 = )(\d+)/, '$1$2 + 1');
    expect(changed).not.toBe(text);
    const application = { ...WEATHER, files: { ...WEATHER.files, [path]: changed } };
    const commit = repository.writeCommit(application.files, { parent: honest });
    await deploy();
    const deployed = await world.deploy(application, repository, commit);
    const verdict = await world.audit(deployed.configId, source);
    expectLie(verdict, 'BYTECODE_DIFFERS');
    expect(verdict.line).toContain('has a module weather that differs from what the sources compile to');
  });

  test('a config without a source', async () => {
    const deployed = await deploy({ source: null });
    const verdict = await world.audit(deployed.configId, []);
    expectLie(verdict, 'SOURCE_MISSING');
    // The verdict says what to ask the admin for.
    expect(verdict.line).toContain(`Ask its admin, who has the EnclaveCap ${deployed.capId},`);
    expect(verdict.line).toContain('--source-url <repository>');
  });
});

describe('an audit', () => {
  test('with --source says whether the repository on chain has the commit', async () => {
    const deployed = await deploy({ source: { url: 'https://localhost/oracle.git' } });
    const { out } = await world.audit(deployed.configId, [...source, '--quick']);
    const { notes } = JSON.parse(out) as { notes: string[] };
    expect(notes).toEqual([
      expect.stringMatching(
        /^It is not known whether the repository .*https:\/\/localhost\/oracle\.git, has the commit: /,
      ),
    ]);
  });

  test('connects to an address of this machine only if the auditor names it', async () => {
    const deployed = await deploy();
    const before = world.git.requests.length;
    expectLie(await world.audit(deployed.configId, []), 'SOURCE_REFUSED');
    expect(world.git.requests.length).toBe(before);
  });

  test('names another version of the framework, with the command that runs it', async () => {
    const deployed = await deploy({ source: { frameworkVersion: '9.9.9' } });
    const verdict = await world.audit(deployed.configId, source);
    expectLie(verdict, 'FRAMEWORK_VERSION');
    expect(verdict.line).toContain('npm exec --package=<folder>/sui-enclave-cli-9.9.9.tgz ');
  });

  test('reports an enclave with another image as a difference', async () => {
    const deployed = await deploy();
    const url = await world.startEnclave({ ...deployed.image, pcr2: 'd'.repeat(96) });
    expectLie(await world.audit(deployed.configId, [...source, '--url', url]), 'ENCLAVE_REGISTERS');
  });

  test('does not report a missing config as a difference', async () => {
    const verdict = await world.audit(`0x${'7'.repeat(64)}`, source);
    expect(verdict).toMatchObject({ exit: 2, code: 'SUI_OBJECT_NOT_FOUND' });
  });

  test('does not report a fault of the program or a missing package as a difference', async () => {
    const deployed = await deploy();
    const failWith = (error: Error) => ({ build: () => Promise.reject(error) });
    const fault = await world.audit(deployed.configId, source, failWith(new TypeError('a fault')));
    expect(fault).toMatchObject({ exit: 2, code: 'INTERNAL', verdict: 'none' });
    const missingError = new AuditError('NOT_FULLY_CHECKED', 'a package is gone');
    expect(await world.audit(deployed.configId, source, failWith(missingError))).toMatchObject({ exit: 3 });
  });

  test('prints no text of an admin unescaped', async () => {
    const name = 'GREEN\u001b[2J\nAGREES: all';
    const deployed = await deploy({
      name,
      source: { url: 'ext::sh -c "touch /tmp/x"', frameworkVersion: '1;rm' },
    });
    const verdict = await world.audit(deployed.configId, []);
    expect(verdict.config.name).toBe('GREEN\\u{1b}[2J\\u{a}AGREES: all');
    expect(verdict.exit).toBe(1);
  });
});
