/** Packages on chain against sources: upgrades, a package of its own for the framework's module, and a compiler that knows a stub alone. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromHex, normalizeSuiAddress } from '@mysten/sui/utils';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { comparePackages } from '../../../../src/commands/audit/bytecode.ts';
import { Compiler, type Modules } from '../../../../src/commands/audit/compile.ts';
import { Chain } from '../../../../src/commands/sui/chain.ts';
import { frameworkOf } from '../../../../src/commands/sui/move_packages.ts';
import { modelChainId } from '../../../../src/commands/sui/network.ts';
import { withoutSelfAddress } from '../../../../src/move_bytecode/self_address.ts';
import { createRoot } from '../../../../src/testing/attestation_ca.ts';
import { LoopbackNode } from '../../../../src/testing/sui/node.ts';
import { ROOT } from './applications.ts';

const [P1, P2, P3] = ['a', 'b', 'c'].map((digit) => `0x${digit.repeat(64)}`) as [string, string, string];
const WEATHER = new Map([['weather', join(ROOT, 'move/weather')]]);

// Each comparison compiles two packages, in processes of their own.
vi.setConfig({ testTimeout: 60_000 });

let node: LoopbackNode;
beforeEach(async () => {
  node = await LoopbackNode.start(createRoot(new Date()).certificate);
  node.chainId = modelChainId(Uint8Array.of(1, 2, 3, 4));
});
afterEach(() => node.close());

/** As publishing writes a module: with the package's id for 0x0. */
function published(module: Uint8Array, id: string): Uint8Array {
  const { module: zeroed } = withoutSelfAddress(module);
  const bytes = Buffer.from(zeroed);
  const address = fromHex(normalizeSuiAddress('0x0'));
  const at = bytes.indexOf(address);
  bytes.set(fromHex(id), at);
  expect(withoutSelfAddress(bytes).address).toBe(id);
  return bytes;
}

const put = (id: string, original: string, modules: Iterable<Uint8Array>) =>
  node.ledger.packages.set(id, {
    original,
    modules: [...modules].map((module) => published(module, original)),
    dependencies: [],
  });

const compiled = new Map<string, Promise<Modules>>();

/** Compiles each package once: it takes a process each time. */
function compilerOf(linked?: string) {
  const compiler = new Compiler(frameworkOf({}), { network: undefined }, WEATHER, linked);
  const once = (name: string, compile: () => Promise<Modules>) => {
    const modules = compiled.get(`${linked} ${name}`) ?? compile();
    compiled.set(`${linked} ${name}`, modules);
    return modules;
  };
  return {
    enclave: () => once('enclave', () => compiler.enclave()),
    application: (module: string) => once(module, () => compiler.application(module)),
  };
}

async function compare(enclavePackage: string, original: string, packages = WEATHER) {
  const config = { enclavePackage, application: `${original}::weather::WEATHER` };
  const { packages: found, older } = await comparePackages(
    config,
    packages,
    new Chain({ 'rpc-url': node.url }, {}),
    {},
  );
  return { faults: found.map(({ fault }) => fault?.code ?? null), older, found };
}

describe('a package on chain', () => {
  test('with the modules of both agrees, whatever its id is', async () => {
    const modules = [await compilerOf().enclave(), await compilerOf().application('weather')];
    put(
      P1,
      P1,
      modules.flatMap((some) => [...some.values()]),
    );
    const { faults, older, found } = await compare(P1, P1);
    expect([faults, older]).toEqual([[null, null], []]);
    expect(found.map(({ modules: names }) => names)).toEqual([
      expect.arrayContaining(['enclave']),
      ['weather'],
    ]);
  });

  test('that links to the framework’s package agrees with sources that were compiled so', async () => {
    put(P1, P1, (await compilerOf().enclave()).values());
    put(P2, P2, (await compilerOf(P1).application('weather')).values());
    expect((await compare(P1, P2)).faults).toEqual([null, null]);
    // One that links to another one does not.
    put(P3, P3, (await compilerOf(P2).application('weather')).values());
    expect((await compare(P1, P3)).faults).toEqual([null, 'BYTECODE_DIFFERS']);
  });

  test('with one more module differs, and so does one with another module', async () => {
    const [enclave, weather] = [await compilerOf().enclave(), await compilerOf().application('weather')];
    put(P1, P1, enclave.values());
    put(P2, P2, [...(await compilerOf(P1).application('weather')).values(), ...enclave.values()]);
    expect((await compare(P1, P2)).faults).toEqual([null, 'BYTECODE_DIFFERS']);
    put(P3, P3, weather.values());
    expect((await compare(P3, P3)).faults).toEqual(['BYTECODE_DIFFERS', null]);
  });

  test('that was upgraded is compared in its latest version, and the older ones are named', async () => {
    const modules = [await compilerOf().enclave(), await compilerOf().application('weather')];
    put(P1, P1, [...(modules[0]?.values() ?? [])]);
    put(
      P2,
      P1,
      modules.flatMap((some) => [...some.values()]),
    );
    const { faults, older, found } = await compare(P1, P1);
    expect([faults, older]).toEqual([[null, null], [P1]]);
    expect(found.map(({ id }) => id)).toEqual([P2, P2]);
  });

  test('that differs from what a stub gives is not known to differ, unless the chain runs the stub', async () => {
    put(P1, P1, (await compilerOf().application('weather')).values());
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
    put(P1, P1, (await compilerOf().enclave()).values());
    const { faults, found } = await compare(P1, P1, new Map([['weather', folder]]));
    expect(faults).toEqual([null, 'NOT_FULLY_CHECKED']);
    expect(found[1]?.fault?.message).not.toContain('\n');
    expect((await compare(P1, P1, new Map())).faults).toEqual([null, 'BYTECODE_UNKNOWN']);
    rmSync(folder, { recursive: true });
  });
});
