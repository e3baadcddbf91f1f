/** Checks that the loopback node behaves like a validator and a full node of Sui 1.63. */
import { parseTransactionEffectsBcs } from '@mysten/sui/client';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { decode, encode } from 'cborg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  applicationType,
  createEnclaveConfig,
  destroyEnclave,
  newEnclaveConfig,
  parsePcrs,
  registerEnclave,
  shareConfig,
  updatePcrs,
} from '../../../src/library/sui/index.ts';
import { ChainFixture, PACKAGE } from '../cli/sui/chain_fixture.ts';

const CALL = { enclavePackage: PACKAGE, application: applicationType(PACKAGE, 'weather', 'WEATHER') };

let fixture: ChainFixture;
let client: SuiGrpcClient;
let capId: string;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'localnet', baseUrl: fixture.node.url });
  capId = fixture.publish();
});
afterEach(() => fixture.close());

const creation = () => ({ ...CALL, capId, name: 'weather', image: parsePcrs(fixture.nsm.pcrsFile()) });

async function buildSigned(add: (tx: Transaction) => void) {
  const tx = new Transaction();
  tx.setSender(fixture.address);
  add(tx);
  const transaction = await tx.build({ client });
  const { signature } = await fixture.admin.signTransaction(transaction);
  return { tx, transaction, signatures: [signature] };
}

async function send(add: (tx: Transaction) => void) {
  const { tx, transaction, signatures } = await buildSigned(add);
  const include = { effects: true, events: true } as const;
  const { Transaction: done } = await client.executeTransaction({ transaction, signatures, include });
  if (done === undefined) throw new Error('the transaction failed');
  const { gasUsed, changedObjects } = done.effects;
  const [computation, storage, rebate] = [
    gasUsed.computationCost,
    gasUsed.storageCost,
    gasUsed.storageRebate,
  ].map(Number);
  return {
    ...done,
    budget: Number(tx.getData().gasData.budget),
    gas: [computation, storage, rebate].map((mist = 0) => mist / 1e9),
    net: ((computation ?? 0) + (storage ?? 0) - (rebate ?? 0)) / 1e9,
    created: changedObjects
      .filter(({ idOperation }) => idOperation === 'Created')
      .map(({ objectId }) => objectId),
  };
}

test('a config must be shared in the transaction that creates it', async () => {
  const unshared = buildSigned((tx) => void newEnclaveConfig(tx, creation()));
  await expect(unshared).rejects.toThrow(/UnusedValueWithoutDrop \{ result_idx: 1, secondary_idx: 0 \}/);
  await buildSigned((tx) => shareConfig(tx, { ...CALL, config: newEnclaveConfig(tx, creation()) }));
});

test('the capability of another application is refused, since it has the wrong type', async () => {
  const application = applicationType(PACKAGE, 'source', 'Source');
  const creating = buildSigned((tx) => createEnclaveConfig(tx, { ...creation(), application }));
  await expect(creating).rejects.toThrow(/CommandArgumentError \{ arg_idx: 0, kind: TypeMismatch \}/);
});

test('the answer to an execution has its events, and the epoch of the system state', async () => {
  const { events, epoch } = await send((tx) => createEnclaveConfig(tx, creation()));
  expect(events).toMatchObject([
    {
      module: 'enclave',
      sender: fixture.address,
      eventType: expect.stringContaining('::EnclaveConfigCreated<'),
    },
  ]);
  const { systemState } = await client.core.getCurrentSystemState();
  expect(epoch).toBe(systemState.epoch);
});

test('the answer to an execution has its signatures, and effects that are the same in BCS', async () => {
  const { effects, signatures, digest } = await send((tx) => createEnclaveConfig(tx, creation()));
  expect(signatures).toHaveLength(1);
  const { changedObjects, ...bcsEffects } = parseTransactionEffectsBcs(effects.bcs ?? new Uint8Array());
  expect(bcsEffects).toMatchObject({
    transactionDigest: digest,
    status: effects.status,
    gasUsed: effects.gasUsed,
  });
  const listOperations = (changed: typeof changedObjects) =>
    changed.map(({ objectId, idOperation }) => ({ objectId, idOperation }));
  expect(listOperations(changedObjects)).toEqual(listOperations(effects.changedObjects));
  const created = changedObjects.filter(({ idOperation }) => idOperation === 'Created');
  expect(created.length).toBeGreaterThan(0);
  for (const { objectId, outputDigest } of created) {
    expect((await client.getObject({ objectId })).object.digest).toBe(outputDigest);
  }
});

test('an owned object that is only read gets a new version', async () => {
  const readVersion = () => fixture.node.ledger.objects.get(capId)?.version ?? 0n;
  const before = readVersion();
  await send((tx) => createEnclaveConfig(tx, creation()));
  expect(readVersion()).toBeGreaterThan(before);
});

test('listings of owned objects may lag behind other reads', async () => {
  fixture.node.listingLagMs = 60_000;
  const before = fixture.node.ledger.objects.get(capId)?.version;
  await send((tx) => createEnclaveConfig(tx, creation()));
  const { objects } = await client.listOwnedObjects({ owner: fixture.address });
  expect(objects.find(({ objectId }) => objectId === capId)?.version).toBe(String(before));
  const { object } = await client.getObject({ objectId: capId });
  expect(BigInt(object.version)).toBeGreaterThan(before ?? 0n);
});

test('if two transactions use the same object, one is executed and the other is refused', async () => {
  const transactions = await Promise.all(
    [0, 1].map(() => buildSigned((tx) => createEnclaveConfig(tx, creation()))),
  );
  const { executor, calls } = fixture.node;
  const { engine } = executor;
  // The first transaction waits for the second.
  executor.engine = async (execution) => {
    const sends = () => calls.filter((name) => name === 'ExecuteTransaction').length;
    await expect.poll(sends).toBe(2);
    return await engine(execution);
  };
  const executions = transactions.map(({ transaction, signatures }) =>
    client.executeTransaction({ transaction, signatures }),
  );
  const settled = await Promise.allSettled(executions);
  expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(settled.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { message: expect.stringContaining('already locked by a different transaction') },
  });
});

async function attestation(): Promise<Uint8Array> {
  const public_key = new Uint8Array(32).fill(9);
  const answer = decode(await fixture.nsm.transact(encode({ Attestation: { public_key } })));
  return answer.Attestation.document;
}

/** Storage price in SUI of a registrar's id in a config. */
const REGISTRAR = (32 * 7600) / 1e9;

/** Measured costs in SUI: computation, storage, rebate and the proposed budget, rounded to the last digit. */
test.each([
  ['create_config', [0.001, 0.005996, 0.002663, 0.1593]],
  ['register_enclave', [0.014, 0.010784, 0.005936, 0.1738]],
  // The config was measured with a registrar, whose 32 bytes are subtracted.
  ['update_pcrs', [0.001, 0.00624 - REGISTRAR, 0.006177 - 0.99 * REGISTRAR, 0.156]],
])('the gas of %s is within 3 %% of the measured gas', async (name, measured) => {
  const creationAnswer = await send((tx) => createEnclaveConfig(tx, creation()));
  const [configId = ''] = creationAnswer.created;
  const call = { ...CALL, configId, capId };
  const document = await attestation();
  const image = parsePcrs(fixture.nsm.pcrsFile().replace(/^./gm, '7'));
  const commands = {
    create_config: async () => creationAnswer,
    register_enclave: () => send((tx) => registerEnclave(tx, { ...call, attestation: document })),
    update_pcrs: () => send((tx) => updatePcrs(tx, { ...call, image })),
  };
  const { gas, budget } = await commands[name as keyof typeof commands]();
  for (const [index, figure] of [...gas, budget / 1e9].entries()) {
    const expected = measured[index] ?? 0;
    expect(Math.abs(figure - expected) / expected, `${figure} for ${expected}`).toBeLessThan(0.03);
  }
});

test('an object has its fields in JSON if the caller requests JSON', async () => {
  const [configId = ''] = (await send((tx) => createEnclaveConfig(tx, creation()))).created;
  const { pcr0 } = creation().image;
  const read = async (objectId: string, json: boolean) =>
    (await client.core.getObject({ objectId, include: { json } })).object.json;
  expect(await read(configId, true)).toEqual({
    id: configId,
    name: 'weather',
    pcrs: expect.objectContaining({ pos0: Buffer.from(pcr0, 'hex').toString('base64') }),
    source: null,
    capability_id: capId,
    config_version: '0',
    overlap: null,
    max_key_age_ms: null,
    registrars: { contents: [] },
    is_retired: false,
    package_version: expect.any(String),
    is_open: false,
  });
  expect(await read(configId, false)).toBeUndefined();
  expect(await read('0x6', true)).toMatchObject({ timestamp_ms: expect.stringMatching(/^\d{13}$/) });
  const { objects } = await client.core.listOwnedObjects({ owner: fixture.address, include: { json: true } });
  expect(objects.map(({ json }) => json)).toContainEqual({
    id: expect.any(String),
    balance: expect.stringMatching(/^\d+$/),
  });
});

test('an object whose content does not fit its type has no JSON', async () => {
  fixture.node.lie = (object) => ({ ...object, content: object.content.subarray(1) });
  const { object } = await client.core.getObject({ objectId: capId, include: { json: true } });
  expect(object.json).toBeNull();
});

test('destroying an enclave returns the measured rebate', async () => {
  const [configId = ''] = (await send((tx) => createEnclaveConfig(tx, creation()))).created;
  const call = { ...CALL, configId, capId };
  const document = await attestation();
  const { created } = await send((tx) => registerEnclave(tx, { ...call, attestation: document }));
  const isEnclave = (id: string) => fixture.node.ledger.objects.get(id)?.type.includes('::Enclave<');
  const enclaveId = created.find(isEnclave) ?? '';
  const { net } = await send((tx) => destroyEnclave(tx, { ...call, enclaveId }));
  expect(Math.abs(net + 0.00126)).toBeLessThan(0.00126 * 0.03);
});

test('a web page may read the list of transactions, objects and events, but only if the node admits web pages', async () => {
  const [configId = ''] = (await send((tx) => createEnclaveConfig(tx, creation()))).created;
  await expect(
    send((tx) => updatePcrs(tx, { ...CALL, configId: capId, capId, image: creation().image })),
  ).rejects.toThrow();
  const url = `${fixture.node.url}/model/ledger`;
  expect((await fetch(url)).status).toBe(415);
  fixture.node.servesPages = true;
  const origin = 'http://localhost:5173';
  const answer = await fetch(url, { headers: { origin } });
  expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
  expect(await answer.json()).toMatchObject({
    model: true,
    counts: { transactions: 1, events: 1 },
    transactions: [
      { sender: fixture.address, calls: [`${PACKAGE}::enclave::create_enclave_config`], failure: null },
    ],
    objects: expect.arrayContaining([
      expect.objectContaining({ id: configId, kind: 'shared', owner: 'shared' }),
      expect.objectContaining({ id: capId, kind: 'address', owner: fixture.address }),
    ]),
    events: [{ type: expect.stringContaining('::enclave::EnclaveConfigCreated<'), sender: fixture.address }],
  });
});

test('a simulation reports the objects that the transaction would create, and changes nothing', async () => {
  const { transaction, signatures } = await buildSigned((tx) => createEnclaveConfig(tx, creation()));
  const include = { effects: true, objectTypes: true } as const;
  const count = fixture.node.ledger.objects.size;
  const { Transaction: simulated } = await client.core.simulateTransaction({ transaction, include });
  expect(fixture.node.ledger.objects.size).toBe(count);
  const { Transaction: done } = await client.executeTransaction({ transaction, signatures, include });
  // Ids and digests of new objects differ, since a simulation has no digest.
  const describeAll = (transaction: typeof simulated | typeof done) =>
    transaction?.effects.changedObjects
      .map(({ objectId, idOperation, outputOwner }) => [
        transaction.objectTypes[objectId],
        idOperation,
        outputOwner?.$kind,
      ])
      .sort();
  expect(describeAll(simulated)).toEqual(describeAll(done));
  expect(describeAll(simulated)).toContainEqual([
    `${PACKAGE}::enclave::EnclaveConfig<${CALL.application}>`,
    'Created',
    'Shared',
  ]);
});
