/** Makes proofs for inputs, with a bounded queue. Computes one witness and one proof at a time. */
import type { Logger } from 'sui-enclave-service/log';
import { EngineError } from '../engine.ts';
import { ProverError } from '../errors.ts';
import type { CircuitInput } from '../input.ts';
import type { Groth16Proof } from '../verify.ts';
import { generateWitness, WitnessRefusal } from '../witness.ts';
import { BackendError } from './errors.ts';
import type { Generator } from './generator.ts';
import { Queue } from './queue.ts';
import { checkInput, PUBLIC_SIGNAL } from './signals.ts';
import type { Supervisor } from './supervisor.ts';

/** Names of the timed parts of the work on a request. */
export const BACKEND_PARTS = ['queue', 'witness', 'engine'] as const;
export type BackendPart = (typeof BACKEND_PARTS)[number];

export interface ProofsOptions {
  readonly supervisor: Supervisor;
  readonly generator: Generator;
  /** Size of a `.wtns` file for the key. */
  readonly witnessBytes: number;
  /** Maximum number of requests that wait while another is processed. */
  readonly queue: number;
  /**
   * Time limit of a witness, and of each wait before and after it, in milliseconds. The supervisor limits the
   * proof.
   */
  readonly timeoutMs: number;
  readonly log: Logger;
  /** Receives the duration of each part of the work on a request whose caller is still connected. */
  readonly onPart?: ((part: BackendPart, ms: number) => void) | undefined;
}

/** Maximum number of seconds that a refused caller is told to wait. */
const MAX_RETRY_AFTER = 60;

/**
 * Makes proofs. While the engine makes one proof, another core computes the next request's witness.
 * Otherwise, all cores except one would be idle during each witness. At most two witnesses are in memory, in
 * two buffers that are reused.
 */
export class Proofs {
  readonly #options: ProofsOptions;
  /**
   * Queue for the witness. A request keeps its turn until its proof begins, so that at most one finished
   * witness waits.
   */
  readonly #witnessQueue = new Queue();
  readonly #proofQueue = new Queue();
  readonly #buffers: Buffer[] = [];
  /** Controllers of the admitted requests. Each ends the request's wait or witness, but not its proof. */
  readonly #requests = new Set<AbortController>();
  #stopping = false;
  /** Duration of the latest proof in seconds, including the wait for a worker. */
  #lastSeconds = 1;

  constructor(options: ProofsOptions) {
    this.#options = options;
  }

  /** Number of requests that wait while another is processed. */
  get waiting(): number {
    return Math.max(0, this.#requests.size - 1);
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /**
   * Makes a proof for an input when it is the request's turn.
   *
   * @param leaving signal that is aborted when the caller has left. It ends the request's wait, witness or
   *   proof, and frees its place in the queue immediately
   * @throws BackendError, or the reason of `leaving`
   */
  async prove(input: unknown, leaving: AbortSignal): Promise<Groth16Proof> {
    const circuitInput = checkInput(input, this.#options.generator.size);
    this.#admit();
    const request = new AbortController();
    this.#requests.add(request);
    const leave = () => {
      this.#requests.delete(request);
      request.abort(leaving.reason);
    };
    leaving.addEventListener('abort', leave, { once: true });
    try {
      leaving.throwIfAborted();
      return await this.#proveInTurn(circuitInput, request, leaving);
    } catch (error) {
      throw toBackendError(error);
    } finally {
      leaving.removeEventListener('abort', leave);
      this.#requests.delete(request);
    }
  }

  /** Refuses the waiting requests, and finishes the proof that has begun. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const request of this.#requests) request.abort(createStoppingError());
    await this.#proofQueue.enter();
    this.#options.supervisor.stop();
  }

  #admit(): void {
    if (this.#stopping) throw createStoppingError();
    if (this.#requests.size <= this.#options.queue) return;
    const retryAfterSeconds = this.#retryAfter();
    throw new BackendError('BACKEND_AT_CAPACITY', 'Server at capacity', { retryAfterSeconds });
  }

  /** Returns the duration of the latest proof, as an estimate of the seconds until a place is free. */
  #retryAfter(): number {
    return Math.min(MAX_RETRY_AFTER, Math.max(1, Math.ceil(this.#lastSeconds)));
  }

  /**
   * Waits, and aborts the request if the wait takes too long. After its proof has begun, the abort has no
   * effect.
   */
  async #waitFor<Result>(request: AbortController, wait: () => Promise<Result>): Promise<Result> {
    const { timeoutMs } = this.#options;
    const timer = setTimeout(() => {
      const retryAfterSeconds = this.#retryAfter();
      const message = `the proof did not begin within ${timeoutMs / 1000} s: try again`;
      request.abort(new BackendError('BACKEND_WAITED', message, { retryAfterSeconds }));
    }, timeoutMs);
    try {
      return await wait();
    } finally {
      clearTimeout(timer);
    }
  }

  async #proveInTurn(
    input: CircuitInput,
    request: AbortController,
    leaving: AbortSignal,
  ): Promise<Groth16Proof> {
    const { signal } = request;
    const { generator, supervisor, timeoutMs, witnessBytes } = this.#options;
    const arrivedAt = performance.now();
    const endWitnessTurn = await this.#waitFor(request, () => this.#witnessQueue.enter(signal));
    const begunAt = performance.now();
    const witness = this.#buffers.pop() ?? Buffer.alloc(witnessBytes);
    try {
      let computedAt: number;
      let endProofTurn: () => void;
      try {
        await generateWitness(generator.command, input, { timeoutMs, signal, buffer: witness });
        computedAt = performance.now();
        endProofTurn = await this.#waitFor(request, () => this.#proofQueue.enter(signal));
      } finally {
        endWitnessTurn();
      }
      const turnAt = performance.now();
      try {
        const publicInput = input[PUBLIC_SIGNAL] as string;
        const signals = { wait: signal, leaving };
        return await this.#waitFor(request, () => supervisor.prove(witness, publicInput, signals));
      } finally {
        endProofTurn();
        this.#report({ arrivedAt, begunAt, computedAt, turnAt, isAbandoned: leaving.aborted });
      }
    } finally {
      witness.fill(0);
      this.#buffers.push(witness);
    }
  }

  /** Logs the duration of each part of a request, in milliseconds, and passes it to `onPart`. */
  #report({
    arrivedAt,
    begunAt,
    computedAt,
    turnAt,
    isAbandoned,
  }: Record<'arrivedAt' | 'begunAt' | 'computedAt' | 'turnAt', number> & {
    readonly isAbandoned: boolean;
  }): void {
    const end = performance.now();
    if (!isAbandoned) this.#lastSeconds = (end - turnAt) / 1000;
    const ms = {
      queue: begunAt - arrivedAt + turnAt - computedAt,
      witness: computedAt - begunAt,
      engine: end - turnAt,
    };
    if (!isAbandoned) for (const part of BACKEND_PARTS) this.#options.onPart?.(part, ms[part]);
    const times = {
      queue_ms: Math.round(ms.queue),
      witness_ms: Math.round(ms.witness),
      engine_ms: Math.round(ms.engine),
    };
    const message = isAbandoned ? 'ended the work on a request whose caller has left' : 'worked on a request';
    this.#options.log.info({ ...times, waiting: this.waiting }, message);
  }
}

function createStoppingError(): BackendError {
  return new BackendError('BACKEND_STOPPING', 'the service is stopping: try again', { retryAfterSeconds: 1 });
}

/** Converts an error into the error that answers the caller. Its cause is only for the log. */
function toBackendError(error: unknown): unknown {
  if (error instanceof WitnessRefusal) {
    return new BackendError(
      'BACKEND_INPUT_REFUSED',
      "the input does not satisfy the circuit: check that the token, the issuer's key, the nonce and the salt belong together",
    );
  }
  if (error instanceof EngineError && error.fault === 'hung') {
    const message = `${error.message}, and is being replaced: try again`;
    return new BackendError('BACKEND_ENGINE_HUNG', message, { cause: error, retryAfterSeconds: 1 });
  }
  if (error instanceof EngineError) {
    return new BackendError('BACKEND_ENGINE', `${error.message}: try again`, { cause: error });
  }
  if (error instanceof ProverError) {
    return new BackendError('BACKEND_WITNESS', error.message, { cause: error });
  }
  return error;
}
