/** Commands for the later life of a config: registrars, rotation, the age of keys, and retirement. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { main } from '../../../../src/cli/sui/retire_config.ts';
import { Changes, type LedgerObject } from '../../../../src/devnet/ledger.ts';
import { Config, PUBLISHER, Publisher } from '../../devnet/structs.ts';
import { startServer } from '../../server/support.ts';
import { ChainFixture, ofApplication, ofConfig, PACKAGE } from './chain_fixture.ts';
import { script } from './run_script.ts';

let fixture: ChainFixture;
let capId: string;
let configId: string;
let root: string[];
beforeEach(async () => {
  fixture = await ChainFixture.start();
  capId = fixture.publish();
  configId = await fixture.config(capId);
  root = ['--root', fixture.file('root.pem')];
});
afterEach(() => fixture.close());

const registrationArguments = (url: string) => [
  PACKAGE,
  PACKAGE,
  configId,
  url,
  'weather',
  'WEATHER',
  ...root,
];
const countSent = () => fixture.node.ledger.executed.length;

describe('a registrar', () => {
  /** The key of the machine that restarts enclaves. */
  const operator = new Ed25519Keypair();

  /** Runs a command with the operator's key alone. */
  async function operate(name: string, ...args: string[]) {
    const env = { SUI_PRIVATE_KEY: operator.getSecretKey() };
    return await script(name, [...args, '--rpc-url', fixture.node.url, '--json'], env);
  }

  async function addRegistrar(): Promise<string> {
    fixture.node.ledger.give(operator.toSuiAddress(), 1_000_000_000n);
    const added = await fixture.done('add_registrar', ...ofConfig(configId), operator.toSuiAddress());
    return added['registrar'] as string;
  }

  test('registers a restarted enclave, and changes nothing else', async () => {
    const registrar = await addRegistrar();
    const { url } = await startServer({ nsm: fixture.nsm });
    const registered = await operate(
      'register_enclave',
      ...registrationArguments(url),
      '--registrar',
      registrar,
    );
    expect(registered.json()).toMatchObject({ status: 'done', registrar, configVersion: '0' });
    const enclave = registered.json()['enclave'] as string;
    for (const args of [
      ['destroy_enclave', '--enclave-package', PACKAGE, enclave],
      ['update_pcrs', ...ofConfig(configId), '--pcrs', fixture.file('other.pcrs')],
      ['retire_config', ...ofConfig(configId), '--yes'],
      ['add_registrar', ...ofConfig(configId), operator.toSuiAddress()],
      ['revoke_registrar', ...ofConfig(configId), registrar],
    ]) {
      const [name = '', ...commandArguments] = args;
      const { exit, json } = await operate(name, ...commandArguments);
      expect(json()).toMatchObject({ status: 'failed', error: expect.stringContaining('is owned by') });
      expect(exit).toBe(1);
    }
  });

  test('is revoked, no matter who owns it; register_enclave then refuses it, and sends nothing', async () => {
    const registrar = await addRegistrar();
    expect(await fixture.done('status', '--config', configId)).toMatchObject({
      config: { registrars: [registrar] },
    });
    expect(await fixture.done('revoke_registrar', ...ofConfig(configId), registrar)).toMatchObject({
      status: 'done',
      registrar,
    });
    const { url } = await startServer({ nsm: fixture.nsm });
    const before = countSent();
    const refused = await operate(
      'register_enclave',
      ...registrationArguments(url),
      '--registrar',
      registrar,
    );
    expect(refused.json()).toMatchObject({ code: 'WOULD_ABORT', error: expect.stringContaining('revoked') });
    expect(countSent()).toBe(before);
    expect(await fixture.done('revoke_registrar', ...ofConfig(configId), registrar)).toMatchObject({
      status: 'unchanged',
    });
  });

  test('is added only for an address with all its 64 digits', async () => {
    expect((await fixture.run('add_registrar', ...ofConfig(configId), '0x5')).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('<holder> must be 0x and 64'),
    });
  });
});

describe('a module that is already on chain', () => {
  /** Creates the Publisher of a module of the package. @returns its id */
  function createPublisher(module: string): string {
    const changes = new Changes(fixture.node.ledger, `publisher:${module}`);
    const owner = { kind: 'address', address: fixture.address } as const;
    const id = changes.create(PUBLISHER, owner, (objectId) =>
      Publisher.serialize({ id: objectId, package: PACKAGE.slice(2), module_name: module }).toBytes(),
    );
    fixture.node.ledger.commit('claim', changes);
    return id;
  }
  const create = (...args: string[]) =>
    fixture.run(
      'create_config',
      ...ofApplication(PACKAGE, PACKAGE, 'source', 'Source'),
      'sources',
      '--pcrs',
      fixture.file('dev.pcrs'),
      ...args,
    );

  test('gets a capability by its Publisher, and a config, in one transaction', async () => {
    const created = await create('--publisher', createPublisher('source'));
    expect(created.json()).toMatchObject({ status: 'done', application: `${PACKAGE}::source::Source` });
    const { config, capability } = created.json() as { config: string; capability: string };
    expect(fixture.node.ledger.objects.get(capability)).toMatchObject({
      type: `${PACKAGE}::enclave::EnclaveCap<${PACKAGE}::source::Source>`,
      owner: { kind: 'address', address: fixture.address },
    });
    // The sender now owns a capability.
    expect(await fixture.done('retire_config', ...ofConfig(config), '--yes')).toMatchObject({ capability });
    expect((await create()).json()).toMatchObject({ status: 'done', capability });
  });

  test("gets no capability by another module's Publisher", async () => {
    const before = countSent();
    expect((await create('--publisher', createPublisher('coin'))).json()).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      error: expect.stringContaining('the Publisher is not of the module'),
    });
    expect((await create('--publisher', capId)).json()).toMatchObject({ code: 'SUI_EXECUTION' });
    expect((await create('--publisher', capId, '--cap', capId)).json()).toMatchObject({ code: 'USAGE' });
    expect(countSent()).toBe(before + 1);
  });
});

describe('rotate', () => {
  test('allows the image and registers its enclave in one transaction; the old enclave can be destroyed later', async () => {
    const oldServer = await startServer({ nsm: fixture.nsm });
    const oldId = await fixture.register(configId, capId, oldServer.url);
    const nsm = fixture.createNsm('next');
    writeFileSync(fixture.file('next.pcrs'), nsm.pcrsFile());
    const successor = await startServer({ nsm });
    const before = countSent();
    const rotated = await fixture.done(
      'rotate',
      ...ofConfig(configId),
      successor.url,
      '--pcrs',
      fixture.file('next.pcrs'),
      ...root,
    );
    expect(rotated).toMatchObject({ status: 'done', configVersion: '1', capability: capId });
    expect(countSent()).toBe(before + 1);
    expect(await fixture.done('status', '--config', configId, successor.url, ...root)).toMatchObject({
      enclaves: expect.arrayContaining([
        expect.objectContaining({ id: oldId, stale: true }),
        expect.objectContaining({ id: rotated['enclave'], stale: false, configVersion: '1' }),
      ]),
      answering: [{ registration: 'registered', enclave: rotated['enclave'] }],
    });
    expect(await fixture.done('destroy_enclave', '--enclave-package', PACKAGE, oldId)).not.toHaveProperty(
      'capability',
    );
  });

  test('with --overlap lets contracts accept the old enclave until the set time, or until end_overlap', async () => {
    const oldServer = await startServer({ nsm: fixture.nsm });
    const oldId = await fixture.register(configId, capId, oldServer.url);
    const nsm = fixture.createNsm('weather');
    // The registers are the same, so that the enclaves of both versions meet the policy of the commands.
    const successor = await startServer({ nsm });
    const rotate = (url: string, ...args: string[]) =>
      fixture.run('rotate', ...ofConfig(configId), url, '--pcrs', fixture.file('dev.pcrs'), ...root, ...args);
    const before = countSent();
    const rotated = (await rotate(successor.url, '--again', '--overlap', '30')).json();
    expect(rotated).toMatchObject({ status: 'done', configVersion: '1', overlapUntil: expect.any(String) });
    const until = Date.parse(String(rotated['overlapUntil']));
    expect(Math.abs(until - Date.now() - 30 * 60_000)).toBeLessThan(60_000);
    expect(countSent()).toBe(before + 1);
    const status = async () => await script('status', ['--config', configId, '--rpc-url', fixture.node.url]);
    expect((await status()).out).toMatch(/at version 1, and at version 0 until 2\d{3}-[-0-9T:.]+Z/);
    expect((await status()).out).toMatch(/accepted until 2\d{3}-[-0-9T:.]+Z\n/);
    expect(
      await fixture.done('status', '--config', configId, oldServer.url, successor.url, ...root),
    ).toMatchObject({
      config: { configVersion: '1', overlap: { until: rotated['overlapUntil'] } },
      enclaves: expect.arrayContaining([
        expect.objectContaining({ id: oldId, stale: false, configVersion: '0' }),
        expect.objectContaining({ id: rotated['enclave'], stale: false, configVersion: '1' }),
      ]),
      answering: expect.arrayContaining([
        expect.objectContaining({ registration: 'registered', enclave: oldId }),
        expect.objectContaining({ registration: 'registered', enclave: rotated['enclave'] }),
      ]),
    });
    const refused = await rotate(successor.url, '--again', '--overlap', '30');
    expect(refused.json()).toMatchObject({
      code: 'WOULD_ABORT',
      error: expect.stringContaining('end_overlap'),
    });
    // The key of version 0 can still be registered at version 1.
    expect((await rotate(oldServer.url)).json()).toMatchObject({ status: 'done', configVersion: '1' });
    expect(await fixture.done('end_overlap', ...ofConfig(configId))).toMatchObject({
      status: 'done',
      capability: capId,
    });
    expect(await fixture.done('end_overlap', ...ofConfig(configId))).toMatchObject({ status: 'unchanged' });
    expect(await fixture.done('status', '--config', configId)).toMatchObject({
      config: { overlap: null },
      enclaves: expect.arrayContaining([expect.objectContaining({ id: oldId, stale: true })]),
    });
    expect(await fixture.done('destroy_enclave', '--enclave-package', PACKAGE, oldId)).not.toHaveProperty(
      'capability',
    );
  });

  test('an enclave of the previous version is destroyed with the capability during an overlap, and without it afterwards', async () => {
    const servers = [await startServer({ nsm: fixture.nsm }), await startServer({ nsm: fixture.nsm })];
    const ids = [];
    for (const { url } of servers) ids.push(await fixture.register(configId, capId, url));
    const updated = await fixture.done(
      'update_pcrs',
      ...ofConfig(configId),
      '--pcrs',
      fixture.file('other.pcrs'),
      '--overlap',
      '1',
    );
    expect(updated).toMatchObject({ status: 'done', configVersion: '1', overlapUntil: expect.any(String) });
    expect(await fixture.done('destroy_enclave', '--enclave-package', PACKAGE, ids[0] ?? '')).toMatchObject({
      capability: capId,
    });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(String(updated['overlapUntil'])) });
    onTestFinished(() => void vi.useRealTimers());
    expect(
      await fixture.done('destroy_enclave', '--enclave-package', PACKAGE, ids[1] ?? ''),
    ).not.toHaveProperty('capability');
  });

  test.each(['0', '1440', '1.5', 'day'])('--overlap %s is a usage error', async (minutes) => {
    const args = [...ofConfig(configId), '--pcrs', fixture.file('other.pcrs'), '--overlap', minutes];
    const { exit, json } = await fixture.run('update_pcrs', ...args);
    expect(json()).toMatchObject({ code: 'USAGE', error: expect.stringContaining('from 1 to 1439') });
    expect(exit).toBe(2);
  });

  test('with the same registers does nothing, registers an unregistered enclave, and bumps the version with --again', async () => {
    const rotateToSameImage = (url: string, ...args: string[]) =>
      fixture.done(
        'rotate',
        ...ofConfig(configId),
        url,
        '--pcrs',
        fixture.file('dev.pcrs'),
        ...root,
        ...args,
      );
    const [oldServer, newServer] = [
      await startServer({ nsm: fixture.nsm }),
      await startServer({ nsm: fixture.nsm }),
    ];
    const oldId = await fixture.register(configId, capId, oldServer.url);
    const before = countSent();
    expect(await rotateToSameImage(oldServer.url)).toMatchObject({
      status: 'unchanged',
      title: expect.stringMatching(/nothing to do\.$/),
      enclave: oldId,
      configVersion: '0',
    });
    expect(countSent()).toBe(before);
    const registered = await rotateToSameImage(newServer.url);
    expect(registered).toMatchObject({ status: 'done', configVersion: '0' });
    expect(await fixture.done('status', '--config', configId)).toMatchObject({
      config: { configVersion: '0' },
      enclaves: expect.arrayContaining([
        expect.objectContaining({ id: oldId, stale: false }),
        expect.objectContaining({ id: registered['enclave'], stale: false }),
      ]),
    });
    const again = await rotateToSameImage(oldServer.url, '--again');
    expect(again).toMatchObject({ status: 'done', configVersion: '1' });
    expect(again['enclave']).not.toBe(oldId);
    expect(countSent()).toBe(before + 2);
  });

  test('is not sent for an enclave whose image is not the one in the file', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const before = countSent();
    const refused = await fixture.run(
      'rotate',
      ...ofConfig(configId),
      url,
      '--pcrs',
      fixture.file('other.pcrs'),
      ...root,
    );
    expect(refused.json()).toMatchObject({ code: 'POLICY_PCRS' });
    expect(countSent()).toBe(before);
  });
});

describe('status', () => {
  test('prints its verdict first, then a line for each enclave: URL, key, registration, and whether contracts accept it', async () => {
    const [good, stranger] = [
      await startServer({ nsm: fixture.nsm }),
      await startServer({ nsm: fixture.nsm }),
    ];
    await fixture.register(configId, capId, good.url);
    const print = async (...urls: string[]) => {
      const { exit, out } = await script('status', [
        '--config',
        configId,
        ...urls,
        ...root,
        '--rpc-url',
        fixture.node.url,
      ]);
      return { exit, lines: out.trimEnd().split('\n') };
    };
    const line = (url: string, ending: RegExp) =>
      expect.stringMatching(
        new RegExp(`^  ${url.replaceAll('.', '[.]')} +key [0-9a-f]{16}…  ${ending.source}$`),
      );
    expect(await print(good.url)).toEqual({
      exit: 0,
      lines: [
        'OK: contracts accept every key that answered, under the config "weather" at version 0.',
        line(good.url, /registered 0 min ago {2}accepted/),
      ],
    });
    expect(await print(good.url, stranger.url, 'http://127.0.0.1:1')).toEqual({
      exit: 1,
      lines: [
        expect.stringMatching(
          /^PROBLEM: contracts do not accept 2 of the 3 enclaves at these URLs, under the config/,
        ),
        line(good.url, /registered 0 min ago {2}accepted/),
        line(stranger.url, /not registered {8}not accepted/),
        expect.stringMatching(
          /^ {2}http:..127.0.0.1:1 +no trusted key .*CLIENT_UNREACHABLE: the enclave at .* did not answer/,
        ),
      ],
    });
    expect(await print()).toEqual({
      exit: 0,
      lines: [
        expect.stringMatching(
          /^Not checked: give the URLs of enclaves. Contracts accept 1 of 1 registered enclave of/,
        ),
        expect.stringMatching(/^ {2}- {2}key [0-9a-f]{16}… {2}registered 0 min ago {2}accepted$/),
      ],
    });
    await fixture.done('update_pcrs', ...ofConfig(configId), '--pcrs', fixture.file('other.pcrs'));
    expect((await print()).lines[1]).toMatch(/stale: registered at version 0$/);
    await fixture.done('retire_config', ...ofConfig(configId), '--yes');
    expect((await print()).lines).toEqual([
      'RETIRED: the config "weather" at version 1. Contracts accept none of its enclaves.',
      expect.stringMatching(/its config is retired$/),
    ]);
  });

  test('lists a URL once, and with --verbose the registered enclave and the answering one', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const id = await fixture.register(configId, capId, url);
    const args = ['--config', configId, url, ...root, '--rpc-url', fixture.node.url];
    expect((await script('status', args)).out.split(url)).toHaveLength(2);
    const whole = await script('status', [...args, '--verbose']);
    expect(whole.out.split(id)).toHaveLength(3);
    const json = await fixture.done('status', '--config', configId, url, ...root);
    expect(JSON.stringify(json).split(url)).toHaveLength(2);
  });
});

describe('migrate_config', () => {
  test('makes a config of an older version of the package usable by this version; a second run is refused', async () => {
    const { ledger } = fixture.node;
    const changes = new Changes(ledger, 'older');
    const object = ledger.objects.get(configId) as LedgerObject;
    const older = { ...Config.parse(object.content), package_version: 0 };
    changes.write({ ...object, content: Config.serialize(older).toBytes() });
    ledger.commit('older', changes);
    const rename = () => fixture.run('update_config', ...ofConfig(configId), '--name', 'renamed');
    expect((await rename()).json()).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      error: expect.stringContaining('have the admin migrate the config'),
    });
    const file = fixture.file('deployments/localnet.json');
    const entry = {
      package: PACKAGE,
      original: PACKAGE,
      enclavePackage: `0x${'e'.repeat(64)}`,
      config: { id: configId, name: 'weather', version: 0 },
      registrars: [],
      enclaves: [],
    };
    const chain = await new Chain({ 'rpc-url': fixture.node.url }, {}).id();
    mkdirSync(fixture.file('deployments'));
    writeFileSync(file, JSON.stringify({ network: 'localnet', chain, applications: { weather: entry } }));
    expect(
      await fixture.done('migrate_config', ...ofConfig(configId), '--network', 'localnet'),
    ).toMatchObject({
      status: 'done',
      capability: capId,
      packageVersionBefore: '0',
    });
    // From now on, other commands call the version that may use the config.
    expect(JSON.parse(readFileSync(file, 'utf8')).applications).toEqual({
      weather: { ...entry, enclavePackage: PACKAGE },
    });
    expect(await fixture.done('status', '--config', configId)).toMatchObject({
      config: { packageVersion: '1' },
    });
    expect((await rename()).json()).toMatchObject({ status: 'done' });
    expect((await fixture.run('migrate_config', ...ofConfig(configId))).json()).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      error: expect.stringContaining('nothing to migrate'),
    });
  });
});

describe('update_config', () => {
  test('names a config, and limits the age of keys: status warns of a key that is too old', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const enclaveId = await fixture.register(configId, capId, url);
    const set = (...args: string[]) => fixture.done('update_config', ...ofConfig(configId), ...args);
    expect(await set('--name', 'renamed', '--max-key-age', '1')).toMatchObject({
      name: 'renamed',
      maxKeyAgeMs: '3600000',
    });
    const young = await fixture.done('status', '--config', configId, url, ...root);
    expect(young).toMatchObject({
      config: { name: 'renamed', maxKeyAgeMs: '3600000' },
      enclaves: [{ id: enclaveId, keyTooOld: false }],
    });
    const printed = await script('status', [
      '--config',
      configId,
      '--verbose',
      '--rpc-url',
      fixture.node.url,
    ]);
    expect(printed.out).toMatch(/registeredAt +\d{4}-\d\d-\d\dT/);
    fixture.node.lie = (object) => {
      if (!object.type.includes('::enclave::Enclave<')) return object;
      const content = Buffer.from(object.content);
      content.writeBigUInt64LE(BigInt(Date.now() - 3_600_001), content.length - 8);
      return { ...object, content };
    };
    const old = await fixture.run('status', '--config', configId, url, ...root);
    expect(old.json()).toMatchObject({ enclaves: [{ keyTooOld: true }], answering: [{ trusted: true }] });
    expect(old.exit).toBe(1);
    expect(await set('--max-key-age', 'none')).toMatchObject({ maxKeyAgeMs: 'none' });
    expect(await fixture.done('status', '--config', configId)).toMatchObject({
      config: { maxKeyAgeMs: null },
    });
  });

  test.each([
    [[], 'give --name or --max-key-age'],
    [['--max-key-age', '0'], 'whole number of hours from 1'],
    [['--max-key-age', '1.5'], 'whole number of hours from 1'],
    [['--max-key-age', '1000000'], 'to 999999'],
  ])('%j is a usage error', async (args, message) => {
    const { exit, json } = await fixture.run('update_config', ...ofConfig(configId), ...args);
    expect(json()).toMatchObject({ code: 'USAGE', error: expect.stringContaining(message) });
    expect(exit).toBe(2);
  });
});

describe('retire_config', () => {
  test('ends a config: nothing can be registered or changed, and anyone can destroy its enclaves', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const enclaveId = await fixture.register(configId, capId, url);
    expect(await fixture.done('retire_config', ...ofConfig(configId), '--yes')).toMatchObject({
      status: 'done',
    });
    expect(await fixture.done('retire_config', ...ofConfig(configId), '--yes')).toMatchObject({
      status: 'unchanged',
    });
    const before = countSent();
    const { url: otherUrl } = await startServer({ nsm: fixture.nsm });
    for (const args of [
      ['register_enclave', ...registrationArguments(otherUrl)],
      ['update_pcrs', ...ofConfig(configId), '--pcrs', fixture.file('other.pcrs')],
      ['rotate', ...ofConfig(configId), otherUrl, '--pcrs', fixture.file('dev.pcrs'), ...root],
      ['update_config', ...ofConfig(configId), '--name', 'again'],
      ['add_registrar', ...ofConfig(configId), fixture.address],
    ]) {
      const [name = '', ...commandArguments] = args;
      expect((await fixture.run(name, ...commandArguments)).json()).toMatchObject({
        code: 'WOULD_ABORT',
        error: expect.stringContaining('permanently retired'),
      });
    }
    expect(countSent()).toBe(before);
    const status = await fixture.run('status', '--config', configId, url, ...root);
    expect(status.json()).toMatchObject({
      config: { isRetired: true },
      answering: [{ registration: 'registered' }],
    });
    expect(status.exit).toBe(1);
    const destroyed = await fixture.done('destroy_enclave', '--enclave-package', PACKAGE, enclaveId);
    expect(destroyed).not.toHaveProperty('capability');
  });

  test('is not attempted without a terminal or --yes: exit 2', async () => {
    const before = fixture.node.calls.length;
    const refused = await fixture.run('retire_config', ...ofConfig(configId));
    expect([refused.exit, refused.json()]).toEqual([
      2,
      { status: 'failed', code: 'NOT_CONFIRMED', error: expect.stringContaining('pass --yes') },
    ]);
    expect(fixture.node.calls).toHaveLength(before);
    // Neither flag sends a transaction.
    for (const trial of ['--dry-run', '--unsigned']) {
      expect(await fixture.done('retire_config', ...ofConfig(configId), trial)).toMatchObject({
        status: trial.slice(2),
      });
    }
  });

  test.each([
    ['yes', 0],
    [' yes\r', 0],
    ['y', 2],
    ['', 2],
    ['no', 2],
  ])('asks on a terminal; after the answer %j, it exits with %i', async (typed, exit) => {
    const questions: string[] = [];
    const io = {
      log() {},
      error() {},
      stdin: () => '',
      ask: async (question: string) => {
        questions.push(question);
        return typed;
      },
    };
    const before = countSent();
    const argv = [...ofConfig(configId), '--rpc-url', fixture.node.url];
    const env = { SUI_PRIVATE_KEY: fixture.admin.getSecretKey() };
    expect(await main(argv, env, io)).toBe(exit);
    expect(questions).toEqual([expect.stringMatching(`^Retire the config "weather" \\(${configId}\\)`)]);
    expect(countSent()).toBe(before + (exit === 0 ? 1 : 0));
    // A retired config needs no confirmation.
    if (exit === 0) expect(await main(argv, env, io)).toBe(0);
    expect(questions).toHaveLength(1);
  });

  test('is refused if the sender does not own the capability', async () => {
    const stranger = new Ed25519Keypair();
    fixture.node.ledger.give(stranger.toSuiAddress(), 1_000_000_000n);
    const env = { SUI_PRIVATE_KEY: stranger.getSecretKey() };
    const args = [...ofConfig(configId), '--yes', '--rpc-url', fixture.node.url, '--json'];
    expect((await script('retire_config', args, env)).json()).toMatchObject({ code: 'SUI_NODE_REFUSED' });
  });
});
