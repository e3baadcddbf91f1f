/** The enclaves and posters of an hour of the template `feed`, which fail as `feed_hour_faults.ts` says. */
import { readFileSync } from 'node:fs';
import { bcs } from '@mysten/sui/bcs';
import type { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { fromBase64 } from '@mysten/sui/utils';
import { expect } from 'vitest';
import * as faults from './feed_hour_faults.ts';
import { BUDGET, type TestPoster } from './poster_fixture.ts';
import { type Host, PERIOD, type PriceEnclave, type PriceFixture, type Quote } from './price_fixture.ts';

const GAS = 2_000_000_000n;
/** Numbers of the posters' gas coins. */
const COINS = [4, 2];
/** Limits of an hour's gas. The second poster reaches its limit before the hour is over. */
const LIMITS = [130n * BUDGET, 25n * BUDGET];

/** An enclave, and the quotes that it must have signed. */
export class Signer {
  readonly index: number;
  readonly host: Host;
  readonly #fixture: PriceFixture;
  #enclave: PriceEnclave | undefined;
  /** Id on chain; undefined until the enclave is registered. */
  id: string | undefined;
  /** All quotes of the present enclave, in their order. */
  #quotes: Quote[] = [];
  /** All quotes of the registered enclaves, by the ids of the enclaves. */
  readonly signed = new Map<string, readonly Quote[]>();
  #reads = 0;
  #period = 0;
  /** Failures of the task in a row, and the period of its next run, by the rules of tasks. */
  #failures = 0;
  #next = 0;

  constructor(fixture: PriceFixture, index: number, host: Host) {
    this.#fixture = fixture;
    this.index = index;
    this.host = host;
  }

  async start(period: number): Promise<void> {
    this.#period = period;
    this.#next = period;
    this.#failures = 0;
    this.#quotes = [];
    this.#enclave = await this.#fixture.enclave((host) => {
      this.#reads += 1;
      return faults.readMarket(host, this.index, this.#period);
    });
    this.host.enclave = this.#enclave;
    await this.#run(0);
  }

  async register(): Promise<void> {
    if (this.#enclave === undefined) throw new Error('no enclave runs');
    this.id = await this.#fixture.register(this.#enclave);
    this.signed.set(this.id, this.#quotes);
  }

  async stop(): Promise<void> {
    await this.#enclave?.stop();
    this.#enclave = undefined;
    this.host.enclave = undefined;
    this.id = undefined;
  }

  async passPeriod(period: number): Promise<void> {
    this.#period = period;
    if (this.#enclave !== undefined) await this.#run(PERIOD);
  }

  /** Sets whether the host fails, and whether it changes answers, in this step. */
  setHost(step: number): void {
    this.host.isReachable = faults.isHostReachable(this.index, step);
    const isLying = faults.isHostLying(this.index, step);
    this.host.lie = (body) => (isLying ? body.replace(/"value":1/, '"value":2') : body);
  }

  /** Returns the last quote if the host passes it on unchanged; otherwise undefined. */
  findDeliveredQuote(step: number): Quote | undefined {
    const isHonest = this.host.isReachable && !faults.isHostLying(this.index, step);
    return this.id !== undefined && isHonest ? this.#quotes.at(-1) : undefined;
  }

  /** Lets the task run, and compares the quote that it signed with the readings of its sources. */
  async #run(ms: number): Promise<void> {
    const reads = this.#reads;
    await this.#enclave?.passTime(ms);
    expect(this.#reads > reads).toBe(this.#period === this.#next);
    const quote = await this.#enclave?.readQuote();
    if (this.#period !== this.#next) return expect(quote).toEqual(this.#quotes.at(-1));
    const readings = faults.listHonestReadings(this.index, this.#period);
    const hasMajority = readings.length >= 2;
    this.#failures = hasMajority ? 0 : this.#failures + 1;
    // Each pause after failures is twice as long as the one before.
    this.#next += Math.min(2 ** Math.max(0, this.#failures - 1), 30);
    if (!hasMajority) return expect(quote).toEqual(this.#quotes.at(-1));
    if (quote === undefined) throw new Error('the enclave has signed nothing');
    const values = readings.map(({ value }) => value);
    expect(values.some((value) => value <= quote.value)).toBe(true);
    expect(values.some((value) => value >= quote.value)).toBe(true);
    const times = readings.map(({ timestampMs }) => timestampMs);
    expect(quote.timestampMs).toBe(times.reduce((oldest, time) => (time < oldest ? time : oldest)));
    this.#quotes.push(quote);
  }
}

/** Two posters as processes that end and start again from their files. */
export class PosterPair {
  readonly #fixture: PriceFixture;
  readonly #hosts: readonly Host[];
  readonly #keys: readonly Ed25519Keypair[];
  readonly #posters: (TestPoster | undefined)[] = [];
  /** Numbers of transactions in flight after the last round. */
  readonly #inFlight: number[] = [];
  /** Codes of all alerts and warnings. */
  readonly codes = new Set<string>();
  /** Number of processes that started while a transaction of the process before was in flight. */
  startsInFlight = 0;
  /** Digests of all signed transactions, by the coins and versions that pay for them. */
  readonly payments = new Map<string, Set<string>>();
  readonly #digests = COINS.map(() => new Set<string>());

  constructor(fixture: PriceFixture, hosts: readonly Host[]) {
    this.#fixture = fixture;
    this.#hosts = hosts;
    this.#keys = COINS.map((coins) => fixture.createKey(...Array<bigint>(coins).fill(GAS)));
    const { node } = fixture.chain;
    const { verify } = node;
    node.verify = async (transaction, signature, sender, scope) => {
      await verify(transaction, signature, sender, scope);
      this.#collect(transaction);
    };
  }

  /** Records a signed transaction of a poster, which the node received or a file contains. */
  #collect(transaction: Uint8Array): void {
    const { V1 } = bcs.TransactionData.parse(transaction);
    const index = this.#keys.findIndex((key) => key.toSuiAddress() === V1.sender);
    if (index < 0) return;
    const digest = TransactionDataBuilder.getDigestFromBytes(transaction);
    this.#digests[index]?.add(digest);
    for (const { objectId, version } of V1.gasData.payment) {
      const payment = `${objectId} ${version}`;
      this.payments.set(payment, (this.payments.get(payment) ?? new Set()).add(digest));
    }
  }

  get inFlight(): number {
    return this.#inFlight.reduce((sum, number) => sum + number, 0);
  }

  /** Returns the indices of the posters that run in this step and may sign another transaction. */
  #listReady(step: number): readonly number[] {
    return [0, 1].filter((index) => {
      const spent = this.#posters[index]?.spent() ?? 0n;
      return faults.isPosterUp(index, step) && spent + BUDGET <= (LIMITS[index] ?? 0n);
    });
  }

  /** Returns what prevents both posters from writing a new quote in this step; undefined if nothing does. */
  findObstacle(step: number): 'posters' | 'node' | undefined {
    const ready = this.#listReady(step);
    if (ready.length === 0) return 'posters';
    return ready.some((index) => faults.canExecute(step, this.#inFlight[index] ?? 0)) ? undefined : 'node';
  }

  /** Runs a round of each poster whose process runs. */
  async round(step: number): Promise<void> {
    const indices = [0, 1].filter((index) => faults.isPosterUp(index, step));
    await Promise.all(indices.map((index) => this.#runRound(index, step)));
  }

  async #runRound(index: number, step: number): Promise<void> {
    if (this.#posters[index] === undefined || faults.isPosterNew(index, step)) await this.#start(index);
    const report = await this.#posters[index]?.round();
    const { path = '' } = this.#posters[index] ?? {};
    const { pending } = JSON.parse(readFileSync(`${path}.transactions.json`, 'utf8')) as TransactionsFile;
    for (const { transaction } of pending) this.#collect(fromBase64(transaction));
    this.#inFlight[index] = report?.inFlight ?? 0;
    for (const { code } of report?.alerts ?? []) this.codes.add(code);
  }

  /** Starts a process, from the files of the process before. */
  async #start(index: number): Promise<void> {
    const { path } = this.#posters[index] ?? {};
    if ((this.#inFlight[index] ?? 0) > 0) this.startsInFlight += 1;
    const content = { gas_an_hour: Number(LIMITS[index]) };
    const key = this.#keys[index] ?? this.#fixture.createKey();
    const options = { key, content, ...(path !== undefined && { path }) };
    this.#posters[index] = await this.#fixture.poster(this.#hosts, options);
  }

  /**
   * Returns the gas of each poster in MIST: its limit, its count, the budgets it signed, and what it paid.
   */
  countGas(): readonly Readonly<Record<'limit' | 'counted' | 'budgets' | 'paid', bigint>>[] {
    const { ledger } = this.#fixture.chain.node;
    return this.#keys.map((key, index) => {
      const coins = ledger.owned(key.toSuiAddress());
      const balance = coins.reduce((sum, coin) => sum + ledger.balanceOf(coin), 0n);
      return {
        limit: LIMITS[index] ?? 0n,
        counted: this.#posters[index]?.spent() ?? 0n,
        budgets: BUDGET * BigInt(this.#digests[index]?.size ?? 0),
        paid: GAS * BigInt(COINS[index] ?? 0) - balance,
      };
    });
  }
}

/** The file with a poster's transactions in flight. */
interface TransactionsFile {
  readonly pending: readonly { readonly transaction: string }[];
}
