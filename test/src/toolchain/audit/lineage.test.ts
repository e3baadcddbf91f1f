/**
 * An audit reads lineages from a node, and does not believe a node that contradicts itself.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GrpcTypes } from '@mysten/sui/grpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { LoopbackNode } from '../../../../src/devnet/node.ts';
import { createRoot } from '../../../../src/testing/attestation_ca.ts';
import { Compiler } from '../../../../src/toolchain/audit/compile.ts';
import { Lineages, readContracts } from '../../../../src/toolchain/audit/lineage.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';
import { ROOT } from './applications.ts';

const id = (digit: string) => `0x${digit.repeat(64)}`;
const [A1, A2, A3, H1, H2, H3, D1, D2] = ['a', 'b', 'c', 'd', 'e', 'f', '7', '8'].map(id) as [
  ...[string, string, string, string, string, string, string, string],
];

let node: LoopbackNode;
let honestChain: Chain;
beforeAll(async () => {
  node = await LoopbackNode.start(createRoot(new Date()).certificate);
  honestChain = new Chain({ 'rpc-url': node.url }, {});
  const modules = [...(await new Compiler(chooseFramework({}), { network: undefined }).enclave()).values()];
  const putPackage = (version: string, original: string, dependencies: string[]) =>
    node.ledger.packages.set(version, { original, modules, dependencies });
  putPackage(D1, D1, []);
  putPackage(D2, D1, []);
  putPackage(H1, H1, []);
  putPackage(H2, H1, [D1]);
  putPackage(H3, H1, [D2]);
  putPackage(A1, A1, [H2]);
  putPackage(A2, A1, [H3, D2]);
  putPackage(A3, A1, [H3, D2]);
});
afterAll(() => node.close());

type Answer = Partial<GrpcTypes.Package>;

/** Returns a chain whose node changes its answers about packages. */
function createLyingChain({
  list = (versions) => versions,
  describe: change = (answer) => answer,
}: {
  readonly list?: (versions: GrpcTypes.PackageVersion[]) => GrpcTypes.PackageVersion[];
  readonly describe?: (answer: GrpcTypes.Package) => Answer | undefined;
}): Chain {
  const { movePackageService: service, core } = honestChain.client;
  const movePackageService = {
    async listPackageVersions(request: { packageId: string; pageToken?: Uint8Array }) {
      const { response } = await service.listPackageVersions({ packageId: request.packageId });
      const all = list(response.versions);
      // The versions are on two pages.
      const half = Math.ceil(all.length / 2);
      if (request.pageToken !== undefined) return { response: { versions: all.slice(half) } };
      return { response: { versions: all.slice(0, half), nextPageToken: Uint8Array.of(2) } };
    },
    async getPackage(request: { packageId: string }) {
      const { response } = await service.getPackage(request);
      return { response: { package: response.package && change(response.package) } };
    },
  };
  return { client: { movePackageService, core } } as unknown as Chain;
}

const listVersions = async (chain: Chain, version = A2) =>
  (await new Lineages(chain).of(version)).map(({ id: versionId }) => versionId);

describe('a lineage', () => {
  test('has all versions of the package from all pages, whatever version is asked for', async () => {
    expect(await listVersions(honestChain)).toEqual([A1, A2, A3]);
    expect(await listVersions(createLyingChain({}))).toEqual([A1, A2, A3]);
  });

  const lies: Record<string, Parameters<typeof createLyingChain>[0]> = {
    'has a gap': { list: (all) => all.filter(({ version }) => version !== 2n) },
    'lacks the first version': { list: (all) => all.slice(1) },
    'ends before the version that was asked for': { list: (all) => all.slice(0, 1) },
    'is empty': { list: () => [] },
    'has a version of another package': {
      list: (all) =>
        all.map((listedVersion) =>
          listedVersion.version === 2n ? { ...listedVersion, packageId: H2 } : listedVersion,
        ),
    },
    'has another original id': { describe: (description) => ({ ...description, originalId: H1 }) },
    'has another number': { describe: (description) => ({ ...description, version: 7n }) },
    'is not described': { describe: () => undefined },
    'has no table of types': { describe: (description) => ({ ...description, typeOrigins: [] }) },
    'has a type of another version': {
      describe: (description) => ({
        ...description,
        typeOrigins: description.typeOrigins.map((type) => ({ ...type, packageId: A3 })),
      }),
    },
  };
  test.each(Object.entries(lies))('that %s is not believed', async (_, lie) => {
    await expect(listVersions(createLyingChain(lie))).rejects.toMatchObject({ code: 'NOT_FULLY_CHECKED' });
  });

  test('of more versions than an audit reads is not read', async () => {
    const list = (all: GrpcTypes.PackageVersion[]) =>
      Array.from({ length: 1001 }, (_, index) => ({ ...all[0], version: BigInt(index + 1) }));
    await expect(listVersions(createLyingChain({ list }))).rejects.toMatchObject({
      code: 'NOT_FULLY_CHECKED',
    });
  });

  test('fails with the error of the node if the node does not answer', async () => {
    node.faults.set('GetPackage', 'reset');
    await expect(listVersions(honestChain)).rejects.toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
    node.faults.set('GetPackage', { status: 'UNIMPLEMENTED', message: '' });
    await expect(listVersions(honestChain)).rejects.toMatchObject({ code: 'NOT_FULLY_CHECKED' });
    node.faults.clear();
  });
});

describe('the dependencies', () => {
  const contracts = (chain: Chain, application = A1) =>
    readContracts({ enclavePackage: D1, application: `${application}::weather::WEATHER` }, chain);

  test('begin with the lowest version that any version of the application can run with', async () => {
    const all = await new Lineages(honestChain).dependencies(await new Lineages(honestChain).of(A1));
    const from = new Map(all.map(({ lineage: [{ original }], from: first }) => [original, first]));
    // Version 1 of the application runs with version 2 of the helper, which runs with version 1 of its own
    // dependency.
    expect(from).toEqual(
      new Map([
        [H1, 2],
        [D1, 1],
      ]),
    );
    const { dependencies } = await contracts(honestChain);
    expect(dependencies.map(({ lineage: [{ original }] }) => original)).toEqual([H1]);
  });

  test('are not known if the linkage table names a wrong version', async () => {
    const describe = (description: GrpcTypes.Package) => ({
      ...description,
      linkage: description.linkage.map((entry) => ({ ...entry, upgradedId: H1 })),
    });
    const { fault, application } = await contracts(createLyingChain({ describe }));
    expect(fault).toMatchObject({ code: 'NOT_FULLY_CHECKED' });
    expect(application).toHaveLength(3);
  });

  test('must be in the linkage table if bytecode calls them', async () => {
    const weather = readFileSync(join(ROOT, 'move/weather/sources/weather.move'), 'utf8');
    const files = {
      'Move.toml': readFileSync(join(ROOT, 'move/weather/Move.toml'), 'utf8'),
      'sources/weather.move': weather,
    };
    const linked = { folders: new Map(), published: new Map([['enclave', D1]]) };
    const compiler = new Compiler(chooseFramework({}), { network: undefined });
    const compiled = await compiler.compile('weather', files, linked);
    const weatherId = id('9');
    const modules = compiled.map(({ bytes }) => bytes);
    node.ledger.packages.set(weatherId, { original: weatherId, modules, dependencies: [D1] });
    expect((await contracts(honestChain, weatherId)).fault).toBeNull();
    const describe = (description: GrpcTypes.Package) => ({ ...description, linkage: [] });
    await expect(contracts(createLyingChain({ describe }), weatherId)).rejects.toThrow(
      `refers to the package ${D1}`,
    );
  });
});
