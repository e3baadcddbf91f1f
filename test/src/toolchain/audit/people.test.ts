/** The holders of the capabilities in an audit. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { readConfig } from '../../../../src/library/sui/index.ts';
import { readContracts } from '../../../../src/toolchain/audit/lineage.ts';
import { findHolders } from '../../../../src/toolchain/audit/people.ts';
import { ChainFixture } from '../../cli/sui/chain_fixture.ts';
import { compileModule, publishLineage, upgradeLineage } from '../../devnet/package_lineage.ts';

let fixture: ChainFixture;
beforeAll(async () => {
  fixture = await ChainFixture.start();
});
afterAll(() => fixture.close());

test('the UpgradeCap of a package is found by types of its later versions', { timeout: 60_000 }, async () => {
  const source = 'module own::app;\npublic struct APP has drop {}\n';
  const firstLineage = await publishLineage(fixture, await compileModule(source));
  const later = await compileModule(`${source}public struct Later has drop {}\n`);
  const upgradedLineage = await upgradeLineage(fixture, firstLineage, later);
  const chain = new Chain({ 'rpc-url': fixture.node.url }, {});
  const config = await readConfig(chain.client, await fixture.config(fixture.publish()));
  const enclavePackage = upgradedLineage.packageId;
  for (const application of [
    `${firstLineage.packageId}::app::APP`,
    `${upgradedLineage.packageId}::app::Later`,
  ]) {
    const { application: lineage } = await readContracts({ enclavePackage, application }, chain);
    const holders = await findHolders(config, [lineage[0].original], chain);
    expect(holders.filter(({ what: capability }) => capability === 'UpgradeCap')).toEqual([
      {
        what: 'UpgradeCap',
        could: `upgrade the package ${firstLineage.packageId}, whose older versions stay callable`,
        id: firstLineage.upgradeCap,
        holder: fixture.address,
      },
    ]);
  }
});
