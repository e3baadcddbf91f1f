/** Tests that host_status reads from the chain whether contracts accept the key of an enclave. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Registrations } from '../../../../src/cli/parent/registration.ts';
import type { Network } from '../../../../src/cli/sui/network.ts';
import { startServer } from '../../server/support.ts';
import { ChainFixture, ofConfig, PACKAGE } from '../sui/chain_fixture.ts';

let fixture: ChainFixture;
let capId: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  capId = fixture.publish();
});
afterAll(() => fixture.close());

/** Creates a config, and a deployment file that names it. @returns the config's id */
async function createConfig(chain = '2a2a2a2a'): Promise<string> {
  const id = await fixture.config(capId);
  mkdirSync(fixture.file('deployments'), { recursive: true });
  const config = { id, name: 'weather', version: 0 };
  const weather = {
    package: PACKAGE,
    original: PACKAGE,
    module: 'weather',
    config,
    registrars: [],
    enclaves: [],
  };
  const file = { network: 'localnet', chain, applications: { weather } };
  writeFileSync(fixture.file('deployments/localnet.json'), JSON.stringify(file));
  return id;
}

async function read(url: string, network: Network = 'localnet') {
  const { hostname: address, port } = new URL(url);
  const options = { network, 'rpc-url': fixture.node.url, root: fixture.file('root.pem') };
  const registrations = new Registrations(options, { DEPLOYMENTS: fixture.file('deployments') });
  const { text, fault } = await registrations.read({
    name: 'weather',
    unit: { unit: 'sui-enclave@weather.service' } as never,
    listen: { address, port: Number(port) },
  });
  return { text, code: fault?.code, advice: fault?.advice };
}

describe('the registration of an enclave', () => {
  test('has a fault before the enclave is registered and after it is destroyed, and none in between', async () => {
    const configId = await createConfig();
    const { url } = await startServer({ nsm: fixture.nsm });
    expect(await read(url)).toMatchObject({
      code: 'UNREGISTERED',
      advice: expect.stringMatching(/register_enclave <its URL> --network localnet.* this ends no enclave$/),
    });
    const enclave = await fixture.register(configId, capId, url);
    expect(await read(url)).toEqual({
      text: expect.stringMatching(new RegExp(`^the key [0-9a-f]{16}… is registered as ${enclave}$`)),
      code: undefined,
      advice: undefined,
    });
    await fixture.destroy(enclave, configId, capId);
    expect(await read(url)).toMatchObject({
      code: 'KEY_DESTROYED',
      advice: expect.stringMatching(/systemctl stop sui-enclave@weather\.service: .* its key is lost/),
    });
  });

  test('has a fault if the config accepts other images, or is retired', async () => {
    const configId = await createConfig();
    const { url } = await startServer({ nsm: fixture.nsm });
    await fixture.rotate(configId, capId);
    expect(await read(url)).toMatchObject({
      code: 'ATTESTATION_REFUSED',
      text: expect.stringMatching(/^POLICY_PCRS: /),
    });
    const options = [...ofConfig(configId), '--network', 'localnet'];
    await fixture.done('retire_config', ...options, '--yes');
    expect(await read(url)).toMatchObject({ code: 'CONFIG_RETIRED' });
  });

  test('has a fault if the key is too old', async () => {
    const configId = await createConfig();
    const { url } = await startServer({ nsm: fixture.nsm });
    await fixture.register(configId, capId, url);
    await fixture.done('update_config', ...ofConfig(configId), '--max-key-age', '1');
    const originalNow = Date.now;
    Date.now = () => originalNow() + 2 * 3_600_000;
    const reading = await read(url).finally(() => {
      Date.now = originalNow;
    });
    expect(reading).toMatchObject({ code: 'KEY_TOO_OLD' });
  });

  test('is unreadable without a deployment file, or with a file of another chain', async () => {
    await createConfig('00000000');
    const { url } = await startServer({ nsm: fixture.nsm });
    expect(await read(url)).toMatchObject({
      code: 'CHAIN_UNREADABLE',
      text: expect.stringMatching(/^DEPLOYMENT: .* is of the chain 00000000/),
    });
    expect(await read(url, 'devnet')).toMatchObject({
      code: 'CHAIN_UNREADABLE',
      text: expect.stringMatching(/^DEPLOYMENT: there is no .*devnet\.json/),
    });
  });
});
