/**
 * Runs the world around the keeper and the poster: a model of a Sui node with a config, and enclaves of the
 * weather application with a fake upstream. This process carries out `GET /COMMAND?PARAMETERS` on port 4000.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { GrpcTypes } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { Chain } from '../../../src/cli/sui/chain.ts';
import { loadApplication } from '../../../src/server/application/load_application.ts';
import { boot, type RunningServer } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/service/log.ts';
import { listenOnLoopback } from '../../../src/testing/fakes.ts';
import { KeeperFixture } from '../../src/cli/keeper/keeper_fixture.ts';
import { type Lie, LyingNode } from '../../src/cli/keeper/lying_node.ts';
import { ofConfig, PACKAGE } from '../../src/cli/sui/chain_fixture.ts';

/** Settings of the keeper, the poster and the admin, in a form that JSON can carry. */
export interface Facts {
  /** Content of `keeper.yaml`, without URLs and root. */
  readonly keeper: Record<string, unknown>;
  /** Content of `poster.yaml`, without URLs and root. */
  readonly poster: Record<string, unknown>;
  /** URL of a node that swallows transactions, and claims that they were executed. */
  readonly swallowingNode: string;
  /** URL of a node whose clock is an hour behind, and whose gas price is too high for the poster. */
  readonly outdatedNode: string;
  readonly rootPem: string;
  readonly pcrs: string;
  /** Private keys of the keeper, of the poster, which has no SUI yet, and of the admin, as `suiprivkey…`. */
  readonly operatorKey: string;
  readonly posterKey: string;
  readonly adminKey: string;
}

const APPS = new URL('../../../src/apps/', import.meta.url);
const MINUTE_MS = 60_000;
/** Balance of each coin of the poster, in MIST. */
const COIN = 10_000_000_000n;
const CLOCK = normalizeSuiAddress('0x6');
/** Offset of the time in the content of the clock, after its id. */
const CLOCK_TIME = 32;
/** Gas of transactions after `raise_gas`, in MIST: more than `gas_budget` allows by default. */
const RAISED_GAS = 75_000_000n;

/** Its root is valid from 12 hours ago on, since the clock of an enclave's NSM may be hours behind. */
const fixture = await KeeperFixture.start(new Date(Date.now() - 12 * 60 * MINUTE_MS));
const { chain, operator } = fixture;
const enclaves = new Map<string, RunningServer>();
const poster = new Ed25519Keypair();

const isClock = ({ result }: GrpcTypes.GetObjectResult) =>
  result.oneofKind === 'object' && result.object.objectId === CLOCK;

/** Shows the chain's clock as it was an hour ago. */
const showOldClock: Lie = (answer) => {
  const response = GrpcTypes.BatchGetObjectsResponse.fromBinary(answer);
  for (const { result } of response.objects.filter(isClock)) {
    const content = result.oneofKind === 'object' ? result.object.contents?.value : undefined;
    if (content === undefined) continue;
    const { buffer, byteOffset } = content;
    new DataView(buffer, byteOffset).setBigUint64(CLOCK_TIME, BigInt(Date.now() - 60 * MINUTE_MS), true);
  }
  return GrpcTypes.BatchGetObjectsResponse.toBinary(response);
};

const showHighPrice: Lie = (answer) => {
  const { epoch } = GrpcTypes.GetEpochResponse.fromBinary(answer);
  return GrpcTypes.GetEpochResponse.toBinary({ epoch: { ...epoch, referenceGasPrice: 100_000n } });
};

const swallowing = await LyingNode.start(chain.node);
swallowing.swallows = true;
const outdated = await LyingNode.start(chain.node);
outdated.lies.set('BatchGetObjects', showOldClock).set('GetEpoch', showHighPrice);

/** Time of the last reading at any place, in Unix time. */
let readingSeconds = Math.floor(Date.now() / 1000) - 60;
/** Number of coming requests, each of which gets a newer reading. */
let renewals = 0;
const upstream = await listenOnLoopback((_request, response) => {
  if (renewals > 0) {
    renewals -= 1;
    readingSeconds += 1;
  }
  const current = { last_updated_epoch: readingSeconds, temp_c: 13 };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ current }));
});

/** Starts an enclave with a new key, in place of the enclave at the port. @returns the key in hexadecimal */
async function startEnclave({
  port = '',
  age_minutes = '0',
  provisioner,
}: Record<string, string>): Promise<string> {
  await enclaves.get(port)?.close();
  const secrets = provisioner === undefined ? { API_KEY: 'none' } : { SECRETS: 'sealed' };
  const env = {
    APP: 'weather',
    PORT: port,
    SHUTDOWN_GRACE_MS: '0',
    WEATHER_CACHE_SECONDS: '0',
    ...secrets,
  };
  const config = readServerConfig(env);
  const { manifest, ...application } = await loadApplication(APPS, config.app);
  const nsm = chain.createNsm('weather', 1, () => Date.now() - Number(age_minutes) * MINUTE_MS);
  const provisioners = provisioner === undefined ? [] : [provisioner];
  const origins = { 'api.weatherapi.com': upstream.origin };
  const options = { config, env, log: createLog('silent'), nsm, origins, ...application };
  const server = await boot({ ...options, manifest: { ...manifest, provisioners } });
  enclaves.set(port, server);
  return Buffer.from(server.publicKey).toString('hex');
}

async function destroyAll(): Promise<string> {
  const ids = await fixture.ids();
  for (const id of ids) await chain.destroy(id, fixture.configId, fixture.capId);
  return `${ids.length} destroyed`;
}

function describeFacts(): string {
  const { root: _root, enclaves: _enclaves, ...keeper } = fixture.content([]);
  const facts: Facts = {
    keeper,
    poster: {
      node: chain.node.url,
      function: `${PACKAGE}::weather::update_weather`,
      struct: 'WeatherResponse',
      body: { payload: { location: 'Oslo' } },
      config: fixture.configId,
      gas_an_hour: 10_000_000_000,
      gas_a_day: 10_000_000_000,
    },
    swallowingNode: swallowing.url,
    outdatedNode: outdated.url,
    rootPem: readFileSync(chain.file('root.pem'), 'utf8'),
    pcrs: readFileSync(chain.file('dev.pcrs'), 'utf8'),
    operatorKey: operator.key.getSecretKey(),
    posterKey: poster.getSecretKey(),
    adminKey: chain.admin.getSecretKey(),
  };
  return JSON.stringify(facts);
}

/** Registers the enclave at a port, as an admin does. @returns its id */
async function register({ port = '' }: Record<string, string>): Promise<string> {
  return await chain.register(fixture.configId, fixture.capId, `http://127.0.0.1:${port}`);
}

/** Sends the poster a coin of SUI. */
function givePoster(): string {
  chain.node.ledger.give(poster.toSuiAddress(), COIN);
  return 'given';
}

/** Ends two epochs, after which transactions that were signed before can't be executed. */
function passEpochs(): string {
  chain.node.epoch += 2n;
  return 'passed';
}

/**
 * Makes transactions cost more gas than their simulations show, as if others had changed objects after the
 * simulation.
 */
function raiseGas(): string {
  const { executor } = chain.node;
  const execute = executor.execute.bind(executor);
  executor.execute = async (...transaction) => {
    executor.gasNeeded = RAISED_GAS;
    try {
      return await execute(...transaction);
    } finally {
      executor.gasNeeded = undefined;
    }
  };
  return 'raised';
}

/** Makes the node reset each call that sends a transaction, and not execute it. */
function breakSending(): string {
  chain.node.faults.set('ExecuteTransaction', 'reset');
  return 'broken';
}

/** Repairs the node, and uses the poster's coin, as another process with the same key would. */
async function spendCoin(): Promise<string> {
  chain.node.faults.clear();
  const sender = new Chain({ 'rpc-url': chain.node.url }, { SUI_PRIVATE_KEY: poster.getSecretKey() });
  const tx = new Transaction();
  tx.transferObjects([tx.splitCoins(tx.gas, [1])], chain.address);
  await sender.submit(tx, { title: '', fields: {}, report: () => ({}) });
  return 'spent';
}

/**
 * Makes the upstream answer with a newer reading, and raises its time again at each of the next `requests`.
 *
 * @returns the new time, as the poster logs it
 */
function renewReading({ requests = '0' }: Record<string, string>): string {
  readingSeconds = Math.max(readingSeconds + 1, Math.floor(Date.now() / 1000));
  renewals = Number(requests);
  return new Date(1000 * readingSeconds).toISOString();
}

async function obey(command: string, parameters: Record<string, string>): Promise<string> {
  if (command === '/facts') return describeFacts();
  if (command === '/start') return await startEnclave(parameters);
  if (command === '/register') return await register(parameters);
  if (command === '/give_poster') return givePoster();
  if (command === '/pass_epochs') return passEpochs();
  if (command === '/raise_gas') return raiseGas();
  if (command === '/break_sending') return breakSending();
  if (command === '/spend_coin') return await spendCoin();
  if (command === '/renew_reading') return renewReading(parameters);
  if (command === '/destroy') return await destroyAll();
  if (command === '/max_key_age') {
    const options = [...ofConfig(fixture.configId), '--max-key-age', String(parameters['hours'])];
    return JSON.stringify(await chain.done('update_config', ...options));
  }
  return 'unknown command';
}

createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://world');
  obey(pathname, Object.fromEntries(searchParams)).then(
    (text) => response.end(text),
    (error) => response.writeHead(500).end(String(error)),
  );
}).listen(4000, '127.0.0.1');
