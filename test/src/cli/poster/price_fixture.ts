/**
 * A chain with the contract of the application template `feed`, and servers of that application, each behind
 * a host that tests can make fail. The test sets the clock of all of them.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bcs } from '@mysten/sui/bcs';
import { fromHex } from '@mysten/sui/utils';
import { dumpMovePackage } from '@zktx.io/sui-move-builder/full';
import { onTestFinished, vi } from 'vitest';
import { derivedFiles, filesInClone, writeFiles } from '../../../../src/create/template.ts';
import {
  applicationType,
  createEnclaveConfig,
  parsePcrs,
  registerEnclave,
} from '../../../../src/library/sui/index.ts';
import { type Fakes, listenOnLoopback } from '../../../../src/testing/fakes.ts';
import { startServer, type TestServer } from '../../../../src/testing/start_server.ts';
import { compileForPublishing } from '../../../../src/toolchain/move/bytecode.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';
import { publishLineage, send } from '../../devnet/package_lineage.ts';
import { ChainFixture } from '../sui/chain_fixture.ts';
import { Posters } from './poster_fixture.ts';

/** Period of the application's task, in milliseconds. */
export const PERIOD = 10_000;

/** Answer of an exchange: see `stand_in.ts` of the template. */
export interface Market {
  readonly dollars: string;
  readonly timeMs: number;
}

/** A value in millionths of a dollar, and its time in milliseconds since 1970. */
export interface Quote {
  readonly value: bigint;
  readonly timestampMs: bigint;
}

/** An update of the feed on chain. */
export interface Update extends Quote {
  readonly enclaveIds: readonly string[];
}

const Signed = bcs.struct('SignedValue', {
  config_id: bcs.Address,
  config_version: bcs.u64(),
  enclave_id: bcs.Address,
  value: bcs.u64(),
  timestamp_ms: bcs.u64(),
});
const FeedUpdated = bcs.struct('FeedUpdated', {
  feed_id: bcs.Address,
  value: bcs.u64(),
  timestamp_ms: bcs.u64(),
  signed: bcs.vector(Signed),
});

/** A server of the application in an emulated enclave, with sources of its own. */
export interface PriceEnclave {
  readonly server: TestServer;
  /** Runs the task once in each period of this time. */
  passTime(ms: number): Promise<void>;
  /** Asks the server itself for its last quote. */
  readQuote(): Promise<Quote | undefined>;
  stop(): Promise<void>;
}

/** A parent instance, which forwards the requests that it gets to its enclave. */
export class Host {
  readonly url: string;
  enclave: PriceEnclave | undefined;
  isReachable = true;
  /** Changes answers other than attestations. */
  lie = (body: string): string => body;

  private constructor(url: string) {
    this.url = url;
  }

  static async start(): Promise<Host> {
    let host: Host | undefined;
    const { origin, close } = await listenOnLoopback((request, response) => {
      host?.forward(request, response).catch(() => request.socket.destroy());
    });
    onTestFinished(close);
    host = new Host(origin);
    return host;
  }

  async forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    if (!this.isReachable || this.enclave === undefined) return void request.socket.destroy();
    const answer = await fetch(this.enclave.server.url + path, {
      method,
      headers: { 'content-type': headers['content-type'] ?? 'application/json' },
      ...(method === 'POST' && { body: await buffer(request) }),
    });
    const body = await answer.text();
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(path.startsWith('/get_attestation') ? body : this.lie(body));
  }
}

export class PriceFixture extends Posters {
  readonly configId: string;
  readonly feedId: string;
  readonly #folder: string;
  readonly #packageId: string;
  readonly #capId: string;
  /** All updates of the feed, in the order of the chain. */
  readonly updates: readonly Update[];

  private constructor(
    chain: ChainFixture,
    time: { now: number },
    ids: { folder: string; packageId: string; capId: string; configId: string; feedId: string },
    updates: readonly Update[],
  ) {
    super(chain, time);
    this.#folder = ids.folder;
    this.#packageId = ids.packageId;
    this.#capId = ids.capId;
    this.configId = ids.configId;
    this.feedId = ids.feedId;
    this.updates = updates;
  }

  /**
   * Starts a fixture that ends with the test. Until then, `Date` changes only by `pass`.
   *
   * @param now beginning of the test, in milliseconds since 1970
   */
  static async start(now: number): Promise<PriceFixture> {
    vi.useFakeTimers({ toFake: ['Date'], now });
    onTestFinished(() => void vi.useRealTimers());
    const chain = await ChainFixture.start();
    onTestFinished(() => chain.close());
    const time = { now };
    chain.node.executor.now = () => time.now;
    const updates = observeUpdates(chain);
    const { packageId, created } = await publishLineage(chain, await priceModules());
    const capId = created.find(({ type }) => type.includes('::enclave::EnclaveCap<'))?.id ?? '';
    const call = { enclavePackage: packageId, application: applicationType(packageId, 'price', 'PRICE') };
    const image = parsePcrs(chain.createNsm('price').pcrsFile());
    const config = await send(chain, (tx) =>
      createEnclaveConfig(tx, { ...call, capId, name: 'price', image }),
    );
    const configId = config.created.find(({ type }) => type.includes('EnclaveConfig<'))?.id ?? '';
    const feed = await send(chain, (tx) => {
      tx.moveCall({
        target: `${packageId}::price::open`,
        arguments: [tx.object(capId), tx.object(configId)],
      });
    });
    const feedId = feed.created.find(({ type }) => type.includes('::feed::Feed<'))?.id ?? '';
    const ids = { folder: writeApplication(), packageId, capId, configId, feedId };
    return new PriceFixture(chain, time, ids, updates);
  }

  get target(): string {
    return `${this.#packageId}::price::update`;
  }

  /** Moves the clock of the chain, of the posters, and of `Date`. */
  pass(ms: number): void {
    this.time.now += ms;
    vi.setSystemTime(this.time.now);
  }

  /** Starts an enclave of the config's image. @param read returns the answer of a host's exchange */
  async enclave(read: (host: string) => Market | undefined): Promise<PriceEnclave> {
    const application = pathToFileURL(`${this.#folder}/`);
    const { start } = (await import(new URL('stand_in.ts', application).href)) as FakeExchanges;
    const { origins, secrets, close } = await start(read);
    onTestFinished(close);
    const nsm = this.chain.createNsm('price', 1, () => this.time.now);
    const server = await startServer({ application, origins, secrets, nsm });
    return {
      server,
      passTime: (ms) => server.passTime(ms),
      readQuote: () => readQuote(server),
      stop: () => server.close(),
    };
  }

  /** Registers an enclave. @returns its id */
  async register({ server }: PriceEnclave): Promise<string> {
    const { attestation } = (await (await server.get('/get_attestation')).json()) as { attestation: string };
    const { created } = await send(this.chain, (tx) =>
      registerEnclave(tx, {
        enclavePackage: this.#packageId,
        application: applicationType(this.#packageId, 'price', 'PRICE'),
        configId: this.configId,
        capId: this.#capId,
        attestation: fromHex(attestation),
      }),
    );
    return created.find(({ type }) => type.includes('::enclave::Enclave<'))?.id ?? '';
  }

  content(urls: readonly string[]): Record<string, unknown> {
    return {
      node: this.chain.node.url,
      function: this.target,
      body: { payload: {} },
      config: this.configId,
      objects: [this.feedId],
      enclaves: urls,
      expected_aborts: ['feed::ENotNewer', 'feed::ETooSoon', 'feed::ENotDue'],
      root: this.chain.file('root.pem'),
      gas_an_hour: 1_000_000_000,
      gas_a_day: 10_000_000_000,
    };
  }
}

interface FakeExchanges {
  start(read: (host: string) => Market | undefined): Promise<Fakes>;
}

interface Answer {
  readonly response?: { readonly timestamp_ms: number; readonly data: { readonly value: number } };
}

async function readQuote(server: TestServer): Promise<Quote | undefined> {
  const { response } = (await (await server.post('/process_data', { payload: {} })).json()) as Answer;
  if (response === undefined) return undefined;
  return { value: BigInt(response.data.value), timestampMs: BigInt(response.timestamp_ms) };
}

/** Returns a list to which each update of a feed is added when the chain executes it. */
function observeUpdates({ node }: ChainFixture): readonly Update[] {
  const updates: Update[] = [];
  const record = node.events.record.bind(node.events);
  node.events.record = (...args) => {
    const events = record(...args);
    for (const { eventType = '', contents } of events) {
      if (!eventType.includes('::feed::FeedUpdated<')) continue;
      const { value, timestamp_ms, signed } = FeedUpdated.parse(contents?.value ?? new Uint8Array());
      const enclaveIds = signed.map(({ enclave_id }) => enclave_id);
      updates.push({ value: BigInt(value), timestampMs: BigInt(timestamp_ms), enclaveIds });
    }
    return events;
  };
  return updates;
}

/** Writes the application into a folder of this repository, so that its imports are found. */
function writeApplication(): string {
  const build = fileURLToPath(new URL('../../../../build/', import.meta.url));
  mkdirSync(build, { recursive: true });
  const folder = mkdtempSync(join(build, 'price-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFiles(folder, filesInClone('feed', 'price'));
  return join(folder, 'src/apps/price');
}

let compiled: Promise<readonly Uint8Array[]> | undefined;

/** Compiles `move/enclave`, `move/feed` and the template's contract, as one package. */
function priceModules(): Promise<readonly Uint8Array[]> {
  compiled ??= compilePrice();
  return compiled;
}

async function compilePrice(): Promise<readonly Uint8Array[]> {
  const framework = chooseFramework({});
  const { modules } = await compileForPublishing('feed', framework, 'devnet', { again: true });
  const sources = [...filesInClone('feed', 'price'), ...derivedFiles('feed', 'price')].flatMap(
    ([path, content]) => (/^move\/price\/(?!tests\/)/.test(path) ? [[path.slice(11), content]] : []),
  );
  const price = await dumpMovePackage({
    files: Object.fromEntries(sources),
    fetcher: framework.fetcher,
    network: 'devnet',
    lintFlag: 'all',
    ansiColor: false,
    withUnpublishedDependencies: true,
  });
  if ('error' in price) throw new Error(price.error);
  if (price.warnings) throw new Error(price.warnings);
  return [...modules, ...price.modules].map((module) => Buffer.from(module, 'base64'));
}
