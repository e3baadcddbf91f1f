/**
 * Puts load on the server: an open loop, which sends requests at a fixed rate without waiting for answers.
 */
import { Agent, request as send } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { add, type Judge } from './answers.ts';

/** Interval at which due requests are sent, in milliseconds. */
const TICK_MS = 4;
const MAX_SOCKETS = 512;
/**
 * Idle time after which the server may have closed a connection, in milliseconds. The server's limit is 30 s.
 * On a busy machine, this process notices the end of an answer late, and so measures less.
 */
const IDLE_MS = 25_000;
/** Longest duration in the histogram, in milliseconds. */
const MAX_MS = 60_000;

/** Durations in whole milliseconds. */
export class Histogram {
  readonly #counts = new Uint32Array(MAX_MS + 1);
  #total = 0;

  add(ms: number): void {
    const index = Math.min(Math.max(0, Math.ceil(ms)), MAX_MS);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#total += 1;
  }

  get total(): number {
    return this.#total;
  }

  /** 99th percentile, in milliseconds. */
  get p99(): number {
    let remaining = Math.ceil(this.#total * 0.99);
    for (const [ms, count] of this.#counts.entries()) {
      remaining -= count;
      if (remaining <= 0) return ms;
    }
    return MAX_MS;
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Reports that the server closed a connection because it was idle. */
class IdleClosed extends Error {}

export class Load {
  readonly #url: string;
  readonly #judge: Judge;
  #agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  #place = 0;
  #inFlight = 0;
  /** The time at which the last answer on a connection ended, by performance.now(). */
  readonly #usedAt = new WeakMap<object, number>();
  #timer: NodeJS.Timeout | undefined;
  /** Durations of accepted requests since they were due; undefined while faults are tried. */
  histogram: Histogram | undefined;

  constructor(origin: string, judge: Judge) {
    this.#url = `${origin}/process_data`;
    this.#judge = judge;
  }

  /** Returns a place that no other request names. */
  nextPlace(): string {
    this.#place += 1;
    return `place ${this.#place}`;
  }

  /** Sends requests until `pause`. @param rate requests a second */
  begin(rate: number): void {
    const start = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - start) / 1000) * rate);
      for (; sent < due; sent += 1) {
        void this.send(this.nextPlace(), start + (sent / rate) * 1000);
      }
    }, TICK_MS);
  }

  /** Stops sending, and returns when all requests are answered. */
  async pause(): Promise<void> {
    clearInterval(this.#timer);
    while (this.#inFlight > 0) await sleep(10);
  }

  /** Stops the load, and closes all of its connections. */
  async close(): Promise<void> {
    await this.pause();
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  }

  /**
   * Sends requests for `ms` milliseconds, one at a time on each of `workers` connections.
   *
   * @returns their number, and the seconds that they took
   */
  async closedLoop(workers: number, ms: number): Promise<{ requests: number; seconds: number }> {
    const start = performance.now();
    let requests = 0;
    const work = async () => {
      for (; performance.now() - start < ms; requests += 1) await this.send(this.nextPlace());
    };
    await Promise.all(Array.from({ length: workers }, work));
    return { requests, seconds: (performance.now() - start) / 1000 };
  }

  /**
   * Sends a request, and counts its answer.
   *
   * @param due start of its duration, by performance.now()
   * @returns the code of the answer, or of the connection's error
   */
  async send(place: string, due = performance.now()): Promise<string> {
    this.#inFlight += 1;
    try {
      const { status, text } = await this.#exchange(place);
      const code = this.#judge.judge(place, status, text);
      if (code === 'SIGNED') this.histogram?.add(performance.now() - due);
      return code;
    } catch (error) {
      const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
      add(this.#judge.broken, code);
      return code;
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Sends a request, and repeats it if the server closed the idle connection before it read the request. */
  async #exchange(place: string): Promise<Answer> {
    try {
      return await this.#exchangeOnce(place);
    } catch (error) {
      if (!(error instanceof IdleClosed)) throw error;
      return await this.#exchangeOnce(place);
    }
  }

  async #exchangeOnce(place: string): Promise<Answer> {
    const body = JSON.stringify({ payload: { location: place } });
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return await new Promise((resolve, reject) => {
      let connection: object | undefined;
      let idleMs = 0;
      const request = send(this.#url, { agent: this.#agent, method: 'POST', headers }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => {
          if (connection !== undefined) this.#usedAt.set(connection, performance.now());
          resolve({ status: response.statusCode ?? 0, text });
        });
        response.on('error', reject);
      });
      request.on('socket', (socket) => {
        connection = socket;
        idleMs = performance.now() - (this.#usedAt.get(socket) ?? Number.POSITIVE_INFINITY);
      });
      request.on('error', (error) => reject(idleMs > IDLE_MS ? new IdleClosed() : error));
      request.end(body);
    });
  }
}
