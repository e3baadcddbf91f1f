/** Commands find mistakes in their arguments before they read a file or send a request, even in a dry run. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePcrs } from '../../../../src/library/attestation/index.ts';
import { ChainFixture, ofApplication, ofConfig, PACKAGE } from './chain_fixture.ts';
import { script } from './run_script.ts';

const OBJECT = `0x${'b'.repeat(64)}`;
const REGISTRATION = [PACKAGE, PACKAGE, OBJECT, 'http://127.0.0.1:1', 'weather', 'WEATHER'];
const CODE = 'EXPERIMENTAL_IMAGE';
/** Returns a registration's command line, with some arguments replaced. */
const registrationWith = (changes: Record<number, string>) => [
  'register_enclave',
  ...REGISTRATION.map((value, index) => changes[index] ?? value),
];

let fixture: ChainFixture;
beforeAll(async () => {
  fixture = await ChainFixture.start();
});
afterAll(() => fixture.close());

describe.each([['--dry-run'], ['--unsigned']])('a command with %s refuses', (flag) => {
  test.each<[string, string[], string, string]>([
    ['an invalid id', registrationWith({ 0: '0x12zz' }), 'USAGE', '--enclave-package must be 0x and 64'],
    ['a short id', registrationWith({ 2: '0x5' }), 'USAGE', '--config must be'],
    ['names that are swapped', registrationWith({ 4: 'Weather', 5: 'weather' }), 'USAGE', 'swap them'],
    ['a witness in lower case', registrationWith({ 5: 'weather' }), 'USAGE', 'of weather is WEATHER'],
    [
      'a name that is not valid in Move',
      registrationWith({ 4: 'wea-ther' }),
      'USAGE',
      '--module must be a name',
    ],
    [
      'an id for a URL',
      registrationWith({ 3: OBJECT }),
      'USAGE',
      '<enclave_url> must be the URL of an enclave',
    ],
    [
      'an invalid registrar',
      [...registrationWith({}), '--registrar', '0x12zz'],
      'USAGE',
      '--registrar must be',
    ],
    [
      'a short id of a capability',
      ['create_config', 'x', '--cap', '0x1', '--network', 'localnet'],
      'USAGE',
      '--cap must be',
    ],
    [
      'options for some of the ids',
      ['retire_config', '--config', OBJECT],
      'USAGE',
      'missing: --enclave-package',
    ],
    ['ids as arguments', ['retire_config', PACKAGE, OBJECT], 'USAGE', 'by --enclave-package, --config'],
    [
      'former arguments that lack some of the ids',
      registrationWith({}).slice(0, 4),
      'USAGE',
      'missing: <enclave_url> <module_name> <otw_name>',
    ],
    ['an id twice', [...registrationWith({}), '--config', OBJECT], 'USAGE', '--config is given twice'],
    [
      'a missing deployment file',
      ['create_config', 'x', '--network', 'localnet'],
      'DEPLOYMENT',
      'there is no',
    ],
    ['no ids, and no network', ['retire_config'], 'USAGE', '--network with a deployments/<network>.json'],
    [
      'an unknown network',
      [...registrationWith({}), '--network', 'tesnet'],
      'USAGE',
      '--network must be one of mainnet',
    ],
    [
      'a network that is a path',
      [...registrationWith({}), '--network', '../../etc'],
      'USAGE',
      '--network must be',
    ],
    [
      'an http URL of a remote node',
      [...registrationWith({}), '--rpc-url', 'http://sui.example'],
      'SUI_VALUE',
      'https URL',
    ],
    [
      'a short address of a sender',
      [...registrationWith({}), '--address', '0x5'],
      'USAGE',
      '--address must be',
    ],
    ...['0', '-1', '1.5', '1e9', 'all'].map((budget): [string, string[], string, string] => [
      `a budget of ${budget}`,
      [...registrationWith({}), `--gas-budget=${budget}`],
      'USAGE',
      '--gas-budget must be an integer number of MIST',
    ]),
    [
      'a name for the id of an object',
      ['destroy_enclave', '--enclave-package', PACKAGE, 'weather'],
      'USAGE',
      '<enclave_object_id>',
    ],
    [
      'a function without its module',
      ['call', 'open', '--cap', OBJECT],
      'USAGE',
      '<function> must be PACKAGE::module::function',
    ],
    ['a function without its package', ['call', 'prices::open'], 'USAGE', 'give the package of <function>'],
    ['an invalid holder', ['add_registrar', ...ofConfig(OBJECT), 'me'], 'USAGE', '<holder>'],
    ['a package that move/ lacks', ['publish', 'dice'], 'USAGE', 'there is no package "dice"'],
  ])('%s', async (_, [name = '', ...args], code, message) => {
    // Adds a valid node and sender unless the row has its own.
    const node =
      args.includes('--network') || args.includes('--rpc-url') ? [] : ['--rpc-url', fixture.node.url];
    const sender = args.includes('--address') ? [] : ['--address', OBJECT];
    const { exit, json } = await script(name, [...args, ...node, ...sender, flag, '--json']);
    expect(json()).toMatchObject({ code, error: expect.stringContaining(message) });
    expect(exit).toBe(2);
    expect(fixture.node.calls).toEqual([]);
  });

  test('an invalid key', async () => {
    const args = [...REGISTRATION, '--rpc-url', fixture.node.url, flag, '--json'];
    const { exit, json } = await script('register_enclave', args, { SUI_PRIVATE_KEY: 'foo' });
    expect([exit, json()['code']]).toEqual([2, 'SIGNER']);
    expect(fixture.node.calls).toEqual([]);
  });
});

test('a missing key is reported before a request to the enclave', async () => {
  const nodeOptions = ['--rpc-url', fixture.node.url, '--json'];
  for (const [code, ...more] of [['NO_SENDER'], ['SIGNER', '--address', OBJECT, '--keystore', '/nowhere']]) {
    const { exit, json } = await script('register_enclave', [...REGISTRATION, ...nodeOptions, ...more]);
    expect([exit, json()['code']]).toEqual([2, code]);
  }
});

describe('development roots and registers', () => {
  const key = () => ({ SUI_PRIVATE_KEY: fixture.admin.getSecretKey() });
  const config = () => [
    ...ofApplication(PACKAGE, PACKAGE, 'weather', 'WEATHER'),
    'x',
    '--pcrs',
    fixture.file('dev.pcrs'),
  ];
  const nodeOptions = () => ['--rpc-url', fixture.node.url, '--json'];

  test.each(['mainnet', 'testnet', 'devnet'])('are refused on %s', async (network) => {
    const networkOptions = [...nodeOptions(), '--network', network];
    const created = await script('create_config', [...config(), ...networkOptions], key());
    expect(created.json()).toMatchObject({
      code: 'DEVELOPMENT_TRUST',
      error: expect.stringMatching(
        /dev\.pcrs has the registers of ATTEST=emulated npx --offline sui-enclave dev/,
      ),
    });
    const root = ['--root', fixture.file('root.pem')];
    const registered = await script('register_enclave', [...REGISTRATION, ...root, ...networkOptions], key());
    expect(registered.json()).toMatchObject({
      code: 'DEVELOPMENT_TRUST',
      error: expect.stringContaining('root.pem'),
    });
    expect([created.exit, registered.exit]).toEqual([2, 2]);
    expect(fixture.node.calls).toEqual([]);
  });

  test("are refused if they are of another application's emulated enclave", async () => {
    writeFileSync(fixture.file('dice.pcrs'), fixture.createNsm('dice').pcrsFile());
    const args = [
      ...config().slice(0, -1),
      fixture.file('dice.pcrs'),
      ...nodeOptions(),
      '--network',
      'testnet',
    ];
    const { exit, json } = await script('create_config', args, key());
    expect([exit, json()['code']]).toEqual([2, 'DEVELOPMENT_TRUST']);
    expect(fixture.node.calls).toEqual([]);
  });

  test('are refused for a remote node, and accepted for a local node', async () => {
    const remoteNode = ['--rpc-url', 'https://sui.example', '--json'];
    const refused = await script('create_config', [...config(), ...remoteNode], key());
    expect(refused.json()).toMatchObject({ code: 'DEVELOPMENT_TRUST' });
    const local = await script('create_config', [...config(), ...nodeOptions()], key());
    expect(local.json()).toMatchObject({ code: 'SUI_OBJECT_NOT_FOUND' });
  });

  test('are refused on every network if they are of a debug enclave', async () => {
    writeFileSync(fixture.file('debug.pcrs'), [0, 1, 2].map((n) => `${'0'.repeat(96)} PCR${n}\n`).join(''));
    const args = [...config().slice(0, -2), '--pcrs', fixture.file('debug.pcrs')];
    const refused = await script('create_config', [...args, ...nodeOptions()], key());
    expect(refused.json()).toMatchObject({ code: 'POLICY_ZERO_IMAGE' });
  });
});

describe('on a real network, an image is refused unless its record says that it is of a tagged release', () => {
  const key = () => ({ SUI_PRIVATE_KEY: fixture.admin.getSecretKey() });
  const registers = () => parsePcrs(readFileSync(fixture.file('other.pcrs'), 'utf8'));
  /** Returns the record that the build of a tagged release writes. */
  const releaseRecord = () => ({
    application: 'weather',
    commit: 'c0ffee',
    unchanged_tree: true,
    channel: 'stable',
    registers: registers(),
  });
  const writeRecord = (measurements: unknown) =>
    writeFileSync(fixture.file('other.measurements.json'), JSON.stringify(measurements));
  const UNREACHABLE_URL = 'http://127.0.0.1:1';
  const COMMANDS: [string, string[], string][] = [
    [
      'create_config',
      [...ofApplication(PACKAGE, PACKAGE, 'weather', 'WEATHER'), 'x'],
      'SUI_OBJECT_NOT_FOUND',
    ],
    ['update_pcrs', ofConfig(OBJECT), 'SUI_OBJECT_NOT_FOUND'],
    ['rotate', [...ofConfig(OBJECT), UNREACHABLE_URL], 'CLIENT_UNREACHABLE'],
  ];
  const run = (name: string, args: string[], network: string, ...more: string[]) => {
    const node = ['--network', network, '--rpc-url', fixture.node.url];
    return script(name, [...args, '--pcrs', fixture.file('other.pcrs'), ...node, ...more, '--json'], key());
  };

  test.each(COMMANDS)('by %s, unless --experimental is given', async (name, args, laterCode) => {
    writeRecord({ ...releaseRecord(), channel: 'experimental' });
    const callCount = fixture.node.calls.length;
    for (const network of ['mainnet', 'testnet', 'devnet']) {
      const { exit, json } = await run(name, args, network);
      expect([exit, json()]).toMatchObject([
        2,
        {
          error: expect.stringMatching(/other\.pcrs is of an experimental image.*CHANNEL=stable/),
          code: CODE,
        },
      ]);
    }
    expect((await run(name, args, 'testnet', '--dry-run')).json()).toMatchObject({ code: CODE });
    expect(fixture.node.calls).toHaveLength(callCount);
    expect((await run(name, args, 'testnet', '--experimental')).json()).toMatchObject({ code: laterCode });
    expect((await run(name, args, 'localnet')).json()).toMatchObject({ code: laterCode });
  });

  test.each<[string, () => object, RegExp]>([
    [
      'an image of uncommitted changes',
      () => ({ ...releaseRecord(), unchanged_tree: false }),
      /with changes that were not committed/,
    ],
    [
      'an image that was built outside a repository',
      () => ({ ...releaseRecord(), unchanged_tree: null }),
      /experimental image/,
    ],
    [
      'an image of another build',
      () => ({ ...releaseRecord(), registers: { ...registers(), pcr2: '5'.repeat(96) } }),
      /unknown build, since .* has other registers/,
    ],
    [
      'an image whose record is unreadable',
      () => ({ ...releaseRecord(), channel: 5 }),
      /unknown build, since .* can't be read/,
    ],
  ])('such as %s', async (_name, measurements, message) => {
    writeRecord(measurements());
    const [name, args] = COMMANDS[0] as (typeof COMMANDS)[0];
    const refused = await run(name, args, 'mainnet');
    expect(refused.json()).toMatchObject({ error: expect.stringMatching(message), code: CODE });
  });

  test('a release is accepted', async () => {
    const [name, args, laterCode] = COMMANDS[0] as (typeof COMMANDS)[0];
    writeRecord(releaseRecord());
    expect((await run(name, args, 'mainnet')).json()).toMatchObject({ code: laterCode });
  });

  test('registers without the record of their build cause a warning', async () => {
    const [name, args, laterCode] = COMMANDS[0] as (typeof COMMANDS)[0];
    rmSync(fixture.file('other.measurements.json'), { force: true });
    expect((await run(name, args, 'mainnet', '--dry-run')).json()).toMatchObject({
      code: laterCode,
      notes: [
        expect.stringMatching(
          /^WARNING: the build of the registers in .*other\.pcrs is unknown: the measurements file beside it is missing/,
        ),
      ],
    });
    expect((await run(name, args, 'localnet', '--dry-run')).json()).not.toHaveProperty('notes');
  });
});
