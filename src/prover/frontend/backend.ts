/** Asks the backend for proofs, with one deadline for all attempts, and for the network of its key. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { AxiosInstance, AxiosResponse } from 'axios';
import { quantity } from 'sui-enclave/wording';
import { createUpstream, isUpstreamError, parseJson, type UpstreamError } from 'sui-enclave-service/upstream';
import { ProverError } from '../errors.ts';
import type { CircuitInput } from '../input.ts';
import type { Groth16Proof } from '../verify.ts';
import { FrontendError } from './errors.ts';

/** Maximum size of an answer in bytes. A proof has about 1 KB. */
const MAX_ANSWER = 64 * 1024;
/**
 * Maximum number of attempts. A request is repeated if a connection failed, since a repetition does no harm
 * and may reach another backend.
 */
const ATTEMPTS = 3;
const PAUSE_MS = 250;
/**
 * Default of `Retry-After` in seconds if a full backend sends none. It is roughly the time that one proof
 * takes.
 */
const BUSY_SECONDS = 5;
const MAX_RETRY_AFTER_SECONDS = 600;
const HEALTH_TIMEOUT_MS = 5000;
/** Beginning of the backend's answer if its engine hung. */
const HUNG = 'BACKEND_ENGINE_HUNG:';

export interface BackendHealth {
  /**
   * HTTP status. It is 503 while the backend loads its key, or if HAProxy has no backend in service. It is
   * 502 or 504 if a backend fails.
   */
  readonly status: number;
  /** Network of the backend's key; undefined if the backend doesn't report it. */
  readonly network: string | undefined;
}

export class Backend {
  readonly #client: AxiosInstance;
  readonly #health: AxiosInstance;
  readonly #path: string;
  readonly #timeoutSeconds: number;

  /**
   * @param uri URL that takes the circuit's inputs; the same host answers `GET /healthz`
   * @param hosts number of hosts that the service sends requests to, in all
   */
  constructor(uri: URL, timeoutSeconds: number, hosts: number) {
    const upstream = createUpstream(uri.origin, undefined, hosts);
    this.#client = upstream({ timeoutMs: timeoutSeconds * 1000, maxSize: MAX_ANSWER });
    this.#health = upstream({ timeoutMs: HEALTH_TIMEOUT_MS, maxSize: MAX_ANSWER });
    this.#path = uri.pathname + uri.search;
    this.#timeoutSeconds = timeoutSeconds;
  }

  /**
   * Returns the proof in the backend's answer. Does not verify it.
   *
   * @param abandoned signal that closes the connection, which tells the backend that no caller waits for the
   *   proof
   * @param hasTime returns whether there is time for another proof if the engine hung during this one
   * @throws FrontendError: PROVER_BACKEND_UNREACHABLE, PROVER_BACKEND_ANSWER, PROVER_BACKEND_TIMEOUT,
   *   PROVER_BUSY, PROVER_ENGINE_HUNG. Throws the reason of `abandoned` once it is aborted
   */
  async prove(input: CircuitInput, abandoned: AbortSignal, hasTime: () => boolean): Promise<Groth16Proof> {
    const start = performance.now();
    const body = JSON.stringify(input);
    const answer = await this.#send(body, start, abandoned);
    const finalAnswer = isHung(answer) && hasTime() ? await this.#send(body, start, abandoned) : answer;
    return readProof(finalAnswer, start);
  }

  /**
   * Sends the input, and repeats it if a connection failed.
   *
   * @throws FrontendError; the reason of `abandoned`
   */
  async #send(body: string, start: number, abandoned: AbortSignal): Promise<AxiosResponse<Buffer>> {
    const timeoutMs = this.#timeoutSeconds * 1000;
    const end = start + timeoutMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#client.post<Buffer>(this.#path, body, {
          headers: { 'content-type': 'application/json', accept: 'application/json' },
          timeout: Math.min(Math.max(1, end - performance.now()), timeoutMs),
          responseType: 'arraybuffer',
          validateStatus: null,
          signal: abandoned,
        });
      } catch (error) {
        abandoned.throwIfAborted();
        if (!isUpstreamError(error)) throw error;
        const pauseMs = PAUSE_MS * attempt;
        const mayRepeat = error.reason === 'unreachable' || error.reason === 'broken';
        if (!mayRepeat || attempt === ATTEMPTS || performance.now() + pauseMs >= end) {
          throw toFailure(error, this.#timeoutSeconds);
        }
        await sleep(pauseMs);
      }
    }
  }

  /** Reads `/healthz` of the backend. Returns undefined if there is no answer. */
  async health(): Promise<BackendHealth | undefined> {
    const healthRequest = this.#health.get<Buffer>('/healthz', {
      responseType: 'arraybuffer',
      validateStatus: null,
    });
    const answer = await healthRequest.catch((error: unknown) => {
      if (isUpstreamError(error)) return undefined;
      throw error;
    });
    if (answer === undefined) return undefined;
    // HAProxy and backends of other kinds answer with text.
    const healthAnswer = parseJson(answer.data) as { key?: { network?: unknown } } | null | undefined;
    const network = healthAnswer?.key?.network;
    // The name is logged, so it must have the form that backends of this project give it.
    const isNamed = typeof network === 'string' && /^[a-z ]{1,40}$/.test(network);
    return { status: answer.status, network: isNamed ? network : undefined };
  }
}

function toFailure(cause: UpstreamError, timeoutSeconds: number): FrontendError {
  switch (cause.reason) {
    case 'timeout':
    case 'slow body':
      return createTimeoutError(timeoutSeconds, 'raise PROVER_TIMEOUT, or give the backend more cores');
    case 'too large':
      return createAnswerError(`its answer has more than ${MAX_ANSWER} bytes`);
    default:
      return new FrontendError(
        'PROVER_BACKEND_UNREACHABLE',
        'the proving component could not be reached, or closed the connection: try again',
        { cause },
      );
  }
}

/** Returns an error whose words the wallet recognises: see src/library/zklogin/http.ts. */
function createTimeoutError(seconds: number, remedy: string): FrontendError {
  return new FrontendError(
    'PROVER_BACKEND_TIMEOUT',
    `the call to the proving component took longer than ${quantity(seconds, 'second')}: ${remedy}`,
  );
}

/**
 * Returns the error for an unusable answer. It contains no text from the backend, which may repeat private
 * input.
 */
function createAnswerError(problem: string, cause?: ProverError): FrontendError {
  return new FrontendError('PROVER_BACKEND_ANSWER', `the proving component failed: ${problem}`, { cause });
}

function isHung({ status, data }: AxiosResponse<Buffer>): boolean {
  return status === 500 && data.toString('latin1', 0, HUNG.length) === HUNG;
}

function readProof(answer: AxiosResponse<Buffer>, start: number): Groth16Proof {
  const { status, data, headers } = answer;
  if (isHung(answer)) {
    throw new FrontendError(
      'PROVER_ENGINE_HUNG',
      'the proving engine hung, and is being replaced: try again',
      { retryAfterSeconds: parseRetryAfter(headers['retry-after']) },
    );
  }
  if (status === 503) {
    throw new FrontendError('PROVER_BUSY', 'the proving component is at capacity: try again later', {
      retryAfterSeconds: parseRetryAfter(headers['retry-after']),
    });
  }
  if (status === 504) {
    const seconds = Math.floor((performance.now() - start) / 1000);
    throw createTimeoutError(seconds, 'the gateway in front of it gave up');
  }
  if (status === 400) {
    throw createAnswerError('it refused the input: CIRCUIT_SIZE must be the size of its circuit');
  }
  // The status goes to the log only, since only the operator can use it.
  if (status !== 200) throw createAnswerError('try again', createStatusError(status));
  const proof = parseJson(data) as Record<string, unknown> | null | undefined;
  const { pi_a, pi_b, pi_c, protocol = 'groth16', curve = 'bn128' } = proof ?? {};
  if (!pi_a || !pi_b || !pi_c || protocol !== 'groth16' || curve !== 'bn128') {
    throw createAnswerError('its answer is not a Groth16 proof on BN254');
  }
  return { a: pi_a, b: pi_b, c: pi_c } as Groth16Proof;
}

function createStatusError(status: number): ProverError {
  return new ProverError('PROVER_BACKEND_ANSWER', `the backend answered with status ${status}`);
}

/** Parses a number of seconds (RFC 9110, section 10.2.3), and keeps it within this service's limits. */
function parseRetryAfter(header: unknown): number {
  const seconds = typeof header === 'string' && /^[0-9]{1,6}$/.test(header) ? Number(header) : BUSY_SECONDS;
  return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
}
