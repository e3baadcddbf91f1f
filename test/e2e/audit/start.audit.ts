/**
 * Starts audits from what a stranger may know about an application: a package, a transaction, an enclave or
 * its URL.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Chain } from '../../../src/cli/sui/chain.ts';
import { listEnclaves, readConfig } from '../../../src/library/sui/objects.ts';
import { retireConfig } from '../../../src/library/sui/transactions.ts';
import { findStart } from '../../../src/toolchain/audit/start.ts';
import { createdFiles, weatherFiles } from '../../src/toolchain/audit/applications.ts';
import type { TestRepository } from '../../src/toolchain/audit/git_server.ts';
import { type Application, type Deployed, World } from './world.ts';

const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };
const PRICE: Application = { files: createdFiles(), folder: '', module: 'price' };

let world: World;
let repository: TestRepository;
let commit: string;
let deployed: Deployed;
let quickOptions: string[];
beforeAll(async () => {
  world = await World.start();
  repository = world.repository();
  commit = repository.writeCommit(WEATHER.files);
  deployed = await world.deploy(WEATHER, repository, commit);
  quickOptions = ['--source', repository.folder, '--quick'];
});
afterAll(() => world.close());

const chain = () => new Chain({ 'rpc-url': world.node.url }, {});

async function findLastTransaction(objectId: string): Promise<string> {
  const include = { previousTransaction: true } as const;
  const { object } = await chain().client.core.getObject({ objectId, include });
  return object.previousTransaction ?? '';
}

async function expectConfig(text: string, { configId }: Deployed, from: string): Promise<void> {
  const { config, ...startFields } = await findStart(text, chain());
  expect({ id: config.id, ...startFields }).toEqual({ id: configId, from, urls: [] });
}

describe('an audit starts from', () => {
  test('the package of the application', async () => {
    const { enclavePackage } = deployed;
    await expectConfig(enclavePackage, deployed, `the package ${enclavePackage}`);
  });

  test('a transaction that published the package or created the config', async () => {
    for (const id of [deployed.enclavePackage, deployed.configId, deployed.capId]) {
      const digest = await findLastTransaction(id);
      await expectConfig(digest, deployed, `the transaction ${digest}`);
    }
  });

  test('a transaction that only read its enclave', async () => {
    await world.serve(deployed);
    const { client } = chain();
    const { enclaves } = await listEnclaves(client, await readConfig(client, deployed.configId));
    const tx = new Transaction();
    const { enclavePackage, application } = deployed;
    tx.moveCall({
      target: `${enclavePackage}::enclave::registered_at_ms`,
      typeArguments: [application],
      arguments: [tx.object(enclaves[0]?.id ?? '')],
    });
    const { digest } = await world.submit(tx);
    await expectConfig(digest, deployed, `the transaction ${digest}`);
  });

  test('an enclave on chain', async () => {
    await world.serve(deployed);
    const { client } = chain();
    const { enclaves } = await listEnclaves(client, await readConfig(client, deployed.configId));
    const id = enclaves[0]?.id ?? '';
    await expectConfig(id, deployed, `the object ${id}`);
  });

  test('the URL of an enclave whose host names the config, and audits this enclave', async () => {
    const host = await startHost(JSON.stringify({ config: deployed.configId }));
    const verdict = await world.audit(host, quickOptions);
    const from = `the host at ${host}`;
    expect(verdict.config, verdict.out).toMatchObject({ id: deployed.configId });
    const detail = `the config ${deployed.configId} was found by it`;
    expect(verdict.checks[0]).toMatchObject({ result: 'same', what: from, detail });
    expect(verdict.err).toContain(`the config ${deployed.configId} was found by ${from}`);
    expect(verdict.checks).toContainEqual(
      expect.objectContaining({ what: `the enclave at ${host}`, result: 'same' }),
    );
  });

  test('a URL whose host names another config, and reports that the enclave does not belong to it', async () => {
    const otherDeployment = await world.deploy(PRICE, repository, commit);
    const host = await startHost(JSON.stringify({ config: otherDeployment.configId }));
    const verdict = await world.audit(host, quickOptions);
    expect(verdict.config).toMatchObject({ id: otherDeployment.configId });
    expect(verdict).toMatchObject({ exit: 1, verdict: 'differs' });
    const { code } = verdict.checks.find(({ what: subject }) => subject === `the enclave at ${host}`) ?? {};
    expect(['ENCLAVE_REGISTERS', 'KEY_NOT_REGISTERED']).toContain(code);
  });
});

describe('an audit has no verdict', () => {
  test.each(['{}', 'not JSON', '{"config":"0x12"}', '{"config":["a"]}'])(
    'if the host at a URL answers %s',
    async (hint) => {
      expect(await world.audit(await startHost(hint), quickOptions)).toMatchObject({
        exit: 2,
        code: 'START_UNKNOWN',
      });
    },
  );

  test('if an object or a transaction has no config', async () => {
    const tx = new Transaction();
    tx.transferObjects([tx.splitCoins(tx.gas, [1])], world.address);
    const { digest, created: createdObjects } = await world.submit(tx);
    for (const id of [digest, createdObjects[0]?.id ?? '']) {
      expect(await world.audit(id, quickOptions), id).toMatchObject({ exit: 2, code: 'START_UNKNOWN' });
    }
  });

  test('if the node does not list events', async () => {
    world.node.faults.set('ListEvents', { status: 'UNIMPLEMENTED', message: '' });
    onTestFinished(() => void world.node.faults.delete('ListEvents'));
    expect(await world.audit(deployed.enclavePackage, quickOptions)).toMatchObject({
      exit: 2,
      code: 'START_UNKNOWN',
    });
  });

  test('if its argument is neither an id nor a URL', async () => {
    for (const text of ['weather', '0x12', 'ftp://host', 'http://user:word@host']) {
      expect(await world.audit(text, quickOptions), text).toMatchObject({ exit: 2, code: 'USAGE' });
    }
  });

  test('if a package has several configs, and lists them, including retired ones, without control characters', async () => {
    const name = 'other\u001b[2J';
    const second = await world.deploy(WEATHER, repository, commit, { name, published: deployed });
    const tx = new Transaction();
    retireConfig(tx, second);
    await world.submit(tx);
    const verdict = await world.audit(deployed.enclavePackage, quickOptions);
    expect(verdict).toMatchObject({ exit: 2, code: 'SEVERAL_CONFIGS' });
    const { error } = JSON.parse(verdict.out) as { error: string };
    expect(error).toContain(deployed.configId);
    expect(error).toMatch(new RegExp(`${second.configId}.*retired`));
    expect(error).not.toContain('\u001b');
  });
});

/** Starts a host that serves the enclave, and answers with this text when it is asked for its config. */
async function startHost(hint: string): Promise<string> {
  const url = await world.serve(deployed);
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.url === '/.well-known/sui-enclave.json') return void response.end(hint);
    response.end(await (await fetch(url + request.url)).text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
