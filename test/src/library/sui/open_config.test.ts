/**
 * Tests attacks on an open config, on the loopback node's model. The attacker is a stranger who has SUI but
 * no capability. move/enclave/tests/open_tests.move tests the rules themselves.
 */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { decode, encode } from 'cborg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sui from '../../../../src/library/sui/index.ts';
import type { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { ChainFixture, PACKAGE } from '../../cli/sui/chain_fixture.ts';

const MINUTE_MS = 60_000;
const common = { enclavePackage: PACKAGE, application: sui.applicationType(PACKAGE, 'weather', 'WEATHER') };

const stranger = new Ed25519Keypair();
let fixture: ChainFixture;
let client: SuiGrpcClient;
let capId: string;
let image: sui.Image;
let configId: string;

beforeAll(async () => {
  fixture = await ChainFixture.start(undefined, new Date(Date.now() - 60 * MINUTE_MS));
  client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  fixture.node.ledger.give(stranger.toSuiAddress(), 10_000_000_000n);
  capId = fixture.publish();
  image = sui.parsePcrs(fixture.nsm.pcrsFile());
  configId = await createConfig(true);
});
afterAll(() => fixture.close());

/** Sends a transaction. @throws SuiError: MoveAbortError if it aborts, among others */
async function send(signer: Ed25519Keypair, build: (tx: Transaction) => void) {
  const transaction = new Transaction();
  build(transaction);
  transaction.setSender(signer.toSuiAddress());
  const bytes = await sui.buildTransaction(client, transaction);
  const { signature } = await signer.signTransaction(bytes);
  const include = { effects: true, events: true, objectTypes: true } as const;
  return await sui.sendTransaction(client, { transaction: bytes, signatures: [signature], include });
}

async function createConfig(isOpen: boolean): Promise<string> {
  const { effects, objectTypes } = await send(fixture.admin, (tx) =>
    sui.createEnclaveConfig(tx, { ...common, capId, name: 'weather', image, isOpen }),
  );
  const ids = effects.changedObjects.map(({ objectId }) => objectId);
  return ids.find((id) => objectTypes[id]?.includes('::enclave::EnclaveConfig<')) ?? '';
}

/** Returns a document of an enclave whose key consists of 32 such bytes. */
async function attest(nsm: EmulatedNsm, keyByte: number): Promise<Uint8Array> {
  const key = new Uint8Array(32).fill(keyByte);
  const request = encode({ Attestation: { public_key: key, user_data: null, nonce: null } });
  const { Attestation } = decode(await nsm.transact(request)) as { Attestation: { document: Uint8Array } };
  return Attestation.document;
}

function register(signer: Ed25519Keypair, attestation: Uint8Array, config = configId) {
  return send(signer, (tx) => sui.registerEnclaveAsAnyone(tx, { ...common, configId: config, attestation }));
}

async function findByKey(keyByte: number): Promise<sui.Registration> {
  return sui.findRegistration(
    client,
    await sui.readConfig(client, configId),
    new Uint8Array(32).fill(keyByte),
  );
}

describe('a stranger without a capability, under an open config,', () => {
  test('registers an enclave of the image, and the event names the config', async () => {
    expect((await sui.readConfig(client, configId)).isOpen).toBe(true);
    await register(stranger, await attest(fixture.nsm, 1));
    expect(await findByKey(1)).toMatchObject({ state: 'registered' });
    const query = { ...common, name: 'EnclaveRegistered' } as const;
    const [event] = (await sui.readEvents(client, query)).events;
    expect(event).toMatchObject({
      sender: stranger.toSuiAddress(),
      data: { configId, registeredBy: configId },
    });
    const opened = await sui.readEvents(client, { ...common, name: 'OpenConfigCreated' });
    expect(opened.events.map(({ data }) => data)).toEqual([{ configId }]);
  });

  test("can't register another image, or an enclave in debug mode", async () => {
    const otherImage = await attest(fixture.createNsm('weather', 2), 2);
    await expect(register(stranger, otherImage)).rejects.toThrow('enclave::EInvalidPCRs');
    const debug = await attest(fixture.createDebugNsm(), 2);
    await expect(register(stranger, debug)).rejects.toThrow('pcrs::EDebugPcrs');
    expect(await findByKey(2)).toMatchObject({ state: 'free' });
  });

  test("can't register an attestation of another root", async () => {
    const otherChain = await ChainFixture.start();
    try {
      await expect(register(stranger, await attest(otherChain.nsm, 2))).rejects.toThrow('nitro_attestation');
    } finally {
      otherChain.close();
    }
  });

  test("can't register an attestation that is older than 10 minutes, though the chain verifies it", async () => {
    const earlier = fixture.createNsm('weather', 1, () => Date.now() - 11 * MINUTE_MS);
    const old = await attest(earlier, 3);
    await expect(register(stranger, old)).rejects.toThrow('enclave::EDocumentTooOld');
    // The holder of the capability may register it.
    await send(fixture.admin, (tx) =>
      sui.registerEnclave(tx, { ...common, configId, capId, attestation: old }),
    );
  });

  test("can only help another operator by registering its document, and can't destroy the enclave", async () => {
    const document = await attest(fixture.nsm, 4);
    await register(stranger, document);
    const { enclaveId, state } = await findByKey(4);
    expect(state).toBe('registered');
    await expect(register(fixture.admin, document)).rejects.toThrow('enclave::EAlreadyRegistered');
    expect(await sui.readEnclave(client, enclaveId)).toMatchObject({
      publicKey: new Uint8Array(32).fill(4),
      configId,
      configVersion: 0n,
    });
    const destroy = (tx: Transaction) => sui.destroyOldEnclave(tx, { ...common, configId, enclaveId });
    await expect(send(stranger, destroy)).rejects.toThrow('enclave::ENotStale');
    // The capability belongs to the admin, so a node builds no transaction of the stranger with it.
    const byCap = (tx: Transaction) => sui.destroyEnclave(tx, { ...common, configId, capId, enclaveId });
    await expect(send(stranger, byCap)).rejects.toThrow();
    expect(await findByKey(4)).toMatchObject({ state: 'registered' });
  });

  test("can't register and destroy an enclave in one transaction", async () => {
    const attestation = await attest(fixture.nsm, 5);
    const address = sui.enclaveAddress(
      await sui.readConfig(client, configId),
      0n,
      new Uint8Array(32).fill(5),
    );
    const both = (tx: Transaction) => {
      sui.registerEnclaveAsAnyone(tx, { ...common, configId, attestation });
      sui.destroyOldEnclave(tx, { ...common, configId, enclaveId: address });
    };
    await expect(send(stranger, both)).rejects.toMatchObject({ code: 'SUI_OBJECT_NOT_FOUND' });
    expect(await findByKey(5)).toMatchObject({ state: 'free' });
  });

  test("can't register an enclave under a config that is not open", async () => {
    const closed = await createConfig(false);
    const document = await attest(fixture.nsm, 6);
    await expect(register(stranger, document, closed)).rejects.toThrow('enclave::ENotOpen');
    await expect(register(fixture.admin, document, closed)).rejects.toThrow('enclave::ENotOpen');
  });
});

test('a flood of enclaves costs the stranger SUI, and changes nothing for others', async () => {
  const size = 12;
  const documents: Uint8Array[] = [];
  for (let index = 0; index < size; index += 1) documents.push(await attest(fixture.nsm, 0x20 + index));
  const { effects } = await send(stranger, (tx) => {
    for (const document of documents.map((bytes) => sui.loadAttestation(tx, bytes))) {
      sui.registerEnclaveAsAnyone(tx, { ...common, configId, attestation: document });
    }
  });
  const { computationCost, storageCost, storageRebate } = effects.gasUsed;
  const cost = BigInt(computationCost) + BigInt(storageCost) - BigInt(storageRebate);
  expect(Number(cost) / size).toBeGreaterThan(0.015e9);

  const config = await sui.readConfig(client, configId);
  const { enclaves } = await sui.listEnclaves(client, config, { versions: 'current' });
  expect(enclaves.length).toBeGreaterThanOrEqual(size);
  // Another operator can still register an enclave, and the admin can end all enclaves at once.
  await register(fixture.admin, await attest(fixture.nsm, 7));
  await send(fixture.admin, (tx) => sui.retireConfig(tx, { ...common, configId, capId }));
  await expect(register(stranger, await attest(fixture.nsm, 8))).rejects.toThrow('enclave::ERetired');

  // Anyone may destroy the enclaves that are left, and gets the storage rebate for it.
  const flood = enclaves.filter(({ publicKey }) => (publicKey[0] ?? 0) >= 0x20);
  expect(flood).toHaveLength(size);
  const cleanup = await send(fixture.admin, (tx) => {
    for (const { id } of flood) sui.destroyOldEnclave(tx, { ...common, configId, enclaveId: id });
  });
  const { gasUsed } = cleanup.effects;
  expect(BigInt(gasUsed.computationCost) + BigInt(gasUsed.storageCost)).toBeLessThan(
    BigInt(gasUsed.storageRebate),
  );
});
