/** A poster: in each round, it settles its transactions, asks the enclaves, and posts the newest value. */
import { type EnclaveError, isEnclaveError } from 'sui-enclave/errors';
import { MoveAbortError, SuiError } from 'sui-enclave/sui/errors';
import { quantity } from 'sui-enclave/wording';
import { type GasBudget, GasLimitError } from '../rounds/budget.ts';
import { type Alert, type AlertCode, createAlert } from './alerts.ts';
import { PosterFileError } from './file.ts';
import type { ChainState, Coin, PosterNode, Value } from './node.ts';
import { describePost, type Pending, type Transactions } from './transactions.ts';

/** Maximum number of gas coins, each with one transaction in flight. */
export const MAX_COINS = 4;

/** Difference of clocks that is reported, and maximum lead of a value over this machine's clock. */
const MINUTE_MS = 60_000;

/** Number of epochs after the present one in which a transaction can still be executed. */
const MORE_EPOCHS = 1n;

/** Codes of errors that the node causes, and not a value, a function or a transaction. */
const NODE_CODES = ['SUI_NODE_UNREACHABLE', 'SUI_NODE_ANSWER', 'SUI_NODE_REFUSED', 'SUI_UNKNOWN_OUTCOME'];

/** Outcome of a transaction; `sent` while the outcome is not known. */
export type PostResult = 'posted' | 'sent' | 'failed' | 'moved' | 'expired' | 'simulated';

/** Action of a round: the transaction, its outcome and its value. */
export interface Done {
  readonly result: PostResult;
  /** Digest of the transaction; undefined for a simulated one. */
  readonly digest: string | undefined;
  /** URL of the enclave that gave the value. */
  readonly url: string;
  /** Time of the value, in milliseconds since 1970. */
  readonly timestampMs: bigint;
}

/** Findings and actions of a round. */
export interface Report {
  readonly done: readonly Done[];
  readonly alerts: readonly Alert[];
  /** Number of enclaves that gave a valid value. */
  readonly values: number;
  /** Number of signed transactions whose outcome is not known. */
  readonly inFlight: number;
  /** Whether the round failed with each node that it tried, so that the next round should come later. */
  readonly hasFailed: boolean;
}

export interface PosterSettings {
  /** The nodes, at least one. A round that fails with a node is repeated with the next node. */
  readonly nodes: readonly [PosterNode, ...PosterNode[]];
  readonly urls: readonly string[];
  /** The name of the function, for reports. */
  readonly target: string;
  /** Address of the poster. */
  readonly sender: string;
  /** Signs a transaction. @returns the signature in base64 */
  sign(transaction: Uint8Array): Promise<string>;
  readonly transactions: Transactions;
  readonly gas: GasBudget;
  /** Gas budget of a transaction, in MIST. */
  readonly gasBudget: bigint;
  /** Maximum gas price, in MIST. */
  readonly maxGasPrice: bigint;
  /** Aborts that need no alert. */
  readonly expectedAborts: readonly string[];
  readonly isDryRun: boolean;
  /** Returns the time in milliseconds since 1970. */
  now(): number;
}

/** The findings of a round that still runs. */
interface Findings {
  readonly done: Done[];
  readonly alerts: Alert[];
  /** Digests of the transactions about which the node contradicts itself. */
  readonly contradicted: Set<string>;
  /** Digests of the transactions that the node does not show although their coins have moved. */
  readonly missing: Set<string>;
  values: number;
}

export class Poster {
  readonly #settings: PosterSettings;
  /** Index of the node in use. */
  #node = 0;
  /**
   * Digests of the transactions about which a node contradicted itself in the last round. A node that only
   * lags does not contradict itself again in the next round.
   */
  #contradicted: ReadonlySet<string> = new Set();
  /**
   * Digests of the transactions that a node did not show in the last round although their coins had moved. A
   * node whose list of transactions only lags behind its objects shows them in the next round.
   */
  #missing: ReadonlySet<string> = new Set();

  constructor(settings: PosterSettings) {
    this.#settings = settings;
  }

  /** Runs a round. When `stop` is aborted, ends early after the transaction that is being sent. */
  async round(stop: AbortSignal): Promise<Report> {
    const { nodes, transactions } = this.#settings;
    const findings: Findings = {
      done: [],
      alerts: [],
      contradicted: new Set(),
      missing: new Set(),
      values: 0,
    };
    let hasFailed = true;
    for (const _attempt of nodes) {
      const node = nodes[this.#node] ?? nodes[0];
      try {
        await this.#roundWith(node, findings, stop);
        hasFailed = false;
        break;
      } catch (error) {
        if (error instanceof PosterFileError) {
          findings.alerts.push(createAlert('NOT_RECORDED', this.#settings.sender, error));
          break;
        }
        const isNodeError = isNodeFault(error);
        if (!isNodeError && !isEnclaveError(error)) throw error;
        const [code, subject]: [AlertCode, string] = isNodeError
          ? ['NODE_UNUSABLE', node.name]
          : ['CALL_UNUSABLE', this.#settings.target];
        findings.alerts.push(createAlert(code, subject, error));
        this.#leave(node);
        if (stop.aborted) break;
      }
    }
    this.#contradicted = findings.contradicted;
    this.#missing = findings.missing;
    const { done, alerts, values } = findings;
    return {
      done,
      alerts: removeDuplicates(alerts),
      values,
      inFlight: transactions.pending.length,
      hasFailed,
    };
  }

  /** Forgets what the node said, and changes to the next node of the file. */
  #leave(node: PosterNode): void {
    node.forget();
    this.#node = (this.#node + 1) % this.#settings.nodes.length;
  }

  /** @throws EnclaveError of the node or of the file's function */
  async #roundWith(node: PosterNode, findings: Findings, stop: AbortSignal): Promise<void> {
    const { now, urls } = this.#settings;
    const state = await node.readState();
    const differenceMs = Math.abs(state.clockMs - now());
    if (differenceMs > MINUTE_MS) {
      const message = `this machine's clock and the chain's differ by ${quantity(Math.round(differenceMs / 1000), 'second')}: correct this machine's clock, or compare with another node`;
      findings.alerts.push({ code: 'CLOCK_DIFFERS', subject: node.name, message });
    }
    await this.#settle(node, state, findings, stop);
    if (stop.aborted) return;
    await node.prepare();
    const values = await this.#ask(node, urls, findings, stop);
    if (stop.aborted) return;
    const newestMs = this.#newestSigned();
    const fresh = values.filter(({ answer }) => newestMs === null || answer.timestampMs > newestMs);
    const newest = fresh.toSorted((a, b) => Number(b.answer.timestampMs - a.answer.timestampMs));
    if (newest.length > 0) await this.#postFirst(node, newest, state, findings);
  }

  /**
   * Returns the time of the newest value that a signed transaction posts, or null if no transaction was
   * signed. Also returns null if the time is more than a minute ahead of the clock: the clock was wrong at
   * the signature.
   */
  #newestSigned(): bigint | null {
    const { transactions, now } = this.#settings;
    const { newestMs } = transactions;
    return newestMs !== null && newestMs <= BigInt(now()) + BigInt(MINUTE_MS) ? newestMs : null;
  }

  /** Asks all enclaves at the same time, and returns the valid values. @throws SuiError of the node */
  async #ask(
    node: PosterNode,
    urls: readonly string[],
    findings: Findings,
    stop: AbortSignal,
  ): Promise<Value[]> {
    const outcomes = await Promise.allSettled(urls.map((url) => node.ask(url, stop)));
    const values: Value[] = [];
    const faults: Alert[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const url = urls[index] ?? '';
      if (outcome.status === 'fulfilled') {
        values.push(outcome.value);
        continue;
      }
      const { reason } = outcome;
      if (isNodeFault(reason)) throw reason;
      // The answer of an enclave must not end the round for the other enclaves.
      const isUnreachable = isEnclaveError(reason) && reason.code === 'CLIENT_UNREACHABLE';
      faults.push(createAlert(isUnreachable ? 'ENCLAVE_UNREACHABLE' : 'VALUE_REFUSED', url, reason));
    }
    findings.values = values.length;
    findings.alerts.push(...faults);
    if (values.length === 0) {
      const message = `none of the ${urls.length} enclaves gave a valid value`;
      findings.alerts.push({ code: 'NO_VALUE', subject: this.#settings.target, message });
    }
    return values;
  }

  /** Posts the first of these values that the contract would accept. */
  async #postFirst(
    node: PosterNode,
    values: readonly Value[],
    state: ChainState,
    findings: Findings,
  ): Promise<void> {
    const { sender, gasBudget: budget, maxGasPrice, target, isDryRun } = this.#settings;
    const { gasPrice: price, epoch } = state;
    if (price > maxGasPrice) {
      const message = `the node sets a gas price of ${price} MIST, and the maximum is ${maxGasPrice}: compare the price with another node's`;
      findings.alerts.push({ code: 'GAS_PRICE', subject: node.name, message });
      return;
    }
    const coin = await this.#chooseCoin(node, findings);
    if (coin === undefined) return;
    for (const value of values) {
      const { url, answer } = value;
      const terms = { sender, coin, budget, price, lastEpoch: epoch + MORE_EPOCHS };
      try {
        const transaction = await node.build(value, terms);
        await node.simulate(transaction);
        if (!isDryRun) return await this.#post(node, transaction, value, findings);
        const { timestampMs } = answer;
        findings.done.push({ result: 'simulated', digest: undefined, url, timestampMs });
        return;
      } catch (error) {
        if (error instanceof GasLimitError) {
          findings.alerts.push({ code: error.code, subject: target, message: error.message });
          return;
        }
        if (!isRefusal(error)) throw error;
        // The contract would not accept older values either.
        if (this.#isExpected(error)) return;
        findings.alerts.push(createAlert('WOULD_FAIL', url, error));
      }
    }
  }

  #isExpected(error: unknown): boolean {
    return error instanceof MoveAbortError && this.#settings.expectedAborts.includes(error.abort);
  }

  /**
   * Returns the coin with the most SUI among those that no transaction in flight uses. Reports it if there is
   * no such coin. @throws SuiError
   */
  async #chooseCoin(node: PosterNode, findings: Findings): Promise<Coin | undefined> {
    const { transactions, sender, gasBudget } = this.#settings;
    const { pending } = transactions;
    if (pending.length < MAX_COINS) {
      const coins = await node.listCoins(sender, gasBudget);
      const free = coins.filter(({ id, version }) => !transactions.isUsed(id, version));
      const [coin] = free.toSorted((a, b) => Number(b.balance - a.balance));
      if (coin !== undefined) return coin;
    }
    const alert: Alert =
      pending.length > 0
        ? {
            code: 'COINS_IN_FLIGHT',
            subject: sender,
            message: `${quantity(pending.length, 'transaction')} in flight, and no other coin with ${gasBudget} MIST is free: send SUI to the poster, in at most ${MAX_COINS} coins`,
          }
        : {
            code: 'NO_GAS_COIN',
            subject: sender,
            message: `no free coin of SUI has ${gasBudget} MIST: send SUI to the poster`,
          };
    findings.alerts.push(alert);
    return undefined;
  }

  /** Signs, records and sends a transaction. @throws GasLimitError; PosterFileError; SuiError of the node */
  async #post(
    node: PosterNode,
    transaction: Uint8Array,
    { url, answer: { timestampMs } }: Value,
    findings: Findings,
  ): Promise<void> {
    const { gas, gasBudget, sign, transactions, sender } = this.#settings;
    gas.spend(gasBudget);
    const signature = await sign(transaction);
    const post = describePost({ transaction, signature, url, timestampMs }, sender);
    transactions.add(post);
    await this.#send(node, post, findings);
    if (!(await this.#settleOne(node, post, findings))) {
      findings.done.push({ result: 'sent', digest: post.digest, url, timestampMs });
    }
  }

  /** Sends the transaction. A failure does not end the round, since the transaction is looked up anyway. */
  async #send(node: PosterNode, post: Pending, { alerts }: Findings): Promise<void> {
    try {
      await node.send(post);
    } catch (error) {
      if (!isEnclaveError(error)) throw error;
      alerts.push(createAlert('SEND_FAILED', post.digest, error));
    }
  }

  /**
   * Settles the transactions in flight, and sends those again whose outcome is unknown, unless their coins
   * have moved.
   *
   * @throws SuiError
   */
  async #settle(node: PosterNode, state: ChainState, findings: Findings, stop: AbortSignal): Promise<void> {
    const { transactions } = this.#settings;
    for (const post of transactions.pending) {
      if (stop.aborted) return;
      if (await this.#settleOne(node, post, findings)) continue;
      if (state.epoch > post.lastEpoch || findings.missing.has(post.digest)) continue;
      await this.#send(node, post, findings);
      await this.#settleOne(node, post, findings);
    }
    for (const post of transactions.expire(state.epoch)) {
      const message = `not executed by the end of epoch ${post.lastEpoch}, and the epoch is ${state.epoch}`;
      this.#end('expired', post, findings);
      findings.alerts.push({ code: 'EXPIRED', subject: post.digest, message });
    }
  }

  /**
   * Ends a transaction if the node shows that it was executed and that its gas coin changed, or if the node
   * shows in two rounds running that the coin changed, and does not show the transaction. The node's claim
   * that it was executed is not sufficient.
   *
   * @returns whether the transaction has ended
   * @throws SuiError
   */
  async #settleOne(node: PosterNode, post: Pending, findings: Findings): Promise<boolean> {
    const { coin, digest } = post;
    // The coin is read first: the transaction that changed it can then be looked up.
    const version = (await node.readVersions([coin.id])).get(coin.id);
    const outcome = await node.lookUp(post);
    const hasMoved = version === undefined || version > coin.version;
    const isExecuted = outcome.kind === 'succeeded' || outcome.kind === 'failed';
    if (isExecuted && hasMoved) {
      this.#end(outcome.kind === 'succeeded' ? 'posted' : 'failed', post, findings);
      if (outcome.kind === 'failed' && !this.#isExpected(outcome.error)) {
        findings.alerts.push(createAlert('POST_FAILED', digest, outcome.error));
      }
      return true;
    }
    if (hasMoved) {
      findings.missing.add(digest);
      if (!this.#missing.has(digest)) return false;
      this.#end('moved', post, findings);
      const message = `the coin ${coin.id} is no longer at version ${coin.version}, and the node shows no transaction of this digest that used it`;
      findings.alerts.push({ code: 'COIN_MOVED', subject: digest, message });
      return true;
    }
    const isOlder = version !== undefined && version < coin.version;
    if (isExecuted || outcome.kind === 'contradiction' || isOlder) this.#contradict(node, post, findings);
    return false;
  }

  /** Reports a contradiction that lasts for more than one round, and changes to the next node. */
  #contradict(node: PosterNode, { digest, coin }: Pending, { alerts, contradicted }: Findings): void {
    if (this.#contradicted.has(digest) && !contradicted.has(digest)) {
      const message = `${node.name} contradicts itself about this transaction and its gas coin ${coin.id}: compare its answers with another node's, and name that node in the file`;
      alerts.push({ code: 'NODE_CONTRADICTS', subject: digest, message });
      this.#leave(node);
    }
    contradicted.add(digest);
  }

  #end(outcome: PostResult, { digest, url, timestampMs }: Pending, { done }: Findings): void {
    this.#settings.transactions.settle(digest);
    done.push({ result: outcome, digest, url, timestampMs });
  }
}

function isNodeFault(error: unknown): error is SuiError {
  return error instanceof SuiError && NODE_CODES.includes(error.code);
}

/** Returns whether the error says that the transaction would fail. */
function isRefusal(error: unknown): error is EnclaveError {
  return error instanceof SuiError && !isNodeFault(error);
}

/** Returns the alerts without earlier ones that have the same code and subject. */
function removeDuplicates(alerts: readonly Alert[]): Alert[] {
  return [...new Map(alerts.map((alert) => [`${alert.code} ${alert.subject}`, alert])).values()];
}

const WORDS: Readonly<Record<PostResult, string>> = {
  posted: 'posted',
  sent: 'sent, and not executed yet',
  failed: 'failed on chain',
  moved: 'ended by another use of its gas coin',
  expired: 'expired',
  simulated: 'would be posted',
};

/** Returns a line for each action of a round. */
export function formatDone({ done }: Report): string[] {
  return done.map(({ result, digest, url, timestampMs }) => {
    const subject = digest === undefined ? '' : `${digest}, `;
    return `${WORDS[result]}: ${subject}the value of ${formatTime(timestampMs)} from ${url}`;
  });
}

function formatTime(ms: bigint): string {
  const date = new Date(Number(ms));
  return Number.isNaN(date.getTime()) ? `${ms} ms after 1970-01-01` : date.toISOString();
}
