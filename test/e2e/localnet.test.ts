/**
 * Runs the admin's commands, an application's calls, a zkLogin user, a keeper and a rollout on a Sui node.
 * `SUI_RPC_URL` and `SUI_FAUCET_URL` name the node, for example that of `sui start --force-regenesis
 * --with-faucet`, with the framework's sources (`SUI_FRAMEWORK_DIR`, or `FRAMEWORK=fetch`). Without them, the
 * tests run on the model of `make dev-sui`, which must pass the same tests as a node.
 *
 * Tests that need a registered enclave are skipped if the node does not trust the development root.
 * `DEV_ROOT` names the folder of that root, such as the `out` in which `make dev ATTEST=emulated` keeps it.
 * The zkLogin user's proof verifies under mainnet's key. `ZKLOGIN_SESSION` names a file with a session for
 * another network.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { genAddressSeed } from '@mysten/sui/zklogin';
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from 'vitest';
import { updateWeather } from '../../src/apps/weather/calls.ts';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import { certificatesFromPem } from '../../src/library/attestation/index.ts';
import { EnclaveClient } from '../../src/library/client/index.ts';
import {
  createEpochSource,
  createMemoryStore,
  resumeSession,
  type ZkLoginSession,
} from '../../src/library/zklogin/index.ts';
import { type OpenSession, saveSession } from '../../src/library/zklogin/storage.ts';
import { readVerifyingKey } from '../../src/prover/verify.ts';
import { DevelopmentTrust } from '../../src/testing/development_trust.ts';
import { type DevSui, startDevSui } from '../../src/toolchain/dev/sui/service.ts';
import { createSignatureCheck } from '../../src/toolchain/dev/sui/signatures.ts';
import { callScript } from '../src/cli/run.ts';
import { script } from '../src/cli/sui/run_script.ts';
import { startWeather, type TestServer } from '../src/server/support.ts';

const {
  SUI_RPC_URL: rpcUrl,
  SUI_FAUCET_URL: faucetUrl,
  SUI_FRAMEWORK_DIR,
  FRAMEWORK,
  DEV_ROOT,
  ZKLOGIN_SESSION,
} = process.env;
const ID = expect.stringMatching(/^0x[0-9a-f]{64}$/);

const admin = new Ed25519Keypair();
const operator = new Ed25519Keypair();
/** Gas of each call, as the command printed it. */
const gas: Record<string, string> = {};

let out: string;
let model: DevSui | undefined;
let node: { readonly url: string; readonly faucet: string };
let trustsRoot = false;
/** Id of a config whose enclaves have no URLs in the deployment file, since each test ends its enclaves. */
let configId = '';

beforeAll(async () => {
  if ((rpcUrl === undefined) !== (faucetUrl === undefined)) {
    throw new Error('set both SUI_RPC_URL and SUI_FAUCET_URL, or neither');
  }
  out = mkdtempSync(join(tmpdir(), 'localnet-'));
  if (rpcUrl === undefined) {
    model = await startDevSui({ port: 0, faucetPort: 0, folder: pathToFileURL(`${out}/`), env: {} });
  }
  node = { url: rpcUrl ?? model?.node.url ?? '', faucet: faucetUrl ?? model?.faucetUrl ?? '' };
}, 60_000);
afterAll(async () => {
  await model?.close();
  rmSync(out, { recursive: true });
  const place = model ? 'the model of make dev-sui (a real node may charge other amounts)' : node.url;
  const rows = Object.entries(gas).map(([name, cost]) => `| \`${name}\` | ${cost} |\n`);
  process.stdout.write(`gas on ${place}\n${rows.join('')}`);
});

/** Runs a command for the deployment in `out`. */
async function run(name: string, args: readonly string[], signer = admin) {
  const env = {
    SUI_PRIVATE_KEY: signer.getSecretKey(),
    SUI_ENCLAVE_NETWORK: 'localnet',
    DEPLOYMENTS: join(out, 'deployments'),
    ...(SUI_FRAMEWORK_DIR && { SUI_FRAMEWORK_DIR }),
    ...(FRAMEWORK && { FRAMEWORK }),
  };
  const { exit, json, err } = await script(name, [...args, '--rpc-url', node.url, '--json'], env);
  return { exit, json: json(), err };
}

/** Runs a command, which must succeed. */
async function succeed(
  name: string,
  args: readonly string[],
  signer = admin,
): Promise<Record<string, unknown>> {
  const { exit, json, err } = await run(name, args, signer);
  expect(exit, `${name}: ${err} ${JSON.stringify(json)}`).toBe(0);
  if (typeof json['gas'] === 'string') gas[name] ??= json['gas'];
  return json;
}

/** Returns the folder of the development root. */
const trustFolder = () => pathToFileURL(`${resolve(DEV_ROOT ?? out)}/`);
const file = (name: string) => fileURLToPath(new URL(name, trustFolder()));
const root = () => ['--root', file('dev-root.pem')];
const pcrs = () => ['--pcrs', file('dev.pcrs')];

async function startImageServer(image: number): Promise<TestServer> {
  const trust = DevelopmentTrust.load(trustFolder(), 'weather', { image });
  trust.save();
  return (await startWeather({ nsm: trust.nsm })).server;
}

async function startEnclave(): Promise<string> {
  return (await startImageServer(1)).url;
}

const vector = (name: string) =>
  JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8'));

/** Returns the session of a genuine login with Google, or the session of `ZKLOGIN_SESSION`. */
function loadSession(): OpenSession {
  if (ZKLOGIN_SESSION !== undefined) return JSON.parse(readFileSync(ZKLOGIN_SESSION, 'utf8'));
  const [{ partialInputs, salt, keyClaimName, keyClaimValue, aud, maxEpoch, address }] =
    vector('zklogin-proofs');
  const { ephemeralSecretHex } = vector('zklogin-jwts').common;
  const addressSeed = genAddressSeed(BigInt(salt), keyClaimName, keyClaimValue, aud).toString();
  const secretKey = Ed25519Keypair.fromSecretKey(Buffer.from(ephemeralSecretHex, 'hex')).getSecretKey();
  const inputs = { ...partialInputs, addressSeed };
  return { stage: 'open', address, legacyAddress: false, maxEpoch, secretKey, inputs };
}

function openZkLoginSession(): ZkLoginSession {
  const storage = createMemoryStore();
  saveSession(storage, loadSession());
  const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
  return resumeSession({ currentEpoch: createEpochSource(client), storage });
}

/**
 * Makes the model check the proof as a validator of mainnet did, with the key of Google that signed the
 * token.
 */
function checkAsMainnet({ node: devNode }: DevSui): void {
  const [{ modulusBase64url: n }] = vector('zklogin-proofs');
  devNode.epoch = 5n;
  devNode.verify = createSignatureCheck(
    devNode,
    [readVerifyingKey(vector('zkLogin-main.vkey'))],
    async () => ({
      n,
    }),
  );
}

function skipUnlessTrusted({ skip }: TestContext): void {
  if (!trustsRoot) skip('the node does not trust the development root');
}

/** Requests a coin from the faucet, and returns when the node shows it. */
async function fund(address: string): Promise<void> {
  await requestSuiFromFaucetV2({ host: node.faucet, recipient: address });
  const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
  const funded = async () => {
    const { balance } = await client.core.getBalance({ owner: address });
    return BigInt(balance.balance) > 0n;
  };
  await expect.poll(funded).toBe(true);
}

describe('on a Sui node', { timeout: 120_000 }, () => {
  test('the faucet funds admin and operator', async () => {
    for (const key of [admin, operator]) await fund(key.toSuiAddress());
  });

  test('publish creates a package, an UpgradeCap and an EnclaveCap; a second run changes nothing', async () => {
    const published = await succeed('publish', ['weather']);
    expect(published).toMatchObject({
      status: 'done',
      package: ID,
      upgradeCap: ID,
      enclaveCaps: [{ id: ID, type: expect.stringContaining('::weather::WEATHER>') }],
    });
    expect(await succeed('publish', ['weather'])).toMatchObject({
      status: 'unchanged',
      package: published['package'],
    });
  });

  test('create_config shares a config at version 0; a second run changes nothing', async () => {
    await startEnclave();
    const created = await succeed('create_config', ['main', ...pcrs()]);
    expect(created).toMatchObject({ status: 'done', config: ID, configVersion: 0 });
    configId = String(created['config']);
    expect(await succeed('create_config', ['main', ...pcrs()])).toMatchObject({
      status: 'unchanged',
      config: created['config'],
    });
  });

  test('update_config renames the config, and limits the age of keys', async () => {
    await succeed('update_config', ['--name', 'renamed', '--max-key-age', '24']);
    expect(await succeed('status', ['--config', configId])).toMatchObject({
      config: { name: 'renamed', maxKeyAgeMs: '86400000' },
    });
  });

  test('add_registrar adds a registrar, and revoke_registrar removes it', async () => {
    const { registrar } = await succeed('add_registrar', [operator.toSuiAddress()]);
    expect(registrar).toEqual(ID);
    expect(await succeed('status', ['--config', configId])).toMatchObject({
      config: { registrars: [registrar] },
    });
    await succeed('revoke_registrar', [String(registrar)]);
    expect(await succeed('status', ['--config', configId])).toMatchObject({ config: { registrars: [] } });
  });

  test('--unsigned sends nothing, and a key without the capability can not change the config', async () => {
    const { json } = await run('update_config', ['--name', 'x', '--unsigned']);
    expect(json).toMatchObject({ status: 'unsigned', transaction: expect.any(String) });
    const stranger = await run('update_config', ['--name', 'x'], operator);
    expect(stranger).toMatchObject({ exit: 1, json: { error: expect.stringContaining('is owned by') } });
    expect(await succeed('status', ['--config', configId])).toMatchObject({ config: { name: 'renamed' } });
  });

  test('the node accepts or refuses the attestation of an emulated enclave', async () => {
    const { json } = await run('register_enclave', [await startEnclave(), '--dry-run', ...root()]);
    trustsRoot = json['code'] === undefined;
    if (!trustsRoot)
      expect(json).toMatchObject({ code: expect.stringMatching(/^SUI_(MOVE_ABORT|EXECUTION|NODE)/) });
    // The model must trust the root: otherwise most of these tests are skipped.
    if (model) expect(trustsRoot).toBe(true);
  });

  test('register_enclave registers several enclaves, and status reports them as registered', async (context) => {
    skipUnlessTrusted(context);
    const urls = [await startEnclave(), await startEnclave()];
    const registered = await succeed('register_enclave', [...urls, ...root()]);
    expect(registered).toMatchObject({ status: 'done', enclaves: [{ enclave: ID }, { enclave: ID }] });
    expect(await succeed('register_enclave', [...urls, ...root()])).toMatchObject({ status: 'unchanged' });
    expect(await succeed('status', [...urls, ...root()])).toMatchObject({
      answering: [{ registration: 'registered' }, { registration: 'registered' }],
      silent: [],
    });
  });

  test('update_weather and submit mint readings', async (context) => {
    skipUnlessTrusted(context);
    const url = await startEnclave();
    await succeed('register_enclave', [url, ...root()]);
    const weatherArguments = ['--from-url', url, '--location', 'Oslo', ...root()];
    expect(await succeed('update_weather', weatherArguments)).toMatchObject({ nft: ID, location: 'Oslo' });
    const body = ['--body', '{"payload":{"location":"Oslo"}}'];
    expect(
      await succeed('submit', ['weather::update_weather', '--url', url, ...body, ...root()]),
    ).toMatchObject({
      created: [{ id: ID, type: expect.stringMatching(/::WeatherNFT$/) }],
    });
  });

  test('a zkLogin user submits a reading', async (context) => {
    skipUnlessTrusted(context);
    if (model) checkAsMainnet(model);
    const session = openZkLoginSession();
    const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
    await fund(session.address);
    const url = await startEnclave();
    await succeed('register_enclave', [url, ...root()]);
    const roots = certificatesFromPem(readFileSync(file('dev-root.pem'), 'utf8'));
    const enclaves = await EnclaveClient.forConfig(client, configId, url, { roots });
    const reading = await enclaves.processData({ location: 'Oslo' }, WeatherResponse);
    const tx = new Transaction();
    const { enclaveId } = reading;
    const appPackage = String((await succeed('publish', ['weather']))['package']);
    tx.transferObjects([updateWeather(tx, { appPackage, enclaveId, configId, reading })], session.address);
    try {
      await session.execute(tx, client);
    } catch (error) {
      const { code } = error as { code: string };
      // The model knows the keys, so it must accept the proof.
      if (model || !['ZKLOGIN_PROOF', 'ZKLOGIN_EXPIRED', 'SUI_NODE_REFUSED'].includes(code)) throw error;
      context.skip(
        `the node does not accept the user's proof (${code}): pass another session by ZKLOGIN_SESSION`,
      );
    }
    // Listings show a transaction later than other reads.
    const owned = async () => {
      const { objects } = await client.core.listOwnedObjects({ owner: session.address });
      return objects.map(({ type }) => type);
    };
    await expect.poll(owned).toContainEqual(expect.stringMatching(/::WeatherNFT$/));
  });

  test('a client trusts an enclave by its registration', async (context) => {
    skipUnlessTrusted(context);
    const url = await startEnclave();
    const { enclave, config } = await succeed('register_enclave', [url, ...root()]);
    const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
    const roots = certificatesFromPem(readFileSync(file('dev-root.pem'), 'utf8'));
    const enclaves = await EnclaveClient.forConfig(client, String(config), url, { roots });
    const answer = await enclaves.processData({ location: 'Oslo' }, WeatherResponse);
    expect(answer).toMatchObject({ data: { location: 'Oslo' }, enclaveId: enclave });
  });

  test('a registrar can register enclaves until it is revoked', async (context) => {
    skipUnlessTrusted(context);
    const { registrar } = await succeed('add_registrar', [operator.toSuiAddress()]);
    const registrarArguments = ['--registrar', String(registrar), ...root()];
    const url = await startEnclave();
    expect(await succeed('register_enclave', [url, ...registrarArguments], operator)).toMatchObject({
      status: 'done',
      registrar,
    });
    await succeed('revoke_registrar', [String(registrar)]);
    const revoked = await run('register_enclave', [await startEnclave(), ...registrarArguments], operator);
    expect(revoked).toMatchObject({ exit: 1, json: { code: 'WOULD_ABORT' } });
  });

  test('rotate makes older enclaves stale: their readings are refused, and anyone can destroy them', async (context) => {
    skipUnlessTrusted(context);
    const [old, successor] = [await startEnclave(), await startEnclave()];
    const { enclave } = await succeed('register_enclave', [old, ...root()]);
    const rotated = await succeed('rotate', [successor, '--again', ...pcrs(), ...root()]);
    expect(rotated).toMatchObject({ status: 'done', enclave: ID });
    const weatherArguments = ['--from-url', old, '--location', 'Oslo', ...root()];
    expect((await run('update_weather', weatherArguments)).json).toMatchObject({ status: 'failed' });
    const destroyed = await succeed('destroy_enclave', [String(enclave)], operator);
    expect(destroyed).not.toHaveProperty('capability');
  });

  test('in an overlap contracts accept the enclaves of two versions, until end_overlap', async (context) => {
    skipUnlessTrusted(context);
    const [old, successor] = [await startEnclave(), await startEnclave()];
    await succeed('register_enclave', [old, ...root()]);
    await succeed('rotate', [successor, '--again', '--overlap', '10', ...pcrs(), ...root()]);
    const weatherArguments = (url: string) => ['--from-url', url, '--location', 'Oslo', ...root()];
    for (const url of [old, successor])
      expect(await succeed('update_weather', weatherArguments(url))).toMatchObject({ nft: ID });
    await succeed('end_overlap', []);
    expect((await run('update_weather', weatherArguments(old))).json).toMatchObject({ status: 'failed' });
    expect(await succeed('update_weather', weatherArguments(successor))).toMatchObject({ nft: ID });
  });

  test('a keeper registers a new enclave, and destroys the stale ones', async (context) => {
    skipUnlessTrusted(context);
    const { registrar } = await succeed('add_registrar', [operator.toSuiAddress()]);
    const url = await startEnclave();
    const { config, enclaves } = await succeed('status', ['--config', configId]);
    const { enclavePackage, pcr0, pcr1, pcr2 } = config as Record<string, string>;
    const stale = (enclaves as { stale: boolean }[]).filter((enclave) => enclave.stale);
    expect(stale.length).toBeGreaterThan(0);
    const yaml = {
      network: 'localnet',
      node: node.url,
      package: enclavePackage,
      config: configId,
      registrar,
      registers: { pcr0, pcr1, pcr2 },
      enclaves: [url],
      root: file('dev-root.pem'),
      gas_a_day: 5_000_000_000,
    };
    const keeper = join(out, 'keeper.yaml');
    writeFileSync(keeper, JSON.stringify(yaml));
    const env = { SUI_PRIVATE_KEY: operator.getSecretKey() };
    const round = await callScript('keeper/keep.ts', [keeper, '--once', '--json'], { env });
    expect(JSON.parse(round.stdout)).toMatchObject({
      status: 'done',
      done: expect.arrayContaining([{ kind: 'register', subject: url, result: 'done' }]),
    });
    expect(await succeed('status', ['--config', configId, url, ...root()])).toMatchObject({
      answering: [{ registration: 'registered' }],
    });
    const laterEnclaves = (await succeed('status', ['--config', configId]))['enclaves'] as {
      stale: boolean;
    }[];
    expect(laterEnclaves.filter((enclave) => enclave.stale)).toEqual([]);
  });

  test('a rollout replaces the enclave of an image by an enclave of the next image', async (context) => {
    skipUnlessTrusted(context);
    const { registrar } = await succeed('add_registrar', [operator.toSuiAddress()]);
    const [old, successor] = [await startImageServer(1), await startImageServer(2)];
    await succeed('register_enclave', [old.url, ...root()]);
    const stopServer = createServer((_, response) => void old.close().then(() => response.end()));
    await once(stopServer.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void stopServer.close());
    const stop = `await fetch('http://127.0.0.1:${(stopServer.address() as AddressInfo).port}')`;
    const noCommand = [['true']];
    const plan = {
      network: 'localnet',
      node: node.url,
      registrar,
      root: file('dev-root.pem'),
      old: { pcrs: file('dev.pcrs'), enclaves: [old.url] },
      new: { pcrs: file('dev.2.pcrs'), enclaves: [successor.url] },
      commands: {
        start: noCommand,
        switch: noCommand,
        switch_back: noCommand,
        stop_new: noCommand,
        stop_old: [[process.execPath, '--input-type=module', '-e', stop]],
      },
      overlap: 10,
      drain: 0,
      settle: 0,
      admin_within: 0,
    };
    writeFileSync(join(out, 'rollout.yaml'), JSON.stringify(plan));
    const env = { SUI_PRIVATE_KEY: operator.getSecretKey(), DEPLOYMENTS: join(out, 'deployments') };
    const roll = async () => {
      const { stdout } = await callScript('rollout/rollout.ts', [join(out, 'rollout.yaml'), '--json'], {
        env,
      });
      return JSON.parse(stdout);
    };
    expect(await roll()).toMatchObject({ code: 'ROLLOUT_AWAITS_ADMIN' });
    await succeed('update_pcrs', ['--pcrs', file('dev.2.pcrs'), '--overlap', '10']);
    expect(await roll()).toMatchObject({
      code: 'ROLLOUT_AWAITS_ADMIN',
      error: expect.stringContaining('end_overlap'),
    });
    const weatherArguments = ['--from-url', successor.url, '--location', 'Oslo', ...root()];
    expect(await succeed('update_weather', weatherArguments)).toMatchObject({ nft: ID });
    await succeed('end_overlap', []);
    expect(await roll()).toMatchObject({ status: 'unchanged' });
    expect(await succeed('status', ['--config', configId, successor.url, ...root()])).toMatchObject({
      config: { overlap: null },
      answering: [{ registration: 'registered' }],
    });
  });

  test('update_pcrs allows another image', async () => {
    const before = (await succeed('status', ['--config', configId]))['config'] as { configVersion: string };
    const nsm = DevelopmentTrust.load(trustFolder(), 'dice');
    nsm.save();
    expect(await succeed('update_pcrs', ['--pcrs', file('dev-dice.pcrs')])).toMatchObject({
      status: 'done',
      configVersion: String(Number(before.configVersion) + 1),
    });
  });

  test('upgrade replaces the package', async () => {
    expect(await succeed('upgrade', ['weather'])).toMatchObject({
      status: 'done',
      package: ID,
      version: '2',
    });
    await succeed('update_config', ['--name', 'upgraded']);
  });

  test('retire_config ends the config', async () => {
    await succeed('retire_config', ['--yes']);
    expect(await succeed('status', ['--config', configId])).toMatchObject({ config: { isRetired: true } });
    const lateUpdate = await run('update_config', ['--name', 'x']);
    expect(lateUpdate).toMatchObject({ exit: 1, json: { code: 'WOULD_ABORT' } });
  });
});
