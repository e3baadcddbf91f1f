/**
 * Tests commands for a package whose upgrades add types. Each type has the id of the version that introduced
 * it.
 */
import { readFileSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  compileModule,
  enclaveModules,
  type Lineage,
  publishLineage,
  upgradeLineage,
} from '../../devnet/package_lineage.ts';
import { startWeather } from '../../server/support.ts';
import { ChainFixture, ofApplication, ofConfig } from './chain_fixture.ts';

const APP = `module own::app;
public struct APP has drop {}
#[allow(lint(share_owned))]
fun init(otw: APP, ctx: &mut TxContext) {
    transfer::public_transfer(sui::package::claim(otw, ctx), ctx.sender())
}
`;
const recordFunction = (name: string, witness: string, object = '') => `
public fun ${name}(
    location: std::string::String,
    temperature: u64,
    timestamp_ms: u64,
    sig: &vector<u8>,
    ${object}
    enclave: &enclave::enclave::Enclave<${witness}>,
    config: &enclave::enclave::EnclaveConfig<${witness}>,
    clock: &sui::clock::Clock,
    ctx: &mut TxContext,
): Record {
    let reading = Reading { location, temperature };
    enclave.assert_signed(config, clock, 3600000, 0, timestamp_ms, reading, sig);
    sui::event::emit(Recorded { temperature });
    Record { id: object::new(ctx), temperature }
}
`;
const APP_2 = `${APP}
public struct Later has drop {}
public struct Reading has copy, drop { location: std::string::String, temperature: u64 }
public struct Recorded has copy, drop { temperature: u64 }
public struct Record has key, store { id: UID, temperature: u64 }
${recordFunction('record', 'Later')}`;
const APP_3 = `${APP_2}
public struct Third has drop {}
${recordFunction('record_third', 'Third', '_before: &Record,')}
public fun open_third(
    _cap: &enclave::enclave::EnclaveCap<Third>,
    _config: &enclave::enclave::EnclaveConfig<Third>,
    _before: &Record,
) {}
`;

/**
 * The parameter says whether the first version of the package contains `enclave::enclave`. Otherwise, the
 * second version adds it.
 */
describe.each([true, false])('a package with move/enclave from its first version on: %j', (isFirst) => {
  let fixture: ChainFixture;
  let versions: readonly Lineage[];
  let publisher: string;
  const configs = new Map<string, string>();

  beforeAll(async () => {
    fixture = await ChainFixture.start();
    const enclave = await enclaveModules();
    const [first, second, third] = [
      await compileModule(APP),
      await compileModule(APP_2),
      await compileModule(APP_3),
    ];
    const firstLineage = await publishLineage(fixture, [...(isFirst ? enclave : []), ...first]);
    const secondLineage = await upgradeLineage(fixture, firstLineage, [...enclave, ...second]);
    const thirdLineage = await upgradeLineage(fixture, secondLineage, [...enclave, ...third]);
    versions = [firstLineage, secondLineage, thirdLineage];
    publisher = firstLineage.created.find(({ type }) => type.endsWith('::package::Publisher'))?.id ?? '';
  });
  afterAll(() => fixture.close());

  const id = (version: number) => versions[version - 1]?.packageId ?? '';
  const pcrs = () => ['--pcrs', fixture.file('dev.pcrs')];
  const root = () => ['--root', fixture.file('root.pem')];

  test.each([
    ['Later', 2, 2],
    ['Third', 3, 3],
    // Here, the id of a later version names the types of an earlier version.
    ['Later', 3, 2],
    ['APP', 3, 1],
  ])('create_config for %s by version %i names the type of version %i', async (witness, version, origin) => {
    const idArguments = [...ofApplication(id(version), id(version), 'app', witness), witness];
    const created = await fixture.done('create_config', ...idArguments, '--publisher', publisher, ...pcrs());
    expect(created['application']).toBe(`${id(origin)}::app::${witness}`);
    const { owner, type } = fixture.node.ledger.objects.get(String(created['config'])) ?? {};
    expect([owner?.kind, type]).toEqual([
      'shared',
      `${id(isFirst ? 1 : 2)}::enclave::EnclaveConfig<${id(origin)}::app::${witness}>`,
    ]);
    const earlierConfig = configs.get(witness);
    configs.set(witness, String(created['config']));
    // The sender now owns one capability, or several.
    const listed = await fixture.run('create_config', ...idArguments, ...pcrs());
    if (earlierConfig === undefined)
      expect(listed.json()).toMatchObject({ status: 'done', capability: created['capability'] });
    else
      expect(listed.json()).toMatchObject({ code: 'CAPABILITY', error: expect.stringContaining('several') });
  });

  test('each type of a module has an entry of its own in the deployment file', async () => {
    const file = fixture.file('deployments/localnet.json');
    const read = () => JSON.parse(readFileSync(file, 'utf8')).applications;
    const create = (witness: string, ...args: string[]) =>
      fixture.done(
        ...([
          'create_config',
          ...ofApplication(id(3), id(3), 'app', witness),
          witness,
          '--publisher',
          publisher,
        ] as const),
        ...pcrs(),
        '--network',
        'localnet',
        ...args,
      );
    const app = await create('APP');
    const entry = read();
    expect(entry).toMatchObject({ app: { original: id(1), witness: 'APP', config: { id: app['config'] } } });
    expect((await create('Later'))['notes']).toContainEqual(
      expect.stringContaining('it has another application app: name this one by --app'),
    );
    expect(read()).toEqual(entry);
    const later = await create('Later', '--app', 'later');
    expect(read()).toMatchObject({
      ...entry,
      later: { original: id(1), witness: 'Later', config: { id: later['config'] } },
    });
    expect(await create('Later', '--app', 'later')).toMatchObject({
      status: 'unchanged',
      config: later['config'],
    });
    rmSync(file);
  });

  test('create_config waits until the node lists the new capability', async () => {
    const idArguments = [...ofApplication(id(3), id(3), 'app', 'Third'), 'main'];
    fixture.node.listingLagMs = 200;
    const created = await fixture.done('create_config', ...idArguments, '--publisher', publisher, ...pcrs());
    fixture.node.listingLagMs = 0;
    expect(created['notes']).toBeUndefined();
    // The new capability is the second one. Without it, the first would count as the only one.
    expect((await fixture.run('create_config', ...idArguments, ...pcrs())).json()).toMatchObject({
      code: 'CAPABILITY',
      error: expect.stringContaining(String(created['capability'])),
    });
  });

  test('a type that the package does not have is reported before anything is sent', async () => {
    const sent = fixture.node.ledger.executed.length;
    for (const [version, witness] of [
      [1, 'Later'],
      [2, 'Third'],
      [3, 'Fourth'],
    ] as const) {
      const idArguments = [
        ...ofApplication(id(3), id(version), 'app', witness),
        'main',
        '--publisher',
        publisher,
      ];
      expect((await fixture.run('create_config', ...idArguments, ...pcrs())).json()).toMatchObject({
        code: 'SUI_OBJECT_TYPE',
        error: expect.stringContaining(`app::${witness}`),
      });
    }
    expect(fixture.node.ledger.executed).toHaveLength(sent);
  });

  test('enclaves are registered for new types, and functions take them', async () => {
    const { server } = await startWeather({ nsm: fixture.nsm });
    const { url } = server;
    for (const [witness, version] of [
      ['Later', 2],
      ['Third', 3],
      ['APP', 3],
    ] as const) {
      const idArguments = [id(version), id(version), configs.get(witness) ?? '', url, 'app', witness];
      expect(await fixture.done('register_enclave', ...idArguments, ...root())).toMatchObject({
        status: 'done',
      });
    }
    const later = [id(3), id(3), configs.get('Later') ?? '', url, 'app', 'Later'];
    const again = await fixture.done('register_enclave', ...later, ...root());
    expect(again).toMatchObject({ status: 'unchanged' });

    const submitArguments = ['--url', url, '--body', '{"payload":{"location":"Oslo"}}', ...root()];
    const submit = (target: string, witness: string, ...args: string[]) =>
      fixture.run('submit', target, '--config', configs.get(witness) ?? '', ...submitArguments, ...args);
    const record = { id: expect.stringMatching(/^0x/), type: `${id(2)}::app::Record` };
    const first = (await submit(`${id(2)}::app::record`, 'Later')).json();
    expect(first).toMatchObject({ status: 'done', created: [record] });
    const [{ id: recordId }] = first['created'] as [{ id: string }];
    const third = `${id(3)}::app::record_third`;
    expect((await submit(third, 'Third')).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining(`in this order: ${id(2)}::app::Record`),
    });
    const created = (await submit(third, 'Third', '--object', recordId)).json();
    expect(created).toMatchObject({ status: 'done', created: [record] });
    const open = (witness: string) => {
      const idArguments = ['--config', configs.get(witness) ?? '', '--object', recordId];
      return fixture.run('call', `${id(3)}::app::open_third`, ...idArguments);
    };
    expect((await open('Third')).json()).toMatchObject({ status: 'done', objects: [recordId] });
    expect((await open('Later')).json()).toMatchObject({
      code: 'SUI_OBJECT_TYPE',
      error: expect.stringContaining(`EnclaveConfig<${id(3)}::app::Third>`),
    });
    expect((await submit(`${id(3)}::app::record`, 'Third')).json()).toMatchObject({
      code: 'SUI_OBJECT_TYPE',
      error: expect.stringContaining(`for ${id(2)}::app::Later, but it is for ${id(3)}::app::Third`),
    });
    await fixture.done('destroy_enclave', '--enclave-package', id(3), String(again['enclave']));
  });

  test('objects of another package are still refused', async () => {
    const capId = fixture.publish();
    const otherConfig = await fixture.config(capId);
    for (const version of [1, 2, 3]) {
      expect((await fixture.run('end_overlap', ...ofConfig(otherConfig, id(version)))).json()).toMatchObject({
        code: 'SUI_OBJECT_TYPE',
      });
    }
    for (const command of ['end_overlap', 'status']) {
      const config = configs.get('Later') ?? '';
      const idArguments = command === 'status' ? ['--config', config] : ofConfig(config, id(3));
      expect((await fixture.run(command, ...idArguments)).exit, command).toBe(0);
    }
  });
});
