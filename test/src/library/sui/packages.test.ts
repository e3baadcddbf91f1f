/** Tests reading the tables of packages, which determine the ids in types. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sui from '../../../../src/library/sui/index.ts';
import { readPackage, readTypeOrigin } from '../../../../src/library/sui/packages.ts';
import { ChainFixture } from '../../cli/sui/chain_fixture.ts';
import { compileModule, type Lineage, publishLineage, upgradeLineage } from '../../devnet/package_lineage.ts';

const FIRST_SOURCE = 'module own::app;\npublic struct APP has drop {}\n';
const SECOND_SOURCE = `${FIRST_SOURCE}public struct Later has drop {}\n`;
const THIRD_SOURCE = `${SECOND_SOURCE}public enum Third has drop { A, B }\n`;
const FRAMEWORK = `0x${'2'.padStart(64, '0')}`;

let fixture: ChainFixture;
let client: SuiGrpcClient;
let versions: readonly [Lineage, Lineage, Lineage];
beforeAll(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const firstLineage = await publishLineage(fixture, await compileModule(FIRST_SOURCE));
  const secondLineage = await upgradeLineage(fixture, firstLineage, await compileModule(SECOND_SOURCE));
  versions = [
    firstLineage,
    secondLineage,
    await upgradeLineage(fixture, secondLineage, await compileModule(THIRD_SOURCE)),
  ];
});
afterAll(() => fixture.close());

const id = (version: number) => versions[version - 1]?.packageId ?? '';

test('each type has the id of the version that introduced it', async () => {
  for (const [name, origin, from] of [
    ['APP', 1, [1, 2, 3]],
    ['Later', 2, [2, 3]],
    ['Third', 3, [3]],
  ] as const) {
    for (const version of from) {
      expect(await sui.readApplicationType(client, id(version), 'app', name)).toBe(
        `${id(origin)}::app::${name}`,
      );
    }
  }
  const extended = client.$extend(sui.suiEnclave());
  expect(await extended.suiEnclave.readApplicationType(id(3), 'app', 'Later')).toBe(`${id(2)}::app::Later`);
  const { typeOrigins, linkage, modules } = await readPackage(client, id(3));
  expect([...typeOrigins]).toEqual([
    ['app::APP', id(1)],
    ['app::Later', id(2)],
    ['app::Third', id(3)],
  ]);
  expect([linkage.get(FRAMEWORK), modules.length]).toEqual([FRAMEWORK, 1]);
});

test('a version has only the types that it and earlier versions added', async () => {
  await expect(readTypeOrigin(client, id(1), 'app::Later')).rejects.toMatchObject({
    code: 'SUI_OBJECT_TYPE',
    objectId: id(1),
    message: expect.stringContaining('a package with the type app::Later'),
  });
});

test('an object that is not a package, and a text that is not a name, are refused', async () => {
  const [coin] = fixture.node.ledger.coins(fixture.address);
  await expect(readPackage(client, coin?.object.id ?? '')).rejects.toMatchObject({ code: 'SUI_OBJECT_TYPE' });
  await expect(readPackage(client, `0x${'d'.repeat(64)}`)).rejects.toMatchObject({
    code: 'SUI_OBJECT_NOT_FOUND',
  });
  for (const [appPackage, module, witness] of [
    ['0x2', 'app', 'APP'],
    [id(1), 'a-b', 'APP'],
    [id(1), 'app', ''],
  ] as const) {
    await expect(sui.readApplicationType(client, appPackage, module, witness)).rejects.toMatchObject({
      code: 'SUI_VALUE',
    });
  }
});

test('a node that answers with another object is not believed', async () => {
  const { object } = await client.core.getObject({ objectId: id(1), include: { objectBcs: true } });
  const { objectBcs } = object;
  if (objectBcs === undefined) throw new Error('the node gave no object');
  for (const content of [
    undefined,
    new Uint8Array(),
    Uint8Array.of(9),
    objectBcs.subarray(0, 40),
    objectBcs,
  ]) {
    const answer = { object: { ...object, objectBcs: content } };
    const lyingClient = { core: { getObject: async () => answer } } as unknown as SuiGrpcClient;
    // The last answer is a whole package, but not the requested one.
    await expect(readPackage(lyingClient, id(2))).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  }
});

test('an aborted signal ends the reading of a package', async () => {
  const reason = new Error('enough');
  const signal = AbortSignal.abort(reason);
  await expect(sui.readApplicationType(client, id(1), 'app', 'APP', { signal })).rejects.toBe(reason);
});
