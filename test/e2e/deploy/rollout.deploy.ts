/**
 * Runs `sui-enclave rollout` from two emulated enclaves to two enclaves of the next image, behind the HTTPS
 * recipe of deploy/https and on a model of a Sui node. During the rollout, users make 1,000 calls from 24
 * addresses, and submit the answers on chain.
 */

import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { updateWeather, type WeatherReading } from '../../../src/apps/weather/calls.ts';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import {
  certificatesFromPem,
  EnclaveClient,
  type RegisteredAnswer,
} from '../../../src/library/client/index.ts';
import { sendTransaction } from '../../../src/library/sui/index.ts';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';
import { script } from '../../src/cli/sui/run_script.ts';
import { type Edge, fetchAs, HAPROXY_COMMAND, startEdge } from './https.ts';
import { HAPROXY, isInstalled, type Program, start, stop, until } from './setup.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const ROLLOUT = path('../../../src/cli/rollout/rollout.ts');
const CALLS = 1000;
const CONCURRENCY = 8;
/** Number of readings in a transaction. */
const BATCH = 10;
/** Addresses of users. HAProxy sends all requests of an address to one enclave. */
const USERS = Array.from({ length: 24 }, (_, index) => `127.0.1.${index + 1}`);
const CITIES = ['Oslo', 'Lima', 'Quito', 'Hanoi', 'Accra'];

const folder = mkdtempSync(join(tmpdir(), 'rollout-'));
const admin = new Ed25519Keypair();
const operator = new Ed25519Keypair();
const user = new Ed25519Keypair();
const programs: Program[] = [];
let ports: { readonly old: readonly number[]; readonly new: readonly number[] };
let node: { readonly url: string; readonly faucetUrl: string };
let edge: Edge;
let balancer: string;
let ids: { readonly appPackage: string; readonly configId: string; readonly registrar: string };

const urls = (side: 'old' | 'new') => ports[side].map((port) => `http://127.0.0.1:${port}`);
const listCommands = (verb: 'start' | 'stop', side: 'old' | 'new') =>
  ports[side].map((port) => [
    process.execPath,
    path('dev_enclave.ts'),
    verb,
    folder,
    String(port),
    ...(verb === 'start' ? [side === 'old' ? '1' : '2'] : []),
  ]);
const setState = (side: 'old' | 'new', state: string) =>
  ports[side].map((_, index) => `set server enclaves/${side}${index} state ${state}`);

/** Runs a command of the admin, which must succeed. */
async function runCommand(name: string, ...args: readonly string[]): Promise<Record<string, unknown>> {
  const env = { SUI_PRIVATE_KEY: admin.getSecretKey(), DEPLOYMENTS: join(folder, 'deployments') };
  const { exit, err, json } = await script(name, [...args, '--json'], env);
  expect(exit, `${name}: ${err} ${JSON.stringify(json())}`).toBe(0);
  return json();
}

/** Starts the rollout, with an admin who runs the commands that it prints. */
function startRollout(plan: string): Program {
  const env = {
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    SUI_PRIVATE_KEY: operator.getSecretKey(),
    DEPLOYMENTS: join(folder, 'deployments'),
    NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
    ...edge.env,
  };
  const program = start(process.execPath, [ROLLOUT, plan], env);
  programs.push(program);
  const executedLines = new Set<string>();
  program.process.stdout?.on('data', () => {
    for (const [, line = ''] of program
      .output()
      .matchAll(/^ {2}npx --offline sui-enclave ((?!.*--unsigned).*)$/gm)) {
      if (executedLines.has(line)) continue;
      executedLines.add(line);
      const [name = '', ...args] = line.split(' ');
      void runCommand(name, ...args);
    }
  });
  return program;
}

type Reading = RegisteredAnswer<WeatherReading['data']>;

/**
 * Submits the answers in batches, until `isOver` returns true and no answers are left. @returns the errors
 */
async function submitAll(answers: Reading[], isOver: () => boolean): Promise<unknown[]> {
  const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
  const errors: unknown[] = [];
  while (!isOver() || answers.length > 0) {
    const batch = answers.splice(0, BATCH);
    if (batch.length === 0) {
      await sleep(20);
      continue;
    }
    const tx = new Transaction();
    tx.setSender(user.toSuiAddress());
    const nfts = batch.map((reading) => updateWeather(tx, { ...ids, enclaveId: reading.enclaveId, reading }));
    tx.transferObjects(nfts, user.toSuiAddress());
    try {
      const transaction = await tx.build({ client });
      const { signature } = await user.signTransaction(transaction);
      await sendTransaction(client, { transaction, signatures: [signature] });
    } catch (error) {
      errors.push(error);
    }
  }
  return errors;
}

describe.skipIf(!isInstalled)(isInstalled ? 'HAProxy' : `HAProxy (skipped: no ${HAPROXY})`, () => {
  beforeAll(async () => {
    ports = {
      old: [await findFreePort(), await findFreePort()],
      new: [await findFreePort(), await findFreePort()],
    };
    const root = pathToFileURL(`${folder}/`);
    for (const image of [1, 2]) DevelopmentTrust.load(root, 'weather', { image }).save();
    const model = start(process.execPath, [path('dev_node.ts'), root.href], {});
    programs.push(model);
    await until('the node listens', () => model.output().includes('}'));
    node = JSON.parse(model.output());
    for (const key of [admin, operator, user]) {
      await requestSuiFromFaucetV2({ host: node.faucetUrl, recipient: key.toSuiAddress() });
    }
    for (const [program = '', ...args] of listCommands('start', 'old')) {
      await once(start(program, args, {}).process, 'exit');
    }
    const isAnswering = async (url: string) => (await fetch(url).catch(() => null))?.ok === true;
    for (const url of urls('old')) await until(`${url} answers`, () => isAnswering(url));
    const servers = [
      ...ports.old.map((port, index) => [`old${index}`, `127.0.0.1:${port}`]),
      ...ports.new.map((port, index) => [`new${index}`, `127.0.0.1:${port} disabled`]),
    ];
    edge = await startEdge(Object.fromEntries(servers));
    balancer = `https://localhost:${edge.httpsPort}`;
    writeFileSync(join(folder, 'ca.pem'), edge.ca);
    await until('HAProxy has an enclave', async () => (await edge.request('/readyz')).status === 200);

    const networkArgs = ['--network', 'localnet', '--rpc-url', node.url];
    const published = await runCommand('publish', 'weather', ...networkArgs);
    const created = await runCommand(
      'create_config',
      'main',
      '--pcrs',
      join(folder, 'dev.pcrs'),
      ...networkArgs,
    );
    await runCommand(
      'register_enclave',
      ...urls('old'),
      '--root',
      join(folder, 'dev-root.pem'),
      ...networkArgs,
    );
    const { registrar } = await runCommand('add_registrar', operator.toSuiAddress(), ...networkArgs);
    ids = {
      appPackage: String(published['package']),
      configId: String(created['config']),
      registrar: String(registrar),
    };
  });
  afterAll(async () => {
    await Promise.all([edge?.stop(), ...programs.map((program) => stop(program))]);
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.pid'))) {
      try {
        process.kill(Number(readFileSync(join(folder, name), 'utf8')), 'SIGKILL');
      } catch {
        // The process has ended.
      }
    }
    rmSync(folder, { recursive: true });
  });

  test('a rollout during 1,000 calls makes no call fail, and the chain refuses no answer', async () => {
    const plan = {
      network: 'localnet',
      node: node.url,
      registrar: ids.registrar,
      root: 'dev-root.pem',
      old: { pcrs: 'dev.pcrs', enclaves: urls('old') },
      new: { pcrs: 'dev.2.pcrs', enclaves: urls('new') },
      balancer,
      commands: {
        start: listCommands('start', 'new'),
        switch: [[HAPROXY_COMMAND, ...setState('new', 'ready'), ...setState('old', 'drain')]],
        switch_back: [[HAPROXY_COMMAND, ...setState('old', 'ready'), ...setState('new', 'drain')]],
        stop_old: listCommands('stop', 'old'),
        stop_new: listCommands('stop', 'new'),
      },
      overlap: 10,
      drain: 2,
      settle: 5,
      start_within: 60,
      command_within: 60,
      admin_within: 60,
    };
    writeFileSync(join(folder, 'rollout.yaml'), JSON.stringify(plan));
    const client = await EnclaveClient.forConfig(
      new SuiGrpcClient({ network: 'localnet', baseUrl: node.url }),
      ids.configId,
      balancer,
      {
        roots: certificatesFromPem(readFileSync(join(folder, 'dev-root.pem'), 'utf8')),
        fetch: fetchAs(USERS, edge),
      },
    );
    const answers: Reading[] = [];
    const failures: unknown[] = [];
    const signers: string[] = [];
    const rollout = startRollout(join(folder, 'rollout.yaml'));
    const ended = once(rollout.process, 'exit');
    let isEnded = false;
    void ended.then(() => {
      isEnded = true;
    });
    let calls = 0;
    const call = async () => {
      // The calls continue to the end of the rollout. Each worker then makes ten more.
      for (let laterCalls = 0; calls < CALLS || laterCalls < 10; laterCalls += isEnded ? 1 : 0) {
        const location = CITIES[calls++ % CITIES.length] ?? '';
        // The client does not repeat a call that is not declared idempotent.
        const weatherCall = client.processData({ location }, WeatherResponse, { expect: { location } });
        const answer = await weatherCall.catch((error: unknown) => void failures.push(error));
        if (answer) {
          answers.push(answer);
          signers.push(answer.enclaveId);
        }
        // Callers wait for the model, which takes longer than the enclaves.
        while (answers.length > 4 * BATCH) await sleep(20);
      }
    };
    let isOver = false;
    const submitted = submitAll(answers, () => isOver);
    await Promise.all(Array.from({ length: CONCURRENCY }, call));
    isOver = true;
    const refusals = await submitted;

    expect([failures, refusals]).toEqual([[], []]);
    expect(await ended, rollout.output()).toEqual([0, null]);
    expect(signers.length).toBeGreaterThanOrEqual(CALLS);
    // All four enclaves answered. Only the two new ones gave the last answers.
    expect(new Set(signers).size).toBe(4);
    expect(new Set(signers.slice(-20)).size).toBe(2);
    const root = ['--root', join(folder, 'dev-root.pem')];
    const networkArgs = ['--network', 'localnet', '--rpc-url', node.url, ...root];
    expect(
      await runCommand('status', '--config', ids.configId, ...urls('new'), ...networkArgs),
    ).toMatchObject({
      config: { overlap: null },
      answering: [{ registration: 'registered' }, { registration: 'registered' }],
    });
  }, 600_000);
});
