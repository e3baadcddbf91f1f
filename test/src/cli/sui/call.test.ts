/** `sui-enclave call`: an admin calls functions of a contract, such as one that creates a feed. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Application } from '../../../../src/cli/sui/deployments.ts';
import { publishLineage } from '../../devnet/package_lineage.ts';
import { ChainFixture, ofApplication, ofConfig } from './chain_fixture.ts';
import { pricesModules } from './prices_package.ts';
import { script } from './run_script.ts';

// The first test of the file waits for the compiler.
vi.setConfig({ hookTimeout: 120_000 });

const ID = expect.stringMatching(/^0x[0-9a-f]{64}$/);

let fixture: ChainFixture;
let packageId: string;
let publisher: string;
/** Content of the deployment file: the application has a config, and no objects. */
let initialContent: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  const published = await publishLineage(fixture, await pricesModules());
  packageId = published.packageId;
  publisher = published.created.find(({ type }) => type.endsWith('::package::Publisher'))?.id ?? '';
  await createConfig('PRICES', '--network', 'localnet');
  initialContent = readFileSync(file(), 'utf8');
});
afterAll(() => fixture.close());
beforeEach(() => writeFileSync(file(), initialContent));

const file = () => fixture.file('deployments/localnet.json');
const readEntry = (): Application => JSON.parse(readFileSync(file(), 'utf8')).applications.prices;
const countSent = () => fixture.node.ledger.executed.length;
const typeOf = (id: string) => fixture.node.ledger.objects.get(id)?.type;
const feedType = () => `${packageId}::feed::Feed<${packageId}::prices::PRICES>`;

/** Creates a config with a capability of its own. */
async function createConfig(witness: string, ...args: string[]): Promise<{ config: string; cap: string }> {
  const application = ofApplication(packageId, packageId, 'prices', witness);
  const options = ['main', '--publisher', publisher, '--pcrs', fixture.file('dev.pcrs'), ...args];
  const { config, capability } = await fixture.done('create_config', ...application, ...options);
  return { config: String(config), cap: String(capability) };
}

/** Calls a function with the ids of the deployment file. */
const call = async (name: string, ...args: string[]) =>
  (await fixture.run('call', name, '--network', 'localnet', ...args)).json();

describe('a function of the admin', () => {
  test('creates a feed, and records it in the deployment file', async () => {
    const { config, capability } = readEntry();
    const done = await call('prices::open');
    const feed = { id: ID, type: feedType() };
    expect(done).toMatchObject({
      status: 'done',
      capability,
      config: config?.id,
      objects: [],
      created: [feed],
      notes: [expect.stringMatching(/^Recorded in .*localnet\.json\.$/)],
    });
    expect(readEntry()).toEqual({
      ...JSON.parse(initialContent).applications.prices,
      objects: done['created'],
    });
    const [{ id } = { id: '' }] = readEntry().objects ?? [];
    expect(done['shared']).toEqual([id]);
    expect(fixture.node.ledger.objects.get(id)?.owner.kind).toBe('shared');
  });

  test('is not called a second time without --again', async () => {
    await call('prices::open');
    const contentBefore = readFileSync(file(), 'utf8');
    const count = countSent();
    for (const flags of [[], ['--dry-run'], ['--unsigned']]) {
      expect(await call('prices::open', ...flags)).toMatchObject({
        code: 'OBJECT_EXISTS',
        error: expect.stringContaining(`another ${feedType()}`),
      });
    }
    expect([countSent(), readFileSync(file(), 'utf8')]).toEqual([count, contentBefore]);
    expect(await call('prices::open', '--again')).toMatchObject({ status: 'done' });
    expect(readEntry().objects?.map(({ type }) => type)).toEqual([feedType(), feedType()]);
    expect(new Set(readEntry().objects?.map(({ id }) => id)).size).toBe(2);
  });

  test('takes the clock, and the object of the deployment file that has its type', async () => {
    await call('prices::open');
    const [feed] = readEntry().objects ?? [];
    const done = await call('prices::open_desk');
    expect(done).toMatchObject({ status: 'done', objects: [feed?.id] });
    expect(readEntry().objects?.map(({ type }) => type)).toEqual([feedType(), `${packageId}::prices::Desk`]);
    // This entry function is not public, and creates nothing. Nothing is recorded, and the call may be
    // repeated.
    const contentBefore = readFileSync(file(), 'utf8');
    for (const _ of [1, 2])
      expect(await call('prices::touch')).toMatchObject({ status: 'done', created: [] });
    expect(readFileSync(file(), 'utf8')).toBe(contentBefore);
  });

  test('may be generic; the sender gets the object that it returns', async () => {
    await call('prices::open');
    const ticket = { id: ID, type: `${packageId}::prices::Ticket` };
    const done = await call('prices::enter');
    expect(done).toMatchObject({ status: 'done', created: [ticket], shared: [] });
    const [{ id }] = done['created'] as [{ id: string }];
    expect(fixture.node.ledger.objects.get(id)?.owner).toEqual({ kind: 'address', address: fixture.address });
    // An owned object is not recorded, so it does not prevent a second call.
    expect(await call('prices::enter')).toMatchObject({ status: 'done' });
    expect(readEntry().objects).toHaveLength(1);
  });

  test('that serves any application takes the config of the capability, and a note warns of a retired config', async () => {
    const { config, cap } = await createConfig('Coins');
    const ids = ['--cap', cap, '--config', config];
    const done = await call('prices::check_in', ...ids);
    expect(done).toMatchObject({ status: 'done', capability: cap, config });
    expect(done).not.toHaveProperty('notes');
    expect(await call('prices::check_in', '--config', config)).toMatchObject({ code: 'CAPABILITY' });
    await fixture.done('retire_config', ...ofConfig(config, packageId), '--yes');
    expect(await call('prices::check_in', ...ids)).toMatchObject({
      status: 'done',
      notes: [`WARNING: the config ${config} is permanently retired.`],
    });
  });

  test('takes the objects of --object instead of the objects in the file', async () => {
    await call('prices::open');
    await call('prices::open', '--again');
    const [, second] = readEntry().objects ?? [];
    expect(await call('prices::open_desk')).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining(`1 object by --object, in this order: ${feedType()}`),
    });
    expect(await call('prices::open_desk', '--object', second?.id ?? '')).toMatchObject({ status: 'done' });
    const twice = ['--object', second?.id ?? '', '--object', second?.id ?? ''];
    expect(await call('prices::open_desk', ...twice, '--again')).toMatchObject({ code: 'USAGE' });
  });

  test('is only simulated by --dry-run, and not sent by --unsigned', async () => {
    const count = countSent();
    expect(await call('prices::open', '--dry-run')).toMatchObject({
      status: 'dry-run',
      plan: [expect.stringMatching(/^MoveCall 0x\w+::prices::open\(0x\w+, 0x\w+\)$/)],
      creates: [{ type: feedType(), shared: true }],
    });
    expect(await call('prices::open', '--unsigned')).toMatchObject({
      status: 'unsigned',
      creates: [{ type: feedType(), shared: true }],
      notes: expect.arrayContaining([expect.stringContaining('was not written: record the ids there')]),
    });
    expect([countSent(), readFileSync(file(), 'utf8')]).toEqual([count, initialContent]);
  });
});

describe('without an entry in the deployment file', () => {
  const callByName = (...args: string[]) => fixture.run('call', `${packageId}::prices::open`, ...args);

  test('a call needs the ids of the package, the capability and the config', async () => {
    const { config, capability } = readEntry();
    const ids = ['--cap', capability ?? '', '--config', config?.id ?? ''];
    rmSync(file());
    expect((await callByName(...ids)).json()).toMatchObject({
      status: 'done',
      created: [{ type: feedType() }],
    });
    expect(existsSync(file())).toBe(false);
    const unrecordedCall = (await callByName(...ids, '--network', 'localnet')).json();
    expect(unrecordedCall).toMatchObject({
      status: 'done',
      notes: [expect.stringContaining(`no application there has the package ${packageId}`)],
    });
    expect((await callByName('--cap', capability ?? '')).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('give --config'),
    });
    expect(await call('prices::open')).toMatchObject({ code: 'DEPLOYMENT' });
    expect(await call(`${packageId}::prices::open`)).toMatchObject({ code: 'DEPLOYMENT' });
    const app = [...ids, '--network', 'localnet', '--app', 'prices'];
    expect((await callByName(...app)).json()).toMatchObject({ code: 'DEPLOYMENT' });
  });

  test('a call without a package needs --network', async () => {
    expect((await fixture.run('call', 'prices::open')).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('give the package of <function>'),
    });
  });

  test('a call uses the capability of the config, or else the only one that the sender owns', async () => {
    const { config, capability } = readEntry();
    const coins = await createConfig('Coins');
    rmSync(file());
    const opened = (await callByName('--config', config?.id ?? '')).json();
    expect(opened).toMatchObject({ status: 'done', capability });
    expect((await callByName('--config', coins.config)).json()).toMatchObject({ code: 'SUI_OBJECT_TYPE' });
    const [feed = ''] = opened['shared'] as string[];
    const deskCall = await fixture.run('call', `${packageId}::prices::open_desk`, '--object', feed);
    expect(deskCall.json()).toMatchObject({ status: 'done', capability });
  });

  test('a generic function needs the id of its capability', async () => {
    rmSync(file());
    const generic = await fixture.run('call', `${packageId}::prices::enter`);
    expect(generic.json()).toMatchObject({ code: 'USAGE', error: expect.stringContaining('give --cap') });
  });
});

describe('a function is refused', () => {
  let count: number;
  beforeEach(() => {
    count = countSent();
  });
  afterEach(() => {
    expect([countSent(), readFileSync(file(), 'utf8')]).toEqual([count, initialContent]);
  });

  test.each([
    ['that the module does not have', 'close', 'no such public or entry function; it has open, '],
    ['that only its package may call', 'inner', 'no such public or entry function'],
    ['that takes a number', 'set_most', 'takes a value (u64)'],
    ['that takes a text', 'set_name', '::string::String)'],
    ['that takes a struct that is not an object', 'set_limits', '::prices::Limits, which is not an object'],
    ['that takes a vector', 'count', 'takes a value (vector<'],
    ['that takes an object of any type', 'hold', 'takes a value (T0)'],
    ['that consumes an object', 'tear', '::prices::Ticket by value'],
    ['that consumes the capability', 'give', '::prices::PRICES> by value'],
    ['without a capability', 'look', 'must take one EnclaveCap<T>'],
    ['of two capabilities', 'merge', 'must take one EnclaveCap<T>'],
    ['of two configs', 'compare', 'more than one EnclaveConfig<T>'],
    ['of two applications', 'mix', '::prices::Coins, and its EnclaveCap for'],
    ['that takes an enclave', 'answer', 'takes an Enclave<T>: call it by submit'],
    ['with two type parameters', 'pair', 'type parameters other than T'],
    [
      'that returns a value that can be neither dropped nor transferred',
      'promise',
      '::prices::Promise, which can be neither',
    ],
    ['that returns a reference', 'borrow', 'returns &'],
  ])('%s', async (_, name, message) => {
    const { exit, json } = await fixture.run('call', `prices::${name}`, '--network', 'localnet');
    expect(json()).toMatchObject({ code: 'FUNCTION', error: expect.stringContaining(message) });
    expect(exit).toBe(1);
  });

  test('of a module that the package or the deployment file lacks', async () => {
    expect(await call(`${packageId}::dice::roll`)).toMatchObject({ code: 'FUNCTION' });
    expect(await call('dice::roll')).toMatchObject({ code: 'DEPLOYMENT' });
    expect(await call('prices')).toMatchObject({ code: 'USAGE' });
    expect(await call(`0x${'9'.repeat(64)}::prices::open`)).toMatchObject({ code: 'DEPLOYMENT' });
  });

  test('with a config that it does not take', async () => {
    const config = readEntry().config?.id ?? '';
    expect(await call('prices::touch', '--object', config, '--config', config)).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('takes no EnclaveConfig: leave out --config'),
    });
  });

  test('with the wrong number of objects, or an object of another type', async () => {
    const config = readEntry().config?.id ?? '';
    expect(await call('prices::open', '--object', config)).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('takes 0 objects by --object, in this order: none'),
    });
    expect(await call('prices::touch')).toMatchObject({ code: 'USAGE' });
    expect(await call('prices::touch', '--object', config)).toMatchObject({
      code: 'SUI_EXECUTION',
      error: expect.stringContaining('TypeMismatch'),
    });
  });
});

describe('a capability or a config is refused', () => {
  test('of another application', async () => {
    const coins = await createConfig('Coins');
    const weatherCap = fixture.publish();
    const weatherConfig = await fixture.config(weatherCap);
    const count = countSent();
    for (const args of [
      ['--cap', coins.cap],
      ['--cap', weatherCap],
      ['--cap', publisher],
      ['--cap', packageId],
      ['--config', coins.config],
      ['--config', weatherConfig],
      ['--config', readEntry().capability ?? ''],
      ['--cap', coins.cap, '--config', coins.config],
    ]) {
      expect(await call('prices::open', ...args), args.join(' ')).toMatchObject({ code: 'SUI_OBJECT_TYPE' });
    }
    expect(await call('prices::enter', '--cap', publisher, '--object', publisher)).toMatchObject({
      code: 'SUI_OBJECT_TYPE',
    });
    expect(await call('prices::open', '--cap', `0x${'9'.repeat(64)}`)).toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
    });
    expect([countSent(), readFileSync(file(), 'utf8')]).toEqual([count, initialContent]);
  });

  test('if the config belongs to another capability of the application', async () => {
    const second = await createConfig('PRICES');
    for (const args of [
      ['--cap', second.cap],
      ['--config', second.config],
    ]) {
      expect(await call('prices::open', ...args)).toMatchObject({
        code: 'CAPABILITY',
        error: expect.stringContaining('belongs to the capability'),
      });
    }
    const both = await call('prices::open', '--cap', second.cap, '--config', second.config);
    expect(both).toMatchObject({ status: 'done', capability: second.cap, config: second.config });
    const id = String((both['shared'] as string[])[0]);
    expect([readEntry().objects?.[0]?.id, typeOf(id)]).toEqual([id, feedType()]);
    expect((await fixture.run('call', `${packageId}::prices::open_desk`)).json()).toMatchObject({
      code: 'CAPABILITY',
      error: expect.stringContaining('several'),
    });
  });

  test('if the sender does not own it', async () => {
    const stranger = new Ed25519Keypair();
    fixture.node.ledger.give(stranger.toSuiAddress(), 10_000_000_000n);
    const count = countSent();
    const args = ['prices::open', '--network', 'localnet', '--rpc-url', fixture.node.url, '--json'];
    const env = { SUI_PRIVATE_KEY: stranger.getSecretKey(), DEPLOYMENTS: fixture.file('deployments') };
    const { exit, json } = await script('call', args, env);
    expect([exit, json()['code']]).toEqual([1, 'SUI_NODE_REFUSED']);
    expect([countSent(), readFileSync(file(), 'utf8')]).toEqual([count, initialContent]);
  });

  test('if the deployment file is for another chain', async () => {
    writeFileSync(file(), initialContent.replace('2a2a2a2a', '12345678'));
    expect(await call('prices::open')).toMatchObject({
      code: 'DEPLOYMENT',
      error: expect.stringContaining('is of the chain 12345678'),
    });
  });
});
