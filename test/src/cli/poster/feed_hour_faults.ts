/**
 * The faults of an hour of the template `feed`, in a fixed order: what sources, hosts, enclaves, the node and
 * the posters do in each step of half a minute.
 */
import type { Fault } from '../../../../src/devnet/node.ts';
import { type Market, PERIOD, type Quote } from './price_fixture.ts';

export const START = Date.UTC(2026, 0, 1);
export const PERIODS_IN_STEP = 3;
export const STEPS = 120;

/** The exchanges, in the order of the template. */
const HOSTS = ['api.crypto.com', 'api.kraken.com', 'www.bitstamp.net'];
/** Distances of the honest values from the price, in thousandths of the price, and ages of the readings. */
const SPREADS = [-1n, 0n, 1n];
const AGES_MS = [0, 1000, 3000];
/** Lies of the sources, in percent of the honest value. Each is different, and the last is almost right. */
const LIES = [300n, 33n, 102n];

/** Sources by step: honest (h), lying (l) or silent (s). */
const SOURCES = 'hhh lhh hhh hsh hhh hhl hls hhh hlh hhh sss hhh shh hhh llh hhh hhs hhh'.split(' ');
/** A long outage of two sources, in steps. Afterwards, the tasks pause for as long again. */
const OUTAGE = { from: 64, until: 68 };

/** Returns the step of a period. The first enclaves start in period 0. */
export function findStep(period: number): number {
  return Math.max(0, Math.floor((period - 1) / PERIODS_IN_STEP));
}

/** Returns how a source behaves towards an enclave in a step: h, l or s. */
function readState(source: number, enclave: number, step: number): string {
  if (step >= OUTAGE.from && step < OUTAGE.until) return source === 0 ? 'h' : 's';
  // Each host in turn lets only a single source through.
  if (step % 19 === 4 + enclave && source !== 1) return 's';
  return SOURCES[step % SOURCES.length]?.[source] ?? 's';
}

/** Returns the price in a period, in millionths of a dollar: it swings, stands almost still, and jumps. */
function computePrice(period: number): bigint {
  const swing = Math.round(50_000 * Math.sin(period / 7));
  if (period <= 120) return 1_200_000n + BigInt(swing);
  if (period <= 240) return 1_230_000n + BigInt(100 * (period % 5));
  return period <= 270 ? 1_310_000n : 1_150_000n + BigInt(Math.round(swing / 3));
}

/** Creates an honest quote of a source. */
function createReading(source: number, period: number): Quote {
  const value = (computePrice(period) * (1000n + (SPREADS[source] ?? 0n))) / 1000n;
  return { value, timestampMs: BigInt(START + period * PERIOD - (AGES_MS[source] ?? 0)) };
}

/** Returns the readings of the sources that answer an enclave honestly in a period. */
export function listHonestReadings(enclave: number, period: number): readonly Quote[] {
  return HOSTS.flatMap((_, source) =>
    readState(source, enclave, findStep(period)) === 'h' ? [createReading(source, period)] : [],
  );
}

/** Returns an exchange's answer to an enclave in a period; undefined if the exchange is silent. */
export function readMarket(host: string, enclave: number, period: number): Market | undefined {
  const source = HOSTS.indexOf(host);
  const state = readState(source, enclave, findStep(period));
  if (state === 's') return undefined;
  const { value, timestampMs } = createReading(source, period);
  const reported = state === 'h' ? value : (value * (LIES[source] ?? 1n)) / 100n;
  return { dollars: (Number(reported) / 1e6).toFixed(6), timeMs: Number(timestampMs) };
}

/** Returns whether a host is reachable: each fails in turn, and sometimes all fail at once. */
export function isHostReachable(enclave: number, step: number): boolean {
  return step % 10 !== 2 + 3 * enclave && step % 29 !== 17;
}

/** Returns whether a host changes what its enclave signed. */
export function isHostLying(enclave: number, step: number): boolean {
  return step % 11 === enclave || step % 37 === 30;
}

/** Steps in which an enclave ends, its replacement starts, and the replacement is registered. */
export const REPLACEMENT = { enclave: 1, end: 40, start: 42, registration: 44 };

type NodeFault = readonly [method: string, fault: Fault];

const UNAVAILABLE: Fault = { status: 'UNAVAILABLE', message: 'gone' };
const NOT_SENT: NodeFault = ['ExecuteTransaction', 'reset'];
const NOT_TAKEN: NodeFault = ['ExecuteTransaction', UNAVAILABLE];
const NO_ANSWER: NodeFault = ['ExecuteTransaction', 'executes, and does not answer'];
const DENIED: NodeFault = ['ExecuteTransaction', 'executes, and says ABORTED'];
const NOT_SHOWN: NodeFault = ['GetTransaction', UNAVAILABLE];
const NO_STATE: NodeFault = ['GetEpoch', 'garbage'];
const NO_SIMULATION: NodeFault = ['SimulateTransaction', UNAVAILABLE];
const NO_OBJECTS: NodeFault = ['BatchGetObjects', 'reset'];
/** Faults of the node by step. */
const NODE: readonly (readonly NodeFault[])[] = [
  [],
  [],
  [NOT_SENT],
  [],
  [],
  [NO_ANSWER],
  [],
  [DENIED],
  [],
  [],
  [NOT_SHOWN],
  [],
  [],
  [NO_STATE],
  [],
  [],
  [NO_ANSWER, NOT_SHOWN],
  [],
  [NO_SIMULATION],
  [],
  [],
  [NOT_TAKEN],
  [],
  [NOT_SENT],
  [NOT_SENT],
  [],
  [],
  [NO_OBJECTS],
];

/** Returns the faults of the node in a step. */
export function listNodeFaults(step: number): readonly NodeFault[] {
  return NODE[step % NODE.length] ?? [];
}

/** Returns whether the node executes a new transaction of a poster in a step. */
export function canExecute(step: number, inFlight: number): boolean {
  const faults = new Map(listNodeFaults(step));
  // A poster signs nothing new before it knows the outcome of its last transaction.
  if (faults.has('GetTransaction') && inFlight > 0) return false;
  if (['GetEpoch', 'SimulateTransaction', 'BatchGetObjects'].some((method) => faults.has(method)))
    return false;
  const fault = faults.get('ExecuteTransaction');
  return fault === undefined || (typeof fault === 'string' && fault.startsWith('executes'));
}

/** Returns whether a poster's process runs: each is down in turn, and once both are down. */
export function isPosterUp(poster: number, step: number): boolean {
  const isOut = step % 20 === 7 + 10 * poster || step % 20 === 8 + 10 * poster;
  return !isOut && step !== 95;
}

/** Returns whether a poster runs as a new process in this step, from the files of the process before. */
export function isPosterNew(poster: number, step: number): boolean {
  return step % 5 === poster || !isPosterUp(poster, step - 1);
}
