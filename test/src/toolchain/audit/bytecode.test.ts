/**
 * Packages on chain are compared with sources: after upgrades, with the framework's module in a package of
 * its own, and with a compiler that knows only a stub.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromHex, normalizeSuiAddress } from '@mysten/sui/utils';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { isModelChain, modelChainId } from '../../../../src/cli/sui/network.ts';
import { withoutSelfAddress } from '../../../../src/devnet/bytecode/self_address.ts';
import { LoopbackNode } from '../../../../src/devnet/node.ts';
import { createRoot } from '../../../../src/testing/attestation_ca.ts';
import { comparePackages, describeSource } from '../../../../src/toolchain/audit/bytecode.ts';
import { MoveCommit } from '../../../../src/toolchain/audit/commit.ts';
import {
  type CompiledModule,
  Compiler,
  type Linked,
  type Modules,
} from '../../../../src/toolchain/audit/compile.ts';
import { readContracts } from '../../../../src/toolchain/audit/lineage.ts';
import { sourcesIn } from '../../../../src/toolchain/audit/move_sources.ts';
import { ownRelease, type Release } from '../../../../src/toolchain/audit/releases.ts';
import { chooseFramework, type Sources } from '../../../../src/toolchain/move/packages.ts';
import { ROOT } from './applications.ts';

const [P1, P2, P3] = ['a', 'b', 'c'].map((digit) => `0x${digit.repeat(64)}`) as [string, string, string];
const WEATHER = new Map([['weather', join(ROOT, 'move/weather')]]);

// Some tests compile several packages, each in a process of its own.
vi.setConfig({ testTimeout: 60_000 });

/** Compiles the same sources only once, since a process for each takes a second of CPU. */
class RememberingCompiler extends Compiler {
  readonly #compiled = new Map<string, Promise<CompiledModule[]>>();

  override compile(name: string, files: Sources, { folders, published }: Linked): Promise<CompiledModule[]> {
    const key = JSON.stringify([name, files, [...folders], [...published]]);
    const compiled = this.#compiled.get(key) ?? super.compile(name, files, { folders, published });
    this.#compiled.set(key, compiled);
    return compiled;
  }
}

let node: LoopbackNode;
beforeEach(async () => {
  node = await LoopbackNode.start(createRoot(new Date()).certificate);
  node.chainId = modelChainId(Uint8Array.of(1, 2, 3, 4));
});
afterEach(() => node.close());

/** Writes a module as publishing does: with the package's id in place of 0x0. */
function publishModule(module: Uint8Array, id: string): Uint8Array {
  const { module: zeroed } = withoutSelfAddress(module);
  const bytes = Buffer.from(zeroed);
  const address = fromHex(normalizeSuiAddress('0x0'));
  const at = bytes.indexOf(address);
  bytes.set(fromHex(id), at);
  expect(withoutSelfAddress(bytes).address).toBe(id);
  return bytes;
}

function putPackage(
  id: string,
  original: string,
  modules: Iterable<Uint8Array>,
  dependencies: string[] = [],
): void {
  const all = [...modules].map((module) => publishModule(module, original));
  node.ledger.packages.set(id, { original, modules: all, dependencies });
}

const compiler = new RememberingCompiler(chooseFramework({}), { network: undefined });

let frameworkModules: Modules;
let feedModules: Modules;
let commit: MoveCommit;
beforeAll(async () => {
  frameworkModules = await compiler.enclave();
  feedModules = await compiler.feed();
  commit = new MoveCommit('the commit', WEATHER, compiler);
});

const enclaveModules = () => [...frameworkModules.values()];

async function weatherModules(linked?: string): Promise<Uint8Array[]> {
  const published = new Map(linked === undefined ? [] : [['enclave', linked]]);
  const sources = sourcesIn(join(ROOT, 'move/weather'));
  const compiled = await compiler.compile('weather', sources, { folders: new Map(), published });
  return compiled.map(({ bytes }) => bytes);
}

async function compare(
  enclavePackage: string,
  original: string,
  folders = WEATHER,
  older: readonly Release[] = [],
) {
  const chain = new Chain({ 'rpc-url': node.url }, {});
  const config = { enclavePackage, application: `${original}::weather::WEATHER`, packageVersion: 1n };
  const packages = await comparePackages({
    config,
    enclaveModules: frameworkModules,
    releases: [ownRelease('0.1.0', frameworkModules, feedModules), ...older],
    contracts: await readContracts(config, chain),
    isDecisive: isModelChain(await chain.identifier()),
    commits: (async function* () {
      yield folders === WEATHER ? commit : new MoveCommit('the commit', folders, compiler);
    })(),
  });
  return { faults: packages.map(({ fault }) => fault?.code ?? null), packages };
}

describe('a package on chain', () => {
  test('that has the modules of framework and application agrees, whatever its id', async () => {
    putPackage(P1, P1, [...enclaveModules(), ...(await weatherModules())]);
    const { faults, packages } = await compare(P1, P1);
    expect(faults).toEqual([null, null]);
    expect(packages.map(({ modules }) => modules)).toEqual([
      expect.arrayContaining(['enclave']),
      ['weather'],
    ]);
    expect(packages.map(({ source, folders }) => [source, folders])).toEqual([
      ['the release 0.1.0', []],
      ['the commit', ['weather']],
    ]);
  });

  test('that links to the framework’s package agrees with sources that were compiled in the same way', async () => {
    putPackage(P1, P1, enclaveModules());
    putPackage(P2, P2, await weatherModules(P1), [P1]);
    expect((await compare(P1, P2)).faults).toEqual([null, null]);
    // A package that links to another framework package does not agree.
    putPackage(P3, P3, await weatherModules(P2), [P2]);
    expect((await compare(P1, P3)).faults.slice(0, 2)).toEqual([null, 'BYTECODE_DIFFERS']);
  });

  test('that also links to a release published by somebody else agrees, but not if that package has more modules', async () => {
    putPackage(P1, P1, enclaveModules());
    putPackage(P3, P3, enclaveModules());
    putPackage(P2, P2, await weatherModules(P1), [P1, P3]);
    const { faults, packages } = await compare(P1, P2);
    expect(faults).toEqual([null, null, null]);
    expect(packages[2]).toMatchObject({ name: 'dependency', source: 'the release 0.1.0' });
    putPackage(P3, P3, [...enclaveModules(), ...(await weatherModules())]);
    expect((await compare(P1, P2)).faults).toEqual([null, null, 'BYTECODE_DIFFERS']);
  });

  test('that has an additional or a changed module differs', async () => {
    const enclave = enclaveModules();
    putPackage(P1, P1, enclave);
    putPackage(P2, P2, [...(await weatherModules(P1)), ...enclave], [P1]);
    expect((await compare(P1, P2)).faults).toEqual([null, 'BYTECODE_DIFFERS']);
    putPackage(P3, P3, await weatherModules());
    expect((await compare(P3, P3)).faults).toEqual(['BYTECODE_DIFFERS', null]);
  });

  // It compiles five packages.
  test('that contains a release of move/feed agrees, and differs if its feed was changed', {
    timeout: 240_000,
  }, async () => {
    const text = readFileSync(join(ROOT, 'move/weather/sources/weather.move'), 'utf8');
    const folder = mkdtempSync(join(tmpdir(), 'audit-move-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, 'sources'));
    const formatDependency = (name: string) =>
      `${name} = { local = "../../node_modules/sui-enclave-toolchain/move/${name}" }\n`;
    const manifest = `[package]\nname = "app"\nedition = "2024"\n[dependencies]\n${formatDependency('enclave')}${formatDependency('feed')}`;
    writeFileSync(join(folder, 'Move.toml'), manifest);
    const call =
      '\npublic fun read(feed: &feed::feed::Feed<WEATHER>, clock: &Clock): (u64, u64) { feed.read(clock) }\n';
    writeFileSync(join(folder, 'sources/weather.move'), text + call);
    const folders = new Map([['weather', folder]]);
    const compileLinked = async (published: ReadonlyMap<string, string>) => {
      const sources = sourcesIn(folder);
      const modules = await compiler.compile('weather', sources, { folders: new Map(), published });
      return modules.map(({ bytes }) => bytes);
    };
    const application = await compileLinked(new Map());
    putPackage(P1, P1, [...enclaveModules(), ...feedModules.values(), ...application]);
    const inOnePackage = await compare(P1, P1, folders);
    expect(inOnePackage.faults).toEqual([null, null]);
    expect(inOnePackage.packages[1]?.modules).toEqual(['weather']);
    expect(inOnePackage.packages.map(describeSource)).toEqual([
      'the release 0.1.0 of move/enclave and move/feed',
      'move/weather of the commit',
    ]);

    const feedSources = sourcesIn(join(ROOT, 'move/feed'));
    const path = 'sources/feed.move';
    const lax = String(feedSources[path]).replace('MAX_AHEAD_MS: u64 = 10_000', 'MAX_AHEAD_MS: u64 = 60_000');
    const none = { folders: new Map(), published: new Map() };
    const laxFeed = await compiler.compile('feed', { ...feedSources, [path]: lax }, none);
    putPackage(P2, P2, [...enclaveModules(), ...laxFeed.map(({ bytes }) => bytes), ...application]);
    const refused = await compare(P2, P2, folders);
    expect(refused.faults).toEqual([null, 'BYTECODE_DIFFERS']);
    expect(refused.packages[1]?.fault?.message).toContain('has a module feed that differs');
    // The changed feed agrees if the list of releases contains it.
    const laxModules = new Map(laxFeed.map(({ name, bytes }) => [name, bytes]));
    const older = ownRelease('0.0.9', frameworkModules, laxModules);
    expect((await compare(P2, P2, folders, [older])).faults).toEqual([null, null]);

    // The feed links to another package's `enclave`, so its bytes differ from those in the list.
    putPackage(P1, P1, enclaveModules());
    const published = new Map([['enclave', P1]]);
    const linkedFeed = await compiler.compile('feed', feedSources, { folders: new Map(), published });
    const linked = [...linkedFeed.map(({ bytes }) => bytes), ...(await compileLinked(published))];
    putPackage(P3, P3, linked, [P1]);
    const apart = await compare(P1, P3, folders);
    expect(apart.faults).toEqual([null, null]);
    expect(apart.packages[1]).toMatchObject({ modules: ['feed', 'weather'], folders: ['weather', 'feed'] });
  });

  test('that was upgraded is compared in each version, and marks the older versions that can still run', async () => {
    const enclave = enclaveModules();
    putPackage(P1, P1, enclave);
    putPackage(P2, P1, [...enclave, ...(await weatherModules())]);
    // The type has the address of the version that introduced it.
    const { faults, packages } = await compare(P1, P2);
    expect(faults).toEqual([null, null, null]);
    expect(packages.map(({ name, id, isOlder }) => [name, id, isOlder])).toEqual([
      ['enclave', P1, true],
      ['enclave', P2, false],
      ['application', P2, false],
    ]);
  });

  test('of an older release agrees if that release is known, and can still be called if it has the config’s package version', async () => {
    const sources = sourcesIn(join(ROOT, 'move/enclave'));
    const path = 'sources/enclave.move';
    const text = String(sources[path]).replace('MAX_AHEAD_MS: u64 = 60_000', 'MAX_AHEAD_MS: u64 = 30_000');
    const none = { folders: new Map(), published: new Map() };
    const before = await compiler.compile('enclave', { ...sources, [path]: text }, none);
    const modules = new Map(before.map(({ name, bytes }) => [name, bytes]));
    putPackage(P1, P1, modules.values());
    putPackage(P2, P1, enclaveModules());
    putPackage(P3, P3, await weatherModules(P1), [P1]);
    expect((await compare(P1, P3)).faults).toEqual(['BYTECODE_DIFFERS', null, null]);
    const release = ownRelease('0.0.9', modules, feedModules);
    const listCallable = async (older: Release) => {
      const { faults, packages } = await compare(P1, P3, WEATHER, [older]);
      expect(faults).toEqual([null, null, null]);
      expect(packages[0]?.source).toBe('the release 0.0.9');
      return packages.filter(({ isOlder }) => isOlder).map(({ id }) => id);
    };
    expect(await listCallable(release)).toEqual([P1]);
    expect(await listCallable({ ...release, packageVersion: 0n })).toEqual([]);
  });

  test('that differs from sources compiled against a stub is not fully checked, unless the chain runs the stub', async () => {
    putPackage(P1, P1, await weatherModules());
    expect((await compare(P1, P1)).faults).toEqual(['BYTECODE_DIFFERS', null]);
    node.chainId = '4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S';
    expect((await compare(P1, P1)).faults).toEqual(['NOT_FULLY_CHECKED', null]);
  });

  test('of sources that depend on a file elsewhere, or lack the module, is not compared', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'audit-move-'));
    mkdirSync(join(folder, 'sources'));
    writeFileSync(
      join(folder, 'Move.toml'),
      '[package]\nname = "app"\nedition = "2024"\n[dependencies]\nenclave = { local = "../../../../etc" }\n',
    );
    const text = readFileSync(join(ROOT, 'move/weather/sources/weather.move'), 'utf8');
    writeFileSync(join(folder, 'sources/weather.move'), text);
    putPackage(P1, P1, enclaveModules());
    const { faults, packages } = await compare(P1, P1, new Map([['weather', folder]]));
    expect(faults).toEqual([null, 'NOT_FULLY_CHECKED']);
    expect(packages[1]?.fault?.message).not.toContain('\n');
    expect((await compare(P1, P1, new Map())).faults).toEqual([null, 'BYTECODE_UNKNOWN']);
    rmSync(folder, { recursive: true });
  });
});
