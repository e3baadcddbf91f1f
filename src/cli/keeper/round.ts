/** Runs the rounds of a keeper: read, attest, decide, act. */
import { type SuiCode, SuiError } from 'sui-enclave/sui/errors';
import { GasLimitError } from '../rounds/budget.ts';
import { findCause } from '../rounds/cause.ts';
import { type Pauses, pauseAfter } from '../rounds/pauses.ts';
import { decideTogether, type Reading, type Readings, type Silence } from './agreement.ts';
import type { Alert } from './alerts.ts';
import {
  type Action,
  type Answer,
  type ChainState,
  type Decision,
  mayAct,
  nameAction,
  type Rules,
  type UntrustedAnswer,
} from './decide.ts';
import type { Done, World } from './world.ts';

/** Findings and actions of a round. */
export interface Report {
  readonly done: readonly {
    readonly kind: Action['kind'];
    /** The URL of the registered enclave, or the id of the destroyed enclave. */
    readonly subject: string;
    /** `theirs`: another keeper was faster. `simulated`: a dry run. */
    readonly result: Done;
  }[];
  readonly alerts: readonly Alert[];
  /** The number of enclaves that contracts accepted before the round acted. */
  readonly accepted: number;
  readonly silent: number;
  /**
   * Whether the next round should come later, since the chain could not be read, or an error of ENDS_ROUND
   * occurred.
   */
  readonly hasFailed: boolean;
}

/** Returns a line for each action of a round. */
export function formatLines({ done }: Report): string[] {
  return done.map(({ kind, subject, result: outcome }) => {
    const verb = kind === 'register' ? 'registered' : 'destroyed';
    if (outcome === 'simulated') return `would have ${verb} ${subject}`;
    return `${verb} ${subject}${outcome === 'theirs' ? ', by another keeper' : ''}`;
  });
}

/** Errors after which another transaction in this round would fail too, or do harm. */
const ENDS_ROUND: readonly SuiCode[] = [
  'SUI_NODE_UNREACHABLE',
  'SUI_NODE_ANSWER',
  'SUI_UNKNOWN_OUTCOME',
  'SUI_NOT_VISIBLE',
  'SUI_GAS',
  'SUI_EQUIVOCATION',
  'SUI_OBJECT_CHANGED',
];

/** Codes of the alerts if the gas that is left does not pay for an action, by its kind. */
const GAS_CODES = { register: 'GAS_A_DAY', destroy: 'DESTRUCTION_WAITS' } as const;

export interface Settings extends Rules, Pauses {
  readonly configId: string;
  readonly urls: readonly string[];
  /** Returns the time in milliseconds since 1970, to compare with times of the chain and of documents. */
  now(): number;
  /** Returns a monotonic clock in milliseconds, for durations. */
  clock(): number;
}

export class Keeper {
  readonly #world: World;
  readonly #settings: Settings;
  /** For each unregistered key, the time at which it was first seen, by the monotonic clock. */
  #firstSeen: ReadonlyMap<string, number> = new Map();
  /** Names of the actions that, according to the node, this keeper or another keeper has done. */
  readonly #confirmed = new Set<string>();
  /**
   * For each URL at which no trusted enclave answered: the number of failures in a row, the time of the next
   * request by the monotonic clock, and the last answer.
   */
  readonly #failures = new Map<string, { count: number; askAt: number; answer: UntrustedAnswer }>();

  constructor(world: World, settings: Settings) {
    this.#world = world;
    this.#settings = settings;
  }

  /**
   * Runs a round. If `stop` is aborted, the round ends early, after the transaction in flight, and returns
   * what it has done so far.
   */
  async round(stop: AbortSignal): Promise<Report> {
    const empty: Report = { done: [], alerts: [], accepted: 0, silent: 0, hasFailed: false };
    const chain = await unlessStopped(this.#read(stop), stop);
    if (chain === undefined) return empty;
    if (!isReadable(chain)) {
      const error = chain.silences[0]?.error;
      const alerts = [createAlert('CONFIG_UNREADABLE', this.#settings.configId, error)];
      return { ...empty, alerts, hasFailed: true };
    }
    const { readings } = chain;
    const isActive = readings.some(
      ({ chainState }) => mayAct(chainState, this.#settings) && !chainState.config.isRetired,
    );
    const urls = isActive ? this.#settings.urls : [];
    // The keeper asks all enclaves at the same time.
    const answers = await unlessStopped(Promise.all(urls.map((url) => this.#attest(url))), stop);
    if (answers === undefined) return empty;
    const { now, clock } = this.#settings;
    const nowMs = clock();
    const seenForMs = new Map([...this.#firstSeen].map(([key, since]) => [key, nowMs - since]));
    const decision = decideTogether(chain, { answers, seenForMs, now: now() }, this.#settings);
    this.#remember(decision);
    const outcome = await this.#act(decision, readings[0].chainState, stop);
    return {
      ...outcome,
      alerts: [...decision.alerts, ...outcome.alerts],
      accepted: decision.accepted.length,
      silent: decision.silent.length,
    };
  }

  /** Reads the state of all nodes in parallel. */
  async #read(signal: AbortSignal): Promise<{ readings: Reading[]; silences: Silence[] }> {
    const { nodes } = this.#world;
    const outcomes = await Promise.allSettled(nodes.map(({ read }) => read(signal)));
    const readings: Reading[] = [];
    const silences: Silence[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const node = nodes[index]?.name ?? '';
      if (outcome.status === 'fulfilled') readings.push({ node, chainState: outcome.value });
      else silences.push({ node, error: outcome.reason });
    }
    return { readings, silences };
  }

  /**
   * Attests the enclave at a URL. After failures, it does so less often, and otherwise returns the last
   * answer.
   */
  async #attest(url: string): Promise<Answer> {
    const failure = this.#failures.get(url);
    if (failure !== undefined && this.#settings.clock() < failure.askAt) return failure.answer;
    try {
      const answer = await this.#world.attest(url);
      this.#failures.delete(url);
      return answer;
    } catch (error) {
      const answer: UntrustedAnswer = { url, trusted: false, ...findCause(error) };
      const count = (failure?.count ?? 0) + 1;
      const askAt = this.#settings.clock() + pauseAfter(count, this.#settings);
      this.#failures.set(url, { count, askAt, answer });
      return answer;
    }
  }

  #remember({ unregistered }: Decision): void {
    const nowMs = this.#settings.clock();
    this.#firstSeen = new Map(unregistered.map((key) => [key, this.#firstSeen.get(key) ?? nowMs]));
  }

  async #act(
    { actions }: Decision,
    { config }: ChainState,
    stop: AbortSignal,
  ): Promise<Pick<Report, 'done' | 'alerts' | 'hasFailed'>> {
    const done: Report['done'][number][] = [];
    const alerts: Alert[] = [];
    for (const action of actions) {
      if (stop.aborted) break;
      const subject = action.kind === 'register' ? action.candidate.url : action.enclave.id;
      if (this.#confirmed.has(nameAction(action))) {
        alerts.push({ code: 'NODE_CONTRADICTS', subject, message: describeContradiction(action) });
        continue;
      }
      try {
        const outcome =
          action.kind === 'register'
            ? await this.#world.register(action.candidate, config)
            : await this.#world.destroy(action.enclave, config);
        done.push({ kind: action.kind, subject, result: outcome });
        if (outcome !== 'simulated') this.#confirmed.add(nameAction(action));
      } catch (error) {
        if (error instanceof GasLimitError) {
          alerts.push({ code: GAS_CODES[action.kind], subject: config.id, message: error.message });
          break;
        }
        alerts.push(createAlert('ACTION_FAILED', subject, error));
        if (error instanceof SuiError && ENDS_ROUND.includes(error.code)) {
          return { done, alerts, hasFailed: true };
        }
      }
    }
    return { done, alerts, hasFailed: false };
  }
}

function isReadable(chain: {
  readonly readings: readonly Reading[];
  readonly silences: readonly Silence[];
}): chain is Readings {
  return chain.readings.length > 0;
}

function describeContradiction(action: Action): string {
  const [done, contradiction] =
    action.kind === 'register'
      ? [`registered as ${action.enclaveId}`, 'does not show it']
      : ['destroyed', 'still shows it'];
  return `the node said that the enclave is ${done}, but ${contradiction}, so the keeper signs no more transactions for this enclave. If this lasts for minutes, compare with another node, put that node into the file, and restart the keeper`;
}

/** Returns the result of the work, or undefined once `stop` is aborted. */
async function unlessStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  const { promise: stopped, resolve } = Promise.withResolvers<undefined>();
  const end = () => resolve(undefined);
  stop.addEventListener('abort', end);
  if (stop.aborted) end();
  try {
    return await Promise.race([work, stopped]);
  } finally {
    stop.removeEventListener('abort', end);
  }
}

function createAlert(code: 'CONFIG_UNREADABLE' | 'ACTION_FAILED', subject: string, error: unknown): Alert {
  const { code: cause, reason } = findCause(error);
  return { code, subject, message: `${cause}: ${reason}` };
}
