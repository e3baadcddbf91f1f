/** Keeps one worker of the engine running, with the key loaded. */
import type { Logger } from 'sui-enclave-service/log';
import { EngineError, type EnginePath, EngineWorker, INHERITED_KEY, type LoadedKey } from '../engine.ts';
import type { Groth16Proof } from '../verify.ts';
import { HEARTBEAT_MS, watch } from './heartbeat.ts';
import type { KeyFile } from './key.ts';

export interface SupervisorOptions {
  /** Path of the engine. */
  readonly program: string;
  readonly key: KeyFile;
  readonly log: Logger;
  /** Time limit of a proof, in milliseconds. A worker that takes longer is killed. */
  readonly timeoutMs: number;
  /** Time limit for loading the key, in milliseconds. */
  readonly loadTimeoutMs?: number;
  /**
   * Wait in milliseconds before the second restart since the last proof. It doubles with each further
   * restart. The first restart has no wait.
   */
  readonly backoffMs?: number;
  /** Interval in milliseconds at which the worker is asked for its status: see heartbeat.ts. */
  readonly beatMs?: number;
}

export interface StartedEngine {
  readonly loaded: LoadedKey;
  readonly path: EnginePath;
}

export type SupervisorState = 'loading' | 'ready' | 'proving' | 'stopped';

const LOAD_TIMEOUT_MS = 120_000;
const BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 30_000;

/** Codes of the engine for a witness that it can't prove. The engine continues after such a refusal. */
const WITNESS_REFUSALS = ['PROVER_BAD_WITNESS', 'PROVER_UNSATISFIED'];

/**
 * Runs one worker at a time. When the worker ends, another worker is started and loads the key; requests wait
 * for it. A worker makes one proof at a time, so callers must take turns.
 */
export class Supervisor {
  readonly #options: Required<SupervisorOptions>;
  /** Worker that has loaded the key. */
  #worker: EngineWorker | undefined;
  /** Worker that is loading the key. */
  #loading: EngineWorker | undefined;
  #proving = false;
  #stopped = false;
  /** Number of restarts since the last proof. */
  #restarts = 0;
  #allRestarts = 0;
  /** Functions to call when a worker is ready. */
  readonly #waiting = new Set<() => void>();
  /** Current wait before a restart. */
  #pause: { end(): void } | undefined;

  constructor(options: SupervisorOptions) {
    const defaults = { loadTimeoutMs: LOAD_TIMEOUT_MS, backoffMs: BACKOFF_MS, beatMs: HEARTBEAT_MS };
    this.#options = { ...defaults, ...options };
  }

  /** Starts the first worker. @throws EngineError or ConfigError if the key can't be loaded */
  async start(): Promise<StartedEngine> {
    const { worker, loaded } = await this.#load();
    const { path } = await worker.status();
    this.#serve(worker);
    return { loaded, path };
  }

  get state(): SupervisorState {
    if (this.#stopped) return 'stopped';
    if (this.#proving) return 'proving';
    return this.#worker?.isUsable ? 'ready' : 'loading';
  }

  /** Whether a worker runs and has loaded the key. */
  get hasWorker(): boolean {
    return this.state === 'ready' || this.state === 'proving';
  }

  /** Number of restarts of the engine. */
  get restarts(): number {
    return this.#allRestarts;
  }

  /** Process id of the current worker. */
  get pid(): number | undefined {
    return this.#worker?.pid;
  }

  /**
   * Proves a witness, after waiting for a worker if necessary.
   *
   * @param publicInput the single public input that the proof must have, in decimal
   * @param wait signal that ends the wait for a worker, but not a proof that has begun
   * @param leaving signal that cancels the proof when no caller waits for it any longer
   * @throws EngineError, or the reason of the aborted signal
   */
  async prove(
    witness: Uint8Array,
    publicInput: string,
    { wait, leaving }: { readonly wait: AbortSignal; readonly leaving: AbortSignal },
  ): Promise<Groth16Proof> {
    const worker = await this.#waitForWorker(wait);
    this.#proving = true;
    try {
      const { proof, publicInputs } = await worker.prove(witness, this.#options.timeoutMs, leaving);
      if (publicInputs.length !== 1 || publicInputs[0] !== publicInput) {
        throw new EngineError('invalid', 'the engine proved a statement other than the requested one');
      }
      this.#restarts = 0;
      return proof;
    } catch (error) {
      const isRefusal = error instanceof EngineError && WITNESS_REFUSALS.includes(error.refusal ?? '');
      // A cancelled proof leaves the key loaded. Killing the engine would cost a load of the key for each
      // caller who leaves.
      const isCancelled = leaving.aborted && error === leaving.reason;
      if (!isRefusal && !isCancelled) worker.kill();
      throw error;
    } finally {
      this.#proving = false;
    }
  }

  /** Ends the worker, whatever it is doing. */
  stop(): void {
    this.#stopped = true;
    this.#pause?.end();
    this.#loading?.kill();
    this.#worker?.kill();
  }

  async #load(): Promise<{ worker: EngineWorker; loaded: LoadedKey }> {
    const { program, key, loadTimeoutMs, beatMs } = this.#options;
    const worker = new EngineWorker(program, key.descriptor);
    this.#loading = worker;
    watch(worker, beatMs);
    try {
      const loaded = await worker.load(INHERITED_KEY, loadTimeoutMs);
      await key.requireSame();
      return { worker, loaded };
    } catch (error) {
      worker.kill();
      throw error;
    }
  }

  #serve(worker: EngineWorker): void {
    this.#loading = undefined;
    this.#worker = worker;
    void worker.ended.then(() => this.#restart(worker.fault));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async #restart(fault: EngineError | undefined): Promise<void> {
    this.#worker = undefined;
    while (!this.#stopped) {
      const waitMs = this.#countRestart();
      this.#options.log.error({ err: fault, wait_ms: waitMs }, 'the engine ended: restarting it');
      await this.#sleep(waitMs);
      if (this.#stopped) return;
      const start = performance.now();
      try {
        const { worker } = await this.#load();
        if (this.#stopped) return worker.kill();
        this.#serve(worker);
        this.#options.log.info(
          { ms: Math.round(performance.now() - start) },
          'the engine has loaded the key again',
        );
        return;
      } catch (error) {
        fault = error as EngineError;
      }
    }
  }

  /** Counts a restart, and returns the wait before it in milliseconds: 0 for the first after a proof. */
  #countRestart(): number {
    this.#restarts += 1;
    this.#allRestarts += 1;
    if (this.#restarts === 1) return 0;
    return Math.min(MAX_BACKOFF_MS, this.#options.backoffMs * 2 ** (this.#restarts - 2));
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const elapse = () => {
        this.#pause = undefined;
        resolve();
      };
      const timer = setTimeout(elapse, ms);
      const end = () => {
        clearTimeout(timer);
        elapse();
      };
      this.#pause = { end };
    });
  }

  async #waitForWorker(signal: AbortSignal): Promise<EngineWorker> {
    while (true) {
      signal.throwIfAborted();
      if (this.#worker?.isUsable) return this.#worker;
      await new Promise<void>((resolve, reject) => {
        const settled = new AbortController();
        const wake = () => {
          settled.abort();
          resolve();
        };
        const leave = () => {
          this.#waiting.delete(wake);
          reject(signal.reason);
        };
        this.#waiting.add(wake);
        signal.addEventListener('abort', leave, { once: true, signal: settled.signal });
      });
    }
  }
}
