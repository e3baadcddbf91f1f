/** A chain with a board, enclaves that are registered for it, and posters, each with its own key. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bcs } from '@mysten/sui/bcs';
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { onTestFinished } from 'vitest';
import { parsePosterFile } from '../../../../src/cli/poster/file.ts';
import { createPoster } from '../../../../src/cli/poster/post.ts';
import type { Report } from '../../../../src/cli/poster/round.ts';
import { Changes } from '../../../../src/devnet/ledger.ts';
import { FakeEnclave } from '../../library/client/fake_enclave.ts';
import { callScript } from '../run.ts';
import { ChainFixture, PACKAGE } from '../sui/chain_fixture.ts';
import { boardModules } from './board_package.ts';

export const MINUTE = 60_000;
export const BUDGET = 50_000_000n;
export const TARGET = `${PACKAGE}::board::write`;

const Board = bcs.struct('Board', {
  id: bcs.Address,
  timestamp_ms: bcs.u64(),
  temperature: bcs.u64(),
  writes: bcs.u64(),
});

/** A poster that a test runs round by round. */
export interface TestPoster {
  readonly key: Ed25519Keypair;
  readonly path: string;
  /** Runs one round of the poster. */
  round(stop?: AbortSignal): Promise<Report>;
  /** Runs a round, and returns the results of its transactions and the codes of its alerts. */
  outcome(): Promise<[results: string[], codes: string[]]>;
  spent(code?: 'GAS_AN_HOUR' | 'GAS_A_DAY'): bigint;
}

export interface PosterOptions {
  readonly key?: Ed25519Keypair;
  /** Path of the file, for a process that starts again. */
  readonly path?: string;
  readonly content?: object;
  /** Name of a new folder for the files that the poster keeps. */
  readonly folder?: string;
}

/** A server from which posters request values. */
export interface ValueServer {
  readonly url: string;
}

let files = 0;

/** Posters on a chain, with keys and files of their own. */
export abstract class Posters {
  readonly chain: ChainFixture;
  /** Clock of the chain and the posters, in milliseconds since 1970. */
  readonly time: { now: number };

  protected constructor(chain: ChainFixture, time: { now: number }) {
    this.chain = chain;
    this.time = time;
  }

  /** Returns the content of a file for these URLs. JSON is YAML too. */
  abstract content(urls: readonly string[]): Record<string, unknown>;

  /** Creates a key with coins of SUI. @param coins balances in MIST */
  createKey(...coins: readonly bigint[]): Ed25519Keypair {
    const key = new Ed25519Keypair();
    for (const balance of coins) this.chain.node.ledger.give(key.toSuiAddress(), balance);
    return key;
  }

  /** Creates a poster from its files, as a new process does. */
  async poster(
    enclaves: readonly ValueServer[],
    { key = this.createKey(1_000_000_000n), folder = '', ...options }: PosterOptions = {},
  ): Promise<TestPoster> {
    const { path = this.createPath(folder), content = {} } = options;
    const urls = enclaves.map(({ url }) => url);
    const file = parsePosterFile(JSON.stringify({ ...this.content(urls), ...content }), path);
    const { poster, gas } = await createPoster(file, {
      path,
      signing: {},
      files: { record: `${path}.record.json`, transactions: `${path}.transactions.json` },
      env: { SUI_PRIVATE_KEY: key.getSecretKey(), DEPLOYMENTS: this.chain.file('deployments') },
      now: () => this.time.now,
      clock: () => this.time.now,
    });
    const round = (stop = new AbortController().signal) => poster.round(stop);
    return {
      key,
      path,
      round,
      outcome: async () => {
        const { done, alerts } = await round();
        return [done.map(({ result }) => result), alerts.map(({ code }) => code)];
      },
      spent: (code) => gas.spent(code),
    };
  }

  protected createPath(folder: string): string {
    files += 1;
    mkdirSync(this.chain.file(folder), { recursive: true });
    return this.chain.file(join(folder, `poster${files}.yaml`));
  }
}

export class PosterFixture extends Posters {
  readonly capId: string;
  readonly configId: string;
  readonly boardId: string;

  private constructor(
    chain: ChainFixture,
    capId: string,
    configId: string,
    boardId: string,
    time: { now: number },
  ) {
    super(chain, time);
    this.capId = capId;
    this.configId = configId;
    this.boardId = boardId;
  }

  /** Starts a fixture that ends with the test. */
  static async start(): Promise<PosterFixture> {
    const chain = await ChainFixture.start();
    onTestFinished(() => chain.close());
    const time = { now: Date.now() };
    const { node } = chain;
    node.executor.now = () => time.now;
    const capId = chain.publish();
    node.ledger.packages.set(PACKAGE, { ...chain.weather, modules: await boardModules() });
    const configId = await chain.config(capId);
    const changes = new Changes(node.ledger, 'board');
    const boardId = changes.create(`${PACKAGE}::board::Board`, changes.shared(), (id) =>
      Board.serialize({ id, timestamp_ms: 0, temperature: 0, writes: 0 }).toBytes(),
    );
    node.ledger.commit('board', changes);
    return new PosterFixture(chain, capId, configId, boardId, time);
  }

  /** Passes time, and has these enclaves sign at the new time. */
  pass(ms: number, ...enclaves: readonly FakeEnclave[]): void {
    this.time.now += ms;
    for (const enclave of enclaves) enclave.timestampMs = BigInt(this.time.now);
  }

  /** Starts an enclave of the image that ends with the test. */
  async enclave({ isRegistered = true } = {}): Promise<FakeEnclave> {
    const nsm = this.chain.createNsm('weather', 1, () => this.time.now);
    const enclave = await FakeEnclave.start(nsm);
    onTestFinished(() => enclave.close());
    enclave.timestampMs = BigInt(this.time.now);
    if (isRegistered) await this.register(enclave);
    return enclave;
  }

  async register({ url }: FakeEnclave): Promise<string> {
    return await this.chain.register(this.configId, this.capId, url);
  }

  /** Writes a deployment file of weather. @returns the properties of a file that uses it */
  writeDeployment(): Record<string, unknown> {
    const weather = {
      package: PACKAGE,
      original: PACKAGE,
      module: 'weather',
      config: { id: this.configId, name: 'weather', version: 1 },
      registrars: [],
      enclaves: [],
    };
    const deployment = { network: 'localnet', chain: '2a2a2a2a', applications: { weather } };
    mkdirSync(this.chain.file('deployments'));
    writeFileSync(this.chain.file('deployments/localnet.json'), JSON.stringify(deployment));
    return { network: 'localnet', config: undefined, objects: undefined };
  }

  content(urls: readonly string[]): Record<string, unknown> {
    return {
      node: this.chain.node.url,
      function: TARGET,
      body: { payload: { location: 'Oslo' } },
      config: this.configId,
      objects: [this.boardId],
      enclaves: urls,
      root: this.chain.file('root.pem'),
      gas_an_hour: 1_000_000_000,
      gas_a_day: 10_000_000_000,
    };
  }

  /** Runs the command for these enclaves, with its file in a folder of its own. */
  async run(
    enclaves: readonly FakeEnclave[],
    args: readonly string[],
  ): Promise<{ exit: number | null; stdout: string; files: string[] }> {
    const path = this.createPath(`command${files}`);
    const urls = enclaves.map(({ url }) => url);
    writeFileSync(path, JSON.stringify({ ...this.content(urls), root: '../root.pem' }));
    const env = { SUI_PRIVATE_KEY: this.createKey(1_000_000_000n).getSecretKey() };
    const { status, stdout, stderr } = await callScript('poster/post.ts', [path, ...args], { env });
    if ((stdout + stderr).includes('suiprivkey')) throw new Error('it prints its key');
    return {
      exit: status,
      stdout,
      files: readdirSync(dirname(path)).filter((name) => name !== basename(path)),
    };
  }

  /** Returns the 32 bytes of a poster's private key. */
  decodeSecret({ key }: Pick<TestPoster, 'key'>): Uint8Array {
    return decodeSuiPrivateKey(key.getSecretKey()).secretKey;
  }

  /** Returns the board's content. */
  board(): { readonly timestampMs: bigint; readonly writes: number } {
    const object = this.chain.node.ledger.objects.get(this.boardId);
    const { timestamp_ms, writes } = Board.parse(object?.content ?? new Uint8Array());
    return { timestampMs: BigInt(timestamp_ms), writes: Number(writes) };
  }

  /** Number of executed transactions, without the gifts of the model. */
  get sent(): number {
    return this.chain.node.ledger.executed.filter((digest) => digest !== 'gift').length;
  }
}

/** Returns the text of the files that a poster keeps. */
export function readPosterFiles({ path }: TestPoster): string {
  return ['record', 'transactions']
    .map((name) => `${path}.${name}.json`)
    .map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : ''))
    .join('');
}
