/**
 * Controls a worker of the proving engine (native/README.md describes the protocol). It uses only pipes, so
 * that no file contains a witness.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { quantity } from 'sui-enclave/wording';
import * as v from 'valibot';
import { ProverError } from './errors.ts';
import type { Groth16Proof } from './verify.ts';

/** Types of requests to the worker. An answer has the request's type plus ANSWER, or the type REFUSED. */
const LOAD = 1;
const PROVE = 2;
const STATUS = 3;
const CANCEL = 4;
const ANSWER = 128;
const REFUSED = 255;

/** Code of the engine for a proof that a cancel request has ended. */
const CANCELLED = 'PROVER_CANCELLED';

/** Maximum size of an answer in bytes. Answers are JSON of a few kilobytes. */
const MAX_ANSWER = 64 * 1024;
/** Size of a frame's length field in bytes. The length doesn't include this field. */
const LENGTH_SIZE = 4;
/** Size in bytes of a frame's type (1 byte) and id (4 bytes), which follow the length. */
const HEAD_SIZE = 5;
const MAX_ID = 2 ** 32 - 1;
const NO_BODY = new Uint8Array();

/** Number of the descriptor that a worker inherits. */
const KEY_DESCRIPTOR = 3;
/** Path by which a worker loads the key that it inherited as a descriptor. */
export const INHERITED_KEY = `/dev/fd/${KEY_DESCRIPTOR}`;

/** The worker's description of a key. */
export interface LoadedKey {
  /** Number of wires of a witness. */
  readonly wires: number;
  /** Number of public inputs. */
  readonly public: number;
  /** Whether the key is a development key, for which anyone can forge proofs. */
  readonly development: boolean;
  /** Size of a `.wtns` file for this key. */
  readonly witnessBytes: number;
}

export interface EngineProof {
  readonly proof: Groth16Proof;
  /** Public inputs that the proof is for, in decimal. */
  readonly publicInputs: readonly string[];
}

/**
 * Instructions that an engine uses: AVX-512 IFMA; ADX, where a proof takes three times as long; or only
 * those that every processor has.
 */
export type EnginePath = 'avx512ifma' | 'adx' | 'portable';

export interface EngineStatus {
  readonly state: 'no key' | 'loading' | 'idle' | 'proving';
  readonly path: EnginePath;
  /** Counter that grows several times per second while a proof is made. */
  readonly progress: number;
}

/** Reason why a request to the engine failed. Every reason except `refused` also ends the worker. */
export type EngineFault = 'refused' | 'unstartable' | 'ended' | 'late' | 'hung' | 'invalid';

export class EngineError extends ProverError {
  readonly fault: EngineFault;
  /** Code of the engine, if it refused a request. */
  readonly refusal: string | undefined;

  constructor(fault: EngineFault, message: string, refusal?: string) {
    super('PROVER_ENGINE', message);
    this.fault = fault;
    this.refusal = refusal;
  }
}

const Count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const LoadAnswer = v.object({ wires: Count, public: Count, development: v.boolean(), witnessBytes: Count });
const Decimal = v.pipe(v.string(), v.regex(/^(0|[1-9][0-9]{0,77})$/));
const G1 = v.strictTuple([Decimal, Decimal, Decimal]);
const Fp2 = v.strictTuple([Decimal, Decimal]);
const ProveAnswer = v.object({
  proof: v.object({ pi_a: G1, pi_b: v.strictTuple([Fp2, Fp2, Fp2]), pi_c: G1 }),
  public: v.array(Decimal),
});
const Status = v.object({
  state: v.picklist(['no key', 'loading', 'idle', 'proving']),
  path: v.picklist(['avx512ifma', 'adx', 'portable']),
  progress: Count,
});
const Refusal = v.object({
  code: v.pipe(v.string(), v.regex(/^[A-Z_]{1,64}$/)),
  message: v.pipe(v.string(), v.maxLength(1024)),
});

interface PendingRequest {
  readonly type: number;
  answer(body: unknown): void;
  fail(error: EngineError): void;
}

/**
 * One run of a worker. The worker does one task at a time. During a task, it answers requests for its status.
 * It is killed at the first answer that violates the protocol.
 */
export class EngineWorker {
  /** Resolves when the process has exited. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #stdin: Writable;
  #received = Buffer.alloc(0);
  /** Requests without an answer yet, by id: at most a load or a proof, and a status request. */
  readonly #pendingRequests = new Map<number, PendingRequest>();
  /** Answer to a status request, which several callers may await. */
  #status: Promise<EngineStatus> | undefined;
  #lastId = 0;
  #fault: EngineError | undefined;

  /**
   * @param program path of the engine
   * @param key open descriptor of a key, which the worker inherits as INHERITED_KEY
   */
  constructor(program: string, key?: number) {
    const inherited = key === undefined ? [] : [key];
    this.#child = spawn(program, ['worker'], { stdio: ['pipe', 'pipe', 'ignore', ...inherited] });
    const [stdin, stdout] = this.#child.stdio as unknown as [Writable, Readable];
    this.#stdin = stdin;
    // A worker that exits early closes its input. The handler of `close` reports the exit.
    stdin.on('error', () => {});
    stdout.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.ended = new Promise((resolve) => {
      this.#child.once('error', () => {
        this.#stop(new EngineError('unstartable', 'the engine could not be started'));
        resolve();
      });
      this.#child.once('close', () => {
        this.#stop(new EngineError('ended', 'the engine exited before it answered'));
        resolve();
      });
    });
  }

  /** Whether the worker accepts requests. Once this is false, it stays false. */
  get isUsable(): boolean {
    return this.#fault === undefined;
  }

  /** Error that made the worker unusable. */
  get fault(): EngineError | undefined {
    return this.#fault;
  }

  /** Id of the process; undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Loads a proving key. @throws EngineError */
  load(zkey: string, timeoutMs: number): Promise<LoadedKey> {
    return this.#ask(LOAD, Buffer.from(zkey), LoadAnswer, timeoutMs);
  }

  /**
   * Proves a witness. Does not verify the proof.
   *
   * @param witness the contents of a `.wtns` file, which must not change before the promise settles
   * @param leaving signal that cancels the proof. The promise settles when the engine has ended this proof,
   *   and can begin the next
   * @throws EngineError. Throws the reason of `leaving` if that signal cancelled the proof
   */
  async prove(witness: Uint8Array, timeoutMs: number, leaving?: AbortSignal): Promise<EngineProof> {
    leaving?.throwIfAborted();
    try {
      const { proof, public: publicInputs } = await this.#ask(
        PROVE,
        witness,
        ProveAnswer,
        timeoutMs,
        leaving,
      );
      return { proof: { a: proof.pi_a, b: proof.pi_b, c: proof.pi_c }, publicInputs };
    } catch (error) {
      if (error instanceof EngineError && error.refusal === CANCELLED) leaving?.throwIfAborted();
      throw error;
    }
  }

  /**
   * Asks for the worker's status, which the worker also reports while it loads a key or makes a proof. The
   * request has no time limit.
   *
   * @throws EngineError if the worker ends
   */
  status(): Promise<EngineStatus> {
    this.#status ??= this.#ask(STATUS, NO_BODY, Status).finally(() => {
      this.#status = undefined;
    });
    return this.#status;
  }

  /** Ends the process immediately. Requests without an answer fail with this reason. */
  kill(reason = new EngineError('ended', 'the engine was stopped')): void {
    this.#stop(reason);
  }

  async #ask<Answer>(
    type: number,
    body: Uint8Array,
    schema: v.GenericSchema<unknown, Answer>,
    timeoutMs?: number,
    leaving?: AbortSignal,
  ): Promise<Answer> {
    if (this.#fault) throw this.#fault;
    const isBusy = [...this.#pendingRequests.values()].some(
      (pendingRequest) => pendingRequest.type !== STATUS,
    );
    if (isBusy && type !== STATUS) throw new EngineError('refused', 'the engine is busy');
    this.#lastId = this.#lastId === MAX_ID ? 1 : this.#lastId + 1;
    const id = this.#lastId;
    const answerBody = new Promise<unknown>((answer, fail) => {
      this.#pendingRequests.set(id, { type, answer, fail });
    });
    const stopLate = () =>
      this.#stop(new EngineError('late', `the engine did not answer within ${timeoutMs} ms`));
    const timer = timeoutMs === undefined ? undefined : setTimeout(stopLate, timeoutMs);
    this.#send(type, id, body);
    const cancel = () => this.#send(CANCEL, id, NO_BODY);
    leaving?.addEventListener('abort', cancel, { once: true });
    try {
      const { success, output } = v.safeParse(schema, await answerBody);
      if (success) return output;
      throw this.#stop(new EngineError('invalid', 'the engine answered with JSON of an unexpected form'));
    } finally {
      clearTimeout(timer);
      leaving?.removeEventListener('abort', cancel);
    }
  }

  #send(type: number, id: number, body: Uint8Array): void {
    const head = Buffer.alloc(LENGTH_SIZE + HEAD_SIZE);
    head.writeUInt32LE(HEAD_SIZE + body.length, 0);
    head.writeUInt8(type, LENGTH_SIZE);
    head.writeUInt32LE(id, LENGTH_SIZE + 1);
    this.#stdin.write(head);
    this.#stdin.write(body);
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (!this.#fault && this.#received.length >= LENGTH_SIZE) {
      const length = this.#received.readUInt32LE(0);
      if (length < HEAD_SIZE || length > MAX_ANSWER) {
        this.#stop(new EngineError('invalid', `the engine sent a frame of ${quantity(length, 'byte')}`));
        return;
      }
      const end = LENGTH_SIZE + length;
      if (this.#received.length < end) return;
      const frame = this.#received.subarray(LENGTH_SIZE, end);
      this.#received = this.#received.subarray(end);
      this.#take(frame.readUInt8(0), frame.readUInt32LE(1), frame.subarray(HEAD_SIZE));
    }
  }

  #take(type: number, id: number, body: Buffer): void {
    const pendingRequest = this.#pendingRequests.get(id);
    const isAnswer =
      pendingRequest !== undefined && (type === pendingRequest.type + ANSWER || type === REFUSED);
    const json = isAnswer ? parse(body) : undefined;
    if (!pendingRequest || json === undefined) {
      const problem = isAnswer ? 'an answer that is not JSON' : 'an answer without a request';
      this.#stop(new EngineError('invalid', `the engine sent ${problem}`));
      return;
    }
    this.#pendingRequests.delete(id);
    if (type === REFUSED) pendingRequest.fail(parseRefusal(json, pendingRequest.type));
    else pendingRequest.answer(json);
  }

  /** Stops the worker. If there are several faults, the first is kept. */
  #stop(fault: EngineError): EngineError {
    this.#fault ??= fault;
    this.#received = Buffer.alloc(0);
    for (const pendingRequest of this.#pendingRequests.values()) pendingRequest.fail(this.#fault);
    this.#pendingRequests.clear();
    this.#child.kill('SIGKILL');
    return this.#fault;
  }
}

/** Parses a refusal. The error has the engine's code, and its message only if a key was refused. */
function parseRefusal(json: unknown, type: number): EngineError {
  const { success, output } = v.safeParse(Refusal, json);
  if (!success) return new EngineError('refused', 'the engine refused without a reason');
  const reason = type === LOAD ? `${output.code}: ${output.message}` : output.code;
  return new EngineError('refused', `the engine refused: ${reason}`, output.code);
}

/** Parses JSON; returns undefined if the body is not JSON. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

/**
 * Proves a witness with a worker that is started for this proof and stopped afterwards. Does not verify the
 * proof.
 *
 * @param engine path of the program that src/toolchain/prover/engine.ts builds
 * @param zkey path of the proving key
 * @param witness the contents of a `.wtns` file
 * @param timeoutMs time limit in milliseconds, both for loading the key and for the proof
 * @throws EngineError
 */
export async function proveOnce(
  engine: string,
  zkey: string,
  witness: Uint8Array,
  { timeoutMs = 300_000 }: { readonly timeoutMs?: number } = {},
): Promise<Groth16Proof> {
  const worker = new EngineWorker(engine);
  try {
    await worker.load(zkey, timeoutMs);
    return (await worker.prove(witness, timeoutMs)).proof;
  } finally {
    worker.kill();
  }
}
