/** Mistakes on a command line are found before a file is read or anything is asked, in a dry run too. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChainFixture, PACKAGE } from './chain_fixture.ts';
import { script } from './run_script.ts';

const OBJECT = `0x${'b'.repeat(64)}`;
const REGISTRATION = [PACKAGE, PACKAGE, OBJECT, 'http://127.0.0.1:1', 'weather', 'WEATHER'];
/** The arguments of a registration, with some in place of others. */
const but = (changes: Record<number, string>) => [
  'register_enclave',
  ...REGISTRATION.map((value, index) => changes[index] ?? value),
];

let fixture: ChainFixture;
beforeAll(async () => {
  fixture = await ChainFixture.start();
});
afterAll(() => fixture.close());

describe.each([['--dry-run'], ['--unsigned']])('%s', (flag) => {
  test.each<[string, string[], string, string]>([
    ['an id that is none', but({ 0: '0x12zz' }), 'SUI_VALUE', '<enclave_package_id> must be 0x and 64'],
    ['a short id', but({ 2: '0x5' }), 'SUI_VALUE', '<enclave_config_id> must be'],
    ['names that are swapped', but({ 4: 'Weather', 5: 'weather' }), 'SUI_VALUE', 'swap them'],
    ['a witness in lower case', but({ 5: 'weather' }), 'SUI_VALUE', 'of weather is WEATHER'],
    ['a name that is none in Move', but({ 4: 'wea-ther' }), 'SUI_VALUE', '<module_name> must be a name'],
    ['an id for a URL', but({ 3: OBJECT }), 'CLIENT_OPTION', 'URL of the enclave'],
    ['a registrar', [...but({}), '--registrar', '0x12zz'], 'SUI_VALUE', '--registrar must be'],
    [
      'a capability',
      ['create_config', 'x', '--cap', '0x1', '--network', 'localnet'],
      'DEPLOYMENT',
      'there is no',
    ],
    ['some of the ids', ['retire_config', PACKAGE], 'USAGE', 'give all, or none of them'],
    ['some of more ids', but({}).slice(0, 4), 'USAGE', 'give all, or <enclave_url> alone'],
    ['no ids, and no network', ['retire_config'], 'USAGE', '--network whose deployments/<network>.json'],
    ['a network', [...but({}), '--network', 'tesnet'], 'SUI_VALUE', 'it is "tesnet"'],
    ['a network that is a path', [...but({}), '--network', '../../etc'], 'SUI_VALUE', '--network must be'],
    ['a node', [...but({}), '--rpc-url', 'http://sui.example'], 'SUI_VALUE', 'https URL'],
    ['a sender', [...but({}), '--address', '0x5'], 'SUI_VALUE', '--address must be'],
    ['a budget', [...but({}), '--gas-budget', '1.5'], 'SUI_VALUE', '--gas-budget'],
    ['an object', ['destroy_enclave', PACKAGE, 'weather'], 'SUI_VALUE', '<enclave_object_id>'],
    ['a holder', ['add_registrar', PACKAGE, OBJECT, 'me'], 'SUI_VALUE', '<holder>'],
    ['a package of move/', ['publish', 'dice'], 'USAGE', 'there is no package "dice"'],
  ])('%s', async (_, [name = '', ...args], code, message) => {
    // Valid ones, after which those of the row win.
    const node =
      args.includes('--network') || args.includes('--rpc-url') ? [] : ['--rpc-url', fixture.node.url];
    const sender = args.includes('--address') ? [] : ['--address', OBJECT];
    const { exit, json } = await script(name, [...args, ...node, ...sender, flag, '--json']);
    expect(json()).toMatchObject({ code, error: expect.stringContaining(message) });
    expect(exit).toBe(2);
    expect(fixture.node.calls).toEqual([]);
  });

  test('a key that is none', async () => {
    const args = [...REGISTRATION, '--rpc-url', fixture.node.url, flag, '--json'];
    const { exit, json } = await script('register_enclave', args, { SUI_PRIVATE_KEY: 'foo' });
    expect([exit, json()['code']]).toEqual([2, 'SIGNER']);
    expect(fixture.node.calls).toEqual([]);
  });
});

test('a key that is not there is missed before the enclave is asked', async () => {
  const where = ['--rpc-url', fixture.node.url, '--json'];
  for (const [code, ...more] of [['NO_SENDER'], ['SIGNER', '--address', OBJECT, '--keystore', '/nowhere']]) {
    const { exit, json } = await script('register_enclave', [...REGISTRATION, ...where, ...more]);
    expect([exit, json()['code']]).toEqual([2, code]);
  }
});

describe('on a real network, development is refused by name', () => {
  const key = () => ({ SUI_PRIVATE_KEY: fixture.admin.getSecretKey() });
  const config = () => [PACKAGE, PACKAGE, 'weather', 'WEATHER', 'x', '--pcrs', fixture.file('dev.pcrs')];
  const where = () => ['--rpc-url', fixture.node.url, '--json'];

  test.each(['mainnet', 'testnet', 'devnet'])('%s: registers and roots', async (network) => {
    const real = [...where(), '--network', network];
    const created = await script('create_config', [...config(), ...real], key());
    expect(created.json()).toMatchObject({
      code: 'DEVELOPMENT_TRUST',
      error: expect.stringMatching(/dev\.pcrs has the registers of make dev ATTEST=emulated/),
    });
    const root = ['--root', fixture.file('root.pem')];
    const registered = await script('register_enclave', [...REGISTRATION, ...root, ...real], key());
    expect(registered.json()).toMatchObject({
      code: 'DEVELOPMENT_TRUST',
      error: expect.stringContaining('root.pem'),
    });
    expect([created.exit, registered.exit]).toEqual([2, 2]);
    expect(fixture.node.calls).toEqual([]);
  });

  test("registers of any application's emulated enclave", async () => {
    writeFileSync(fixture.file('dice.pcrs'), fixture.nsmOf('dice').pcrsFile());
    const args = [...config().slice(0, -1), fixture.file('dice.pcrs'), ...where(), '--network', 'testnet'];
    const { exit, json } = await script('create_config', args, key());
    expect([exit, json()['code']]).toEqual([2, 'DEVELOPMENT_TRUST']);
    expect(fixture.node.calls).toEqual([]);
  });

  test('a node elsewhere is real too, and one of this machine is not', async () => {
    const elsewhere = ['--rpc-url', 'https://sui.example', '--json'];
    const refused = await script('create_config', [...config(), ...elsewhere], key());
    expect(refused.json()).toMatchObject({ code: 'DEVELOPMENT_TRUST' });
    const local = await script('create_config', [...config(), ...where()], key());
    expect(local.json()).toMatchObject({ code: 'SUI_OBJECT_NOT_FOUND' });
  });

  test('registers of a debug enclave are refused everywhere', async () => {
    writeFileSync(fixture.file('debug.pcrs'), [0, 1, 2].map((n) => `${'0'.repeat(96)} PCR${n}\n`).join(''));
    const args = [...config().slice(0, 5), '--pcrs', fixture.file('debug.pcrs')];
    const refused = await script('create_config', [...args, ...where()], key());
    expect(refused.json()).toMatchObject({ code: 'POLICY_ZERO_IMAGE' });
  });
});
