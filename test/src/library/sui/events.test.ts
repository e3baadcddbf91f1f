/**
 * Tests reading the events of a config from the loopback node, page by page. test/move/layout.test.ts tests
 * their bytes.
 */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import * as sui from '../../../../src/library/sui/index.ts';
import { ChainFixture, ofConfig, PACKAGE } from '../../cli/sui/chain_fixture.ts';
import {
  compileModule,
  type Lineage,
  publishLineage,
  send,
  upgradeLineage,
} from '../../devnet/package_lineage.ts';
import { startServer } from '../../server/support.ts';

const APPLICATION = sui.applicationType(PACKAGE, 'weather', 'WEATHER');
const contract = { enclavePackage: PACKAGE, application: APPLICATION };

let fixture: ChainFixture;
let client: SuiGrpcClient;
let capId: string;
let configId: string;
let enclaveId: string;
/** Names of all events, in the order of their transactions. */
const NAMES = ['EnclaveConfigCreated', 'EnclaveRegistered', 'PcrsUpdated', 'EnclaveDestroyed'];
const UPDATES = Array.from({ length: 6 }, () => 'PcrsUpdated');

beforeAll(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  capId = fixture.publish();
  configId = await fixture.config(capId);
});
afterAll(() => fixture.close());
afterEach(() => {
  fixture.node.faults.clear();
  fixture.node.calls.length = 0;
});

async function collectEvents<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const collected: Event[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}

test('iterateEvents yields all events of a config in order', async () => {
  const server = await startServer({ nsm: fixture.nsm });
  enclaveId = await fixture.register(configId, capId, server.url);
  await fixture.rotate(configId, capId);
  await fixture.destroy(enclaveId, configId, capId);
  for (const _ of UPDATES) await fixture.rotate(configId, capId);
  const events = await collectEvents(sui.iterateEvents(client, contract));
  expect(events.map(({ name }) => name)).toEqual([...NAMES, ...UPDATES]);
});

/** These tests read the events that the first test caused. */
describe('readEvents', () => {
  test('reads the events of one name, each with its place on the ledger', async () => {
    const page = await sui.readEvents(client, { ...contract, name: 'EnclaveRegistered' });
    const { publicKey: _, ...registered } = page.events[0]?.data ?? {};
    expect(page).toEqual({
      events: [
        {
          ...contract,
          name: 'EnclaveRegistered',
          data: expect.objectContaining({ publicKey: expect.any(Uint8Array) }),
          sender: fixture.address,
          transactionDigest: expect.stringMatching(/^\w{43,44}$/),
          eventIndex: 0,
          checkpoint: 2n,
        },
      ],
      cursor: expect.any(String),
      // The node has searched only a part of its ledger.
      hasNextPage: true,
    });
    expect(registered).toEqual({
      enclaveId,
      configId,
      configVersion: 0n,
      registeredAtMs: expect.any(BigInt),
      registeredBy: capId,
    });
    expectTypeOf(page.events[0]?.data.registeredBy).toEqualTypeOf<string | undefined>();
  });

  test('continues from a cursor, and returns every event once', async () => {
    const names: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    for (let more = true; more; pages += 1) {
      const page: sui.EventPage = await sui.readEvents(client, { ...contract, cursor, limit: 2 });
      expect(page.events.length).toBeLessThanOrEqual(2);
      names.push(...page.events.map(({ name }) => name));
      cursor = page.cursor;
      more = page.hasNextPage;
    }
    expect(names).toEqual([...NAMES, ...UPDATES]);
    expect(pages).toBe(5);
    // There is no new event, so the cursor stays. Every later event comes after it.
    expect(await sui.readEvents(client, { ...contract, cursor })).toEqual({
      events: [],
      cursor,
      hasNextPage: false,
    });
    await fixture.rotate(configId, capId);
    UPDATES.push('PcrsUpdated');
    expect((await sui.readEvents(client, { ...contract, cursor })).events).toMatchObject([
      { name: 'PcrsUpdated', data: { configId, configVersion: 8n } },
    ]);
  });

  test('starts from the newest event on request', async () => {
    const query = { ...contract, order: 'descending', limit: 1 } as const;
    const [newest] = (await sui.readEvents(client, query)).events;
    expect(newest).toMatchObject({
      name: 'PcrsUpdated',
      data: { configVersion: BigInt(UPDATES.length + 1) },
    });
    const ascending = await collectEvents(sui.iterateEvents(client, contract));
    expect(await collectEvents(sui.iterateEvents(client, { ...contract, order: 'descending' }))).toEqual(
      ascending.reverse(),
    );
  });

  test('returns no events of another application, and refuses a package that does not exist', async () => {
    const otherContract = { ...contract, application: `${PACKAGE}::dice::DICE` };
    expect(await collectEvents(sui.iterateEvents(client, otherContract))).toEqual([]);
    const enclavePackage = `0x${'c'.repeat(64)}`;
    await expect(sui.readEvents(client, { enclavePackage })).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
    });
  });

  test.each<[string, Partial<sui.EventQuery>]>([
    ['"name" must be one of EnclaveCapCreated', { name: 'toString' as never }],
    ['"order" must be', { order: 'newest' as never }],
    ['"limit" must be an integer', { limit: 0 }],
    ['the application must be a type', { application: 'weather' }],
    ['0x and 64', { enclavePackage: '0x2' }],
    ['"signal" must be an AbortSignal', { signal: {} as never }],
  ])('refuses an invalid query before it asks the node: %s', async (message, query) => {
    await expect(sui.readEvents(client, { ...contract, ...query })).rejects.toMatchObject({
      code: 'SUI_VALUE',
      message: expect.stringContaining(message),
    });
    expect(fixture.node.calls).toEqual([]);
  });

  test('reports that a node does not offer events', async () => {
    fixture.node.faults.set('ListEvents', { status: 'UNIMPLEMENTED', message: 'no such method' });
    await expect(sui.readEvents(client, contract)).rejects.toMatchObject({
      code: 'SUI_NODE_REFUSED',
      status: 'UNIMPLEMENTED',
    });
  });
});

describe('a node that answers', () => {
  const entry = {
    packageId: PACKAGE,
    module: 'enclave',
    sender: PACKAGE,
    eventType: `${PACKAGE}::enclave::ConfigRetired<${APPLICATION}>`,
    bcs: new Uint8Array(32),
    json: null,
    checkpoint: null,
    transactionDigest: 'digest',
    eventIndex: 0,
  };
  const page = { events: [entry], hasNextPage: false, startCursor: 'a', endCursor: 'a' };
  type Client = Parameters<typeof sui.readEvents>[0];
  const createClient = (answer: object) => {
    const getObject: Client['core']['getObject'] = (options) => client.core.getObject(options);
    return { core: { getObject, listEvents: async () => ({ ...page, ...answer }) } } as unknown as Client;
  };

  test('without checkpoints, as JSON-RPC does, is accepted', async () => {
    const { events } = await sui.readEvents(createClient({}), contract);
    expect(events).toMatchObject([{ name: 'ConfigRetired', checkpoint: null }]);
  });

  test.each<[string, object]>([
    ['with an event of another package', { eventType: `0x2::enclave::ConfigRetired<${APPLICATION}>` }],
    ['with an event of another module', { eventType: `${PACKAGE}::once::ConfigRetired<${APPLICATION}>` }],
    ['with an event without an application', { eventType: `${PACKAGE}::enclave::ConfigRetired` }],
    ['with an event of an unknown name', { eventType: `${PACKAGE}::enclave::Paused<${APPLICATION}>` }],
    [
      'with an event whose name was not requested',
      { eventType: `${PACKAGE}::enclave::EnclaveCapCreated<${APPLICATION}>` },
    ],
    ['with content that is too long', { bcs: new Uint8Array(33) }],
    ['with content that is too short', { bcs: new Uint8Array(31) }],
  ])('%s is not believed', async (_, change) => {
    const client = createClient({ events: [{ ...entry, ...change }] });
    await expect(sui.readEvents(client, { ...contract, name: 'ConfigRetired' })).rejects.toMatchObject({
      code: 'SUI_NODE_ANSWER',
    });
  });

  test('with the same next page again and again ends the iteration with an error', async () => {
    const endless = collectEvents(sui.iterateEvents(createClient({ hasNextPage: true }), contract));
    await expect(endless).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });
});

describe('a package whose upgrade added an event', () => {
  const ENCLAVE = `module own::enclave;
public struct APP has drop {}
public struct ConfigRetired<phantom T> has copy, drop { config_id: ID }
public fun retire(config_id: ID) { sui::event::emit(ConfigRetired<APP> { config_id }) }
`;
  const ENCLAVE_2 = `${ENCLAVE}
public struct ConfigMigrated<phantom T> has copy, drop { config_id: ID, package_version: u64 }
public fun migrate(config_id: ID) {
    sui::event::emit(ConfigMigrated<APP> { config_id, package_version: 2 })
}
`;
  let firstLineage: Lineage;
  let secondLineage: Lineage;
  beforeAll(async () => {
    firstLineage = await publishLineage(fixture, await compileModule(ENCLAVE));
    secondLineage = await upgradeLineage(fixture, firstLineage, await compileModule(ENCLAVE_2));
    await send(fixture, (tx) => {
      for (const [{ packageId }, name] of [
        [firstLineage, 'retire'],
        [secondLineage, 'retire'],
        [secondLineage, 'migrate'],
      ] as const) {
        tx.moveCall({ target: `${packageId}::enclave::${name}`, arguments: [tx.pure.id(configId)] });
      }
    });
  });

  test('lists each event under the version that introduced it, which the query need not name', async () => {
    const application = `${firstLineage.packageId}::enclave::APP`;
    const read = async (enclavePackage: string, name: 'ConfigRetired' | 'ConfigMigrated') =>
      await collectEvents(sui.iterateEvents(client, { enclavePackage, application, name }));
    const retired = {
      name: 'ConfigRetired',
      enclavePackage: firstLineage.packageId,
      application,
      data: { configId },
    };
    for (const { packageId } of [firstLineage, secondLineage]) {
      expect(await read(packageId, 'ConfigRetired')).toMatchObject([retired, retired]);
    }
    expect(await read(secondLineage.packageId, 'ConfigMigrated')).toMatchObject([
      {
        name: 'ConfigMigrated',
        enclavePackage: secondLineage.packageId,
        application,
        data: { packageVersion: 2n },
      },
    ]);
  });

  test('refuses a query that would miss events', async () => {
    await expect(
      sui.readEvents(client, { enclavePackage: firstLineage.packageId, name: 'ConfigMigrated' }),
    ).rejects.toMatchObject({
      code: 'SUI_VALUE',
      message: expect.stringContaining('pass the id of its latest version'),
    });
    await expect(sui.readEvents(client, { enclavePackage: secondLineage.packageId })).rejects.toMatchObject({
      code: 'SUI_VALUE',
      message: expect.stringContaining(
        `(${firstLineage.packageId}, ${secondLineage.packageId}): read them by their names`,
      ),
    });
  });

  test('is read once, and its events are read page by page', async () => {
    const query = { enclavePackage: secondLineage.packageId, name: 'ConfigRetired' } as const;
    const ownClient = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
    fixture.node.calls.length = 0;
    await collectEvents(sui.iterateEvents(ownClient, { ...query, limit: 1 }));
    expect(fixture.node.calls.filter((name) => name === 'BatchGetObjects')).toHaveLength(1);
  });
});

test('PcrsUpdated has the planned end of an overlap, and OverlapEnded reports an early end', async () => {
  const pcrs = ['--pcrs', fixture.file('dev.pcrs')];
  const update = await fixture.done('update_pcrs', ...ofConfig(configId), ...pcrs, '--overlap', '5');
  const overlapUntilMs = BigInt(Date.parse(String(update['overlapUntil'])));
  await fixture.done('end_overlap', ...ofConfig(configId));
  const { events } = await sui.readEvents(client, { ...contract, order: 'descending', limit: 3 });
  const configVersion = BigInt(String(update['configVersion']));
  expect(events.map(({ name, data }) => [name, data])).toEqual([
    ['OverlapEnded', { configId, configVersion }],
    ['PcrsUpdated', expect.objectContaining({ configId, configVersion, overlapUntilMs })],
    ['PcrsUpdated', expect.objectContaining({ configVersion: configVersion - 1n, overlapUntilMs: null })],
  ]);
});
