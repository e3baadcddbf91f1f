/** Sends transactions, and tests every case in which a transaction is not sent or fails. */
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { fromBase64, toBase58 } from '@mysten/sui/utils';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Chain, type Created, type Submission } from '../../../../src/cli/sui/chain.ts';
import { describeExpiry } from '../../../../src/cli/sui/expiry.ts';
import type { CommonOptions } from '../../../../src/cli/sui/options.ts';
import { INSUFFICIENT_GAS, Refusal } from '../../../../src/devnet/failures.ts';
import type { Fault } from '../../../../src/devnet/node.ts';
import {
  applicationType,
  createEnclaveConfig,
  type Image,
  parsePcrs,
  updatePcrs,
} from '../../../../src/library/sui/index.ts';
import { ChainFixture, PACKAGE } from './chain_fixture.ts';

const APPLICATION = applicationType(PACKAGE, 'weather', 'WEATHER');
const submission = { title: 'create a config', fields: {} };

let fixture: ChainFixture;
let capId: string;
let image: Image;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  capId = fixture.publish();
  image = parsePcrs(fixture.nsm.pcrsFile());
});
afterEach(() => fixture.close());

function createChain(values: CommonOptions = {}, key = fixture.admin): Chain {
  return new Chain({ 'rpc-url': fixture.node.url, ...values }, { SUI_PRIVATE_KEY: key.getSecretKey() });
}

function buildTransaction(): Transaction {
  const tx = new Transaction();
  createEnclaveConfig(tx, {
    enclavePackage: PACKAGE,
    application: APPLICATION,
    capId,
    name: 'weather',
    image,
  });
  return tx;
}

function countExecutions(): number {
  return fixture.node.calls.filter((name) => name === 'ExecuteTransaction').length;
}

describe('submit', () => {
  test('signs, executes and reports', async () => {
    const outcome = await createChain().submit(buildTransaction(), {
      ...submission,
      report: ({ created }) => ({ types: created.map(({ type }) => type) }),
    });
    expect(outcome).toMatchObject({
      status: 'done',
      fields: {
        types: [`${PACKAGE}::enclave::EnclaveConfig<${APPLICATION}>`],
        gas: expect.stringMatching(/^0\.004\d+ SUI$/),
      },
    });
    expect(fixture.node.ledger.executed).toContain(outcome.fields['digest']);
  });

  test('with --unsigned prints the bytes that a wallet signs, and needs no key', async () => {
    const values = { 'rpc-url': fixture.node.url, unsigned: true, address: fixture.address };
    const outcome = await new Chain(values, {}).submit(buildTransaction(), submission);
    expect(outcome.status).toBe('unsigned');
    expect(outcome.text).toBe(outcome.fields['transaction']);
    const { sender, gasData, kind } = bcs.TransactionData.parse(fromBase64(outcome.text ?? '')).V1;
    expect(sender).toBe(fixture.address);
    expect(gasData).toMatchObject({ owner: fixture.address, budget: expect.stringMatching(/^1[56]\d{7}$/) });
    expect(kind.ProgrammableTransaction?.commands[0]?.MoveCall?.function).toBe('create_enclave_config');
    expect(countExecutions()).toBe(0);
  });

  test('keeps the sender as the payer of the gas if a node names another address', async () => {
    fixture.node.executor.payer = `0x${'d'.repeat(64)}`;
    const values = { 'rpc-url': fixture.node.url, unsigned: true, address: fixture.address };
    const { text = '' } = await new Chain(values, {}).submit(buildTransaction(), submission);
    expect(bcs.TransactionData.parse(fromBase64(text)).V1.gasData.owner).toBe(fixture.address);
  });

  test('with --dry-run simulates the transaction, and sends nothing', async () => {
    const outcome = await createChain({ 'dry-run': true }).submit(buildTransaction(), submission);
    expect(outcome).toMatchObject({
      status: 'dry-run',
      fields: {
        calls: [`${PACKAGE}::enclave::create_enclave_config`],
        gasBudget: expect.stringMatching(/^0\.1[56]\d+ SUI$/),
      },
    });
    expect(countExecutions()).toBe(0);
  });
});

describe('a preview', () => {
  const type = `${PACKAGE}::enclave::EnclaveConfig<${APPLICATION}>`;

  test('gets what the transaction would create, and adds its fields unless the transaction is sent', async () => {
    const preview = ({ created, shared }: Created) => ({
      creates: created.map((object) => [object.type, shared.includes(object.id)]),
    });
    for (const flag of ['dry-run', 'unsigned']) {
      const { fields } = await createChain({ [flag]: true }).submit(buildTransaction(), {
        ...submission,
        preview,
      });
      expect(fields['creates'], flag).toEqual([[type, true]]);
    }
    const { status, fields } = await createChain().submit(buildTransaction(), { ...submission, preview });
    expect([status, fields['creates']]).toEqual(['done', undefined]);
  });

  test('prevents a signature if it throws, or if the simulation fails', async () => {
    const budgets: bigint[] = [];
    const submit = (preview: Submission['preview']) => {
      const chain = createChain();
      chain.beforeSigning = (budget) => void budgets.push(budget);
      return chain.submit(buildTransaction(), { ...submission, ...(preview && { preview }) });
    };
    const refuse = () => {
      throw new RangeError('refused');
    };
    await expect(submit(refuse)).rejects.toThrow('refused');
    const { engine } = fixture.node.executor;
    let runs = 0;
    fixture.node.executor.engine = async (execution) => {
      runs += 1;
      const executed = await engine(execution);
      return runs === 1 ? executed : { ...executed, status: INSUFFICIENT_GAS };
    };
    await expect(submit(() => ({}))).rejects.toMatchObject({ code: 'SUI_GAS' });
    expect([runs, budgets, countExecutions()]).toEqual([2, [], 0]);
  });
});

describe('an expiry that the node sets', () => {
  const { VALID_DURING } = GrpcTypes.TransactionExpiration_TransactionExpirationKind;
  const submitUnsigned = async (tx: Transaction) => {
    const { executor, url } = fixture.node;
    executor.expiration = GrpcTypes.TransactionExpiration.create({
      kind: VALID_DURING,
      minEpoch: 100n,
      epoch: 101n,
      chain: fixture.node.chainId,
      nonce: 7,
    });
    const unsignedChain = new Chain({ 'rpc-url': url, unsigned: true, address: fixture.address }, {});
    const { fields, text = '' } = await unsignedChain.submit(tx, submission);
    const { expiration } = bcs.TransactionData.parse(fromBase64(text)).V1;
    return { fields, expiration: expiration.$kind, notes: unsignedChain.notes.join() };
  };
  /** Makes the node charge the gas to the address's balance, as a node does if an address has no coins. */
  const payFromBalance = () => {
    const { simulate } = fixture.node.executor;
    fixture.node.executor.simulate = async (...args) => {
      const answer = await simulate.apply(fixture.node.executor, args);
      if (answer.resolved.gasPayment) answer.resolved.gasPayment.objects = [];
      return answer;
    };
  };

  test('is removed from unsigned bytes, since the gas coin is an owned object', async () => {
    const { fields, expiration, notes } = await submitUnsigned(new Transaction());
    expect(expiration).toBe('None');
    expect(fields).not.toHaveProperty('expires');
    expect(notes).toContain('at the end of epoch 101. The command removed this limit');
  });

  test('is described for any time in milliseconds, even beyond the range of a Date', async () => {
    const outcome = await createChain({ unsigned: true }).submit(new Transaction(), submission);
    const { V1 } = bcs.TransactionData.parse(fromBase64(outcome.text ?? ''));
    const expiryAt = (maxTimestamp: bigint) => {
      const ValidDuring = {
        minEpoch: 1,
        maxEpoch: 2,
        minTimestamp: null,
        maxTimestamp,
        nonce: 1,
        chain: fixture.node.chainId,
      };
      const data = { V1: { ...V1, expiration: { ValidDuring } } };
      return describeExpiry(bcs.TransactionData.serialize(data as never).toBytes());
    };
    expect(expiryAt(1_767_225_600_000n)).toContain('or earlier at 2026-01-01T00:00:00.000Z');
    expect(expiryAt(2n ** 64n - 1n)).toContain('or earlier 18446744073709551615 ms after 1970-01-01');
  });

  test('is removed if the address balance pays, and the capability is an owned object', async () => {
    payFromBalance();
    expect(await submitUnsigned(buildTransaction())).toMatchObject({ expiration: 'None' });
  });

  test('stays, and is printed, if no owned object prevents a replay', async () => {
    payFromBalance();
    const { fields, expiration, notes } = await submitUnsigned(new Transaction());
    expect(expiration).toBe('ValidDuring');
    expect(fields).toMatchObject({ expires: 'at the end of epoch 101' });
    expect(notes).toContain('expires at the end of epoch 101');
  });

  test('stays if an immutable object is the only input that is not shared', async () => {
    payFromBalance();
    const cap = fixture.node.ledger.objects.get(capId);
    fixture.node.lie = (object) =>
      object.id === capId && cap ? { ...object, owner: { kind: 'immutable' } } : object;
    expect(await submitUnsigned(buildTransaction())).toMatchObject({ expiration: 'ValidDuring' });
  });

  test('stays if the node refuses the transaction without it', async () => {
    payFromBalance();
    const { simulate } = fixture.node.executor;
    fixture.node.executor.simulate = async (...args) => {
      const isNone =
        args[0].expiration?.kind === GrpcTypes.TransactionExpiration_TransactionExpirationKind.NONE;
      if (isNone) throw new Refusal('INVALID_ARGUMENT', 'Gas payment is missing');
      return await simulate(...args);
    };
    expect(await submitUnsigned(buildTransaction())).toMatchObject({ expiration: 'ValidDuring' });
  });

  test('is shown by a dry run', async () => {
    await submitUnsigned(new Transaction());
    expect(await createChain({ 'dry-run': true }).submit(buildTransaction(), submission)).toMatchObject({
      fields: { expires: 'at the end of epoch 101' },
    });
  });
});

test('the error for a missing package names it, even if the node sends no text', async () => {
  const packageId = `0x${'a'.repeat(64)}`;
  await expect(createChain().originalPackage(packageId)).rejects.toMatchObject({
    code: 'SUI_OBJECT_NOT_FOUND',
    objectId: packageId,
  });
});

describe('nothing is sent', () => {
  test('when a Move function would abort: the failed check is explained', async () => {
    const config = await fixture.config(capId);
    const otherCapId = fixture.publish();
    const countBefore = countExecutions();
    const tx = new Transaction();
    const call = {
      enclavePackage: PACKAGE,
      application: APPLICATION,
      configId: config,
      capId: otherCapId,
      image,
    };
    updatePcrs(tx, call);
    await expect(createChain().submit(tx, submission)).rejects.toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::EInvalidCap',
      location: `${PACKAGE}::enclave::assert_cap`,
    });
    expect(countExecutions()).toBe(countBefore);
  });

  test('when an argument is an object of another type', async () => {
    const [coin] = fixture.node.ledger.coins(fixture.address);
    capId = coin?.object.id ?? '';
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_EXECUTION',
      message: expect.stringContaining('TypeMismatch'),
    });
    expect(countExecutions()).toBe(0);
  });

  test('when the capability belongs to someone else', async () => {
    const stranger = new Ed25519Keypair();
    fixture.node.ledger.give(stranger.toSuiAddress(), 1_000_000_000n);
    await expect(createChain({}, stranger).submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_NODE_REFUSED',
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`is owned by account address ${fixture.address}`),
    });
    expect(countExecutions()).toBe(0);
  });

  test('when an object is missing', async () => {
    capId = `0x${'d'.repeat(64)}`;
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      objectId: capId,
    });
  });

  test('when the sender has no SUI', async () => {
    const poor = new Ed25519Keypair();
    capId = fixture.publish(poor.toSuiAddress());
    await expect(createChain({}, poor).submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_GAS',
    });
    expect(countExecutions()).toBe(0);
  });

  test('when the budget is too small', async () => {
    await expect(
      createChain({ 'gas-budget': 1n }).submit(buildTransaction(), submission),
    ).rejects.toMatchObject({
      code: 'SUI_GAS',
    });
    expect(countExecutions()).toBe(0);
  });

  test('when the node proposes a budget beyond the need of any command, unless --gas-budget allows it', async () => {
    fixture.node.executor.proposedBudget = 1_000_000_001n;
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_NODE_ANSWER',
      message: expect.stringContaining('1.000000001 SUI'),
    });
    expect(countExecutions()).toBe(0);
    await createChain({ 'gas-budget': 1_000_000_001n }).submit(buildTransaction(), submission);
    expect(countExecutions()).toBe(1);
  });

  test('when the node is down', async () => {
    const sendingChain = createChain();
    fixture.node.close();
    await expect(sendingChain.submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_NODE_UNREACHABLE',
    });
  });

  test.each<[string, Fault, string]>([
    ['closes the connection', 'reset', 'SUI_NODE_UNREACHABLE'],
    ['is overloaded', { status: 'UNAVAILABLE', message: 'overloaded' }, 'SUI_NODE_UNREACHABLE'],
    ['exceeds a deadline', { status: 'DEADLINE_EXCEEDED', message: 'late' }, 'SUI_NODE_UNREACHABLE'],
    ['answers with something else', 'garbage', 'SUI_NODE_REFUSED'],
    ['does not have the method', { status: 'UNIMPLEMENTED', message: 'no' }, 'SUI_NODE_REFUSED'],
  ])('when the node %s', async (_, fault, code) => {
    fixture.node.faults.set('SimulateTransaction', fault);
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({ code });
    expect(countExecutions()).toBe(0);
  });

  test('when the node sends a long text: the error has the beginning, without control characters', async () => {
    const message = `\u001b[2J\r\n${'x'.repeat(5000)}`;
    fixture.node.faults.set('SimulateTransaction', { status: 'INTERNAL', message });
    const error = await createChain()
      .submit(buildTransaction(), submission)
      .catch((thrown: Error) => thrown);
    expect((error as Error).message).toMatch(/^[\x20-\x7e…]{100,800}$/);
  });
});

describe('a node of Sui 1.63', () => {
  beforeEach(() => {
    fixture.node.executor.isOld = true;
  });

  test('describes an abort only as text: the error equals that of a call with --gas-budget, which the node answers with a structure', async () => {
    const configId = await fixture.config(capId);
    const otherCapId = fixture.publish();
    const submitFailing = async (values: CommonOptions) => {
      const tx = new Transaction();
      updatePcrs(tx, {
        enclavePackage: PACKAGE,
        application: APPLICATION,
        configId,
        capId: otherCapId,
        image,
      });
      return await createChain(values)
        .submit(tx, submission)
        .catch((thrown: Error) => thrown);
    };
    const error = await submitFailing({});
    expect(error).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::EInvalidCap',
      location: `${PACKAGE}::enclave::assert_cap`,
    });
    expect(error).toEqual(await submitFailing({ 'gas-budget': 5_000_000n }));
  });

  test('describes a lack of SUI only as text', async () => {
    const poor = new Ed25519Keypair();
    capId = fixture.publish(poor.toSuiAddress());
    await expect(createChain({}, poor).submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_GAS',
    });
  });

  test.each<['NOT_FOUND' | 'UNIMPLEMENTED' | 'PERMISSION_DENIED', string]>([
    ['NOT_FOUND', 'the requested object does not exist on this network'],
    ['UNIMPLEMENTED', 'it does not offer this method, perhaps because it is too old'],
    ['PERMISSION_DENIED', 'it gives no reason'],
  ])('sends only the status %s: the error explains the status', async (status, sentence) => {
    fixture.node.faults.set('SimulateTransaction', { status, message: '' });
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_NODE_REFUSED',
      message: `the Sui node refused the request (${status}): ${sentence}`,
    });
  });
});

describe('an execution that goes wrong', () => {
  test('is reported if another transaction holds the capability (equivocation)', async () => {
    fixture.node.ledger.locked.add(capId);
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_EQUIVOCATION',
    });
    expect(fixture.node.ledger.objects.size).toBe(2);
  });

  test('is reported if an object has changed since the simulation', async () => {
    const { execute } = fixture.node.executor;
    fixture.node.executor.execute = async (...args) => {
      fixture.node.ledger.give(fixture.address, 1n);
      const coin = fixture.node.ledger.coins(fixture.address)[0]?.object;
      if (coin) fixture.node.ledger.objects.set(coin.id, { ...coin, version: coin.version + 9n });
      return await execute.apply(fixture.node.executor, args);
    };
    await expect(createChain().submit(buildTransaction(), submission)).rejects.toMatchObject({
      code: 'SUI_OBJECT_CHANGED',
    });
  });

  test('is reported if it aborts, which the simulation did not show', async () => {
    const tx = new Transaction();
    const configId = await fixture.config(capId);
    updatePcrs(tx, { enclavePackage: PACKAGE, application: APPLICATION, configId, capId, image });
    const { execute } = fixture.node.executor;
    fixture.node.executor.execute = async (...args) => {
      const config = fixture.node.ledger.objects.get(configId);
      const content = Buffer.from(config?.content ?? []);
      const offset = content.indexOf(Buffer.from(capId.slice(2), 'hex'));
      content.fill(1, offset, offset + 32);
      if (config) fixture.node.ledger.objects.set(configId, { ...config, content });
      return await execute.apply(fixture.node.executor, args);
    };
    await expect(createChain().submit(tx, submission)).rejects.toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::EInvalidCap',
    });
  });

  test.each<Fault>(['executes, and does not answer', 'executes, and says ABORTED'])(
    'is looked up by its digest, and counts as done: the node %s',
    async (fault) => {
      fixture.node.faults.set('ExecuteTransaction', fault);
      const outcome = await createChain().submit(buildTransaction(), {
        ...submission,
        report: ({ created }) => ({ created: created.length }),
      });
      const digest = fixture.node.ledger.executed.at(-1);
      expect(outcome).toMatchObject({ status: 'done', fields: { digest, created: 1 } });
    },
  );

  test.each<[string, Fault]>([
    ['no answer', 'reset'],
    ['garbage', 'garbage'],
    ['an error of a proxy', { status: 'UNKNOWN', message: 'Bad Gateway' }],
    ['an error inside the node', { status: 'INTERNAL', message: 'overloaded' }],
    ['ABORTED, whatever the text', { status: 'ABORTED', message: 'needs to be rebuilt' }],
    ['RESOURCE_EXHAUSTED', { status: 'RESOURCE_EXHAUSTED', message: 'validators are overloaded' }],
  ])('%s does not count as a refusal: the error names the digest', async (_, fault) => {
    fixture.node.faults.set('ExecuteTransaction', fault);
    const sendingChain = createChain();
    sendingChain.indexingMs = 200;
    const error = await sendingChain.submit(buildTransaction(), submission).catch((thrown: Error) => thrown);
    const { digest } = error as { digest?: string };
    expect(digest).toMatch(/^[1-9A-HJ-NP-Za-km-z]{43,44}$/);
    expect(error).toMatchObject({
      code: 'SUI_UNKNOWN_OUTCOME',
      message: expect.stringContaining(`${digest} was sent`),
    });
    expect(fixture.node.calls).toContain('GetTransaction');
  });

  test('the next command waits if a node does not immediately show that a transaction was executed', async () => {
    fixture.node.lagMs = 100;
    const config = await fixture.config(capId);
    const tx = new Transaction();
    updatePcrs(tx, { enclavePackage: PACKAGE, application: APPLICATION, configId: config, capId, image });
    expect(await createChain().submit(tx, submission)).toMatchObject({ status: 'done' });
  });

  test('a node does not show an executed transaction yet: the command adds a note, and does not fail', async () => {
    fixture.node.faults.set('GetTransaction', { status: 'NOT_FOUND', message: 'not yet' });
    const sendingChain = createChain();
    sendingChain.indexingMs = 50;
    expect(await sendingChain.submit(buildTransaction(), submission)).toMatchObject({ status: 'done' });
    expect(sendingChain.notes.join()).toContain('does not show it yet');
  });
});

test('a command whose transaction names a missing object sends nothing', async () => {
  const objectId = `0x${'7'.repeat(64)}`;
  for (const addObject of [
    (tx: Transaction) => tx.object(objectId),
    (tx: Transaction) =>
      tx.objectRef({ objectId, version: '3', digest: toBase58(new Uint8Array(32).fill(5)) }),
  ]) {
    const tx = new Transaction();
    tx.transferObjects([addObject(tx)], fixture.address);
    await expect(createChain({ 'gas-budget': 10_000_000n }).submit(tx, submission)).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      objectId,
    });
  }
  expect(fixture.node.calls).not.toContain('ExecuteTransaction');
});
