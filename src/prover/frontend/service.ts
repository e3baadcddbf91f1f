/** Answers a request with a verified proof, after it has checked everything that the proof does not prove. */
import { createHash } from 'node:crypto';
import type { AxiosInstance } from 'axios';
import type { ProofRequest } from 'sui-enclave/zklogin/services';
import type { Logger } from 'sui-enclave-service/log';
import { createKeySources } from 'sui-enclave-service/oidc/keys';
import { TokenVerifier, type Verified } from 'sui-enclave-service/oidc/verify';
import { RateLimit } from 'sui-enclave-service/rate_limit';
import { createUpstreams, isUpstreamError, type Upstreams } from 'sui-enclave-service/upstream';
import { untilAborted } from 'sui-enclave-service/waiting';
import { ProverError } from '../errors.ts';
import { type BuiltInput, buildInput, readNumbers } from '../input.ts';
import { readProofRequest } from '../request.ts';
import { type Groth16Proof, verifyProof } from '../verify.ts';
import { Backend, type BackendHealth } from './backend.ts';
import type { FrontendConfig, ProverClient } from './config.ts';
import { FrontendError, toFrontendError } from './errors.ts';
import type { NetworkKey, NetworkName } from './keys.ts';
import { type Place, Places } from './places.ts';
import { SingleFlight } from './single_flight.ts';

/**
 * Answer to a wallet. Until the proof expires, the answer is as secret as a password: don't keep or log it.
 */
export interface ProofAnswer {
  readonly proofPoints: Groth16Proof;
  readonly issBase64Details: BuiltInput['issBase64Details'];
  readonly headerBase64: string;
}

/** Names of the timed parts of the work on a request. */
export const FRONTEND_PARTS = ['verify', 'input', 'backend', 'check'] as const;
export type FrontendPart = (typeof FRONTEND_PARTS)[number];

/** Maximum age of the backend's status in an answer of `/readyz`, in milliseconds. */
const HEALTH_AGE_MS = 2000;
/**
 * Minimum interval, in milliseconds, between requests for the backend's network, while the backend has
 * another network's key.
 */
const NETWORK_PAUSE_MS = 5000;

/** Answer to a request for `/readyz`. */
export interface Readiness {
  readonly ready: true;
  /** Network whose validators accept the proofs. */
  readonly network: string;
  /** Network of the backend's key; null if the backend does not name it. */
  readonly backend: string | null;
}

export interface ProvingOptions {
  readonly config: FrontendConfig;
  readonly log: Logger;
  /**
   * Origins to use instead of `https://<host>`, by host. They are for development and tests, so the
   * environment can't set them.
   */
  readonly origins?: Readonly<Record<string, string>>;
}

/** Receives each completed part of the work, and its duration in milliseconds. */
type OnPart = (part: FrontendPart, ms: number) => void;

export class ProvingService {
  readonly #config: FrontendConfig;
  readonly #log: Logger;
  readonly #backend: Backend;
  readonly #keySources: ReturnType<typeof createKeySources<ProverClient>>;
  readonly #places: Places;
  readonly #userLimit: RateLimit;
  /**
   * Receiver of the durations. The code that starts the service sets it, since the metrics also read the
   * service.
   */
  onPart: OnPart | undefined;
  readonly #singleFlight = new SingleFlight<ProofAnswer>();
  /** Network that the backend last named, if its key can't be that of the service. */
  #wrongNetwork: string | undefined;
  #askAgainAt = 0;
  #health: Promise<BackendHealth | undefined> = Promise.resolve(undefined);
  #healthUntil = 0;
  /** Number of hosts that the service calls: the backend, and the hosts of the issuers' keys. */
  readonly hosts: number;

  constructor({ config, log, origins = {} }: ProvingOptions) {
    this.#config = config;
    this.#log = log;
    const issuers = new Set(config.clients.map(({ jwksUrl }) => jwksUrl.hostname));
    this.hosts = issuers.size + 1;
    const upstream = createUpstreams({ endpoints: [...issuers] }, origins, this.hosts);
    this.#backend = new Backend(config.backend, config.timeoutSeconds, this.hosts);
    this.#keySources = createKeySources(config.clients, logUpstreams(upstream, config, log));
    this.#places = new Places(config);
    this.#userLimit = new RateLimit(config.userRequestsPerMinute);
  }

  /** Number of requests that have a place at the backend. */
  get places(): number {
    return this.#places.taken;
  }

  /**
   * Makes a proof. Identical requests at the same time share one proof, which ends when the last of their
   * callers has left.
   *
   * @param body JSON of a request
   * @param leaving signal that is aborted when the caller has left
   * @throws FrontendError. Throws the reason of `leaving` once it is aborted
   */
  async prove(body: unknown, leaving: AbortSignal): Promise<ProofAnswer> {
    try {
      const request = readProofRequest(body);
      requireIdentity(request);
      const hash = computeHash(request);
      return await this.#singleFlight.run(hash, leaving, (abandoned) => this.#make(request, abandoned));
    } catch (error) {
      throw toFrontendError(error);
    }
  }

  async #make(request: ProofRequest, abandoned: AbortSignal): Promise<ProofAnswer> {
    const timer = new Timer(this.onPart);
    const place = this.#places.offer();
    try {
      await this.#requireNetwork();
      this.#places.requireRoom();
      const verified = await this.#verify(request.jwt, place);
      this.#limit(verified);
      timer.lap('verify');
      const input = buildInput(request, verified.key, this.#config.profile);
      timer.lap('input');
      const proof = await this.#backend.prove(input.circuit, abandoned, place.hasTime);
      timer.lap('backend');
      this.#check(proof, input.publicInput);
      // The duration is recorded only now, since an immediate failure says nothing about the duration of a
      // proof.
      place.recordProof();
      timer.lap('check');
      const { issuer, clientId = null } = verified.client;
      this.#info({ issuer, client_id: clientId, ms: timer.laps }, 'made a proof');
      const { issBase64Details, headerBase64 } = input;
      return { proofPoints: proof, issBase64Details, headerBase64 };
    } catch (error) {
      if (abandoned.aborted) {
        this.#info({ ms: timer.laps }, 'the callers have left');
        throw error;
      }
      const frontendError = toFrontendError(error);
      this.#info(
        { code: frontendError instanceof FrontendError ? frontendError.code : 'INTERNAL', ms: timer.laps },
        'refused',
      );
      throw frontendError;
    } finally {
      place.leave();
    }
  }

  /**
   * Verifies the token. Takes the place after the issuer's keys are known, and before the signature is
   * checked.
   *
   * @throws OidcError; PROVER_BUSY
   */
  #verify(jwt: string, place: Place): Promise<Verified<ProverClient>> {
    const verifier = new TokenVerifier(this.#config.clients, this.#keySources, {
      limit(check) {
        place.take();
        return check();
      },
    });
    return verifier.verify(jwt);
  }

  /** Logs a line, which must not contain any part of a request. */
  #info(line: object, message: string): void {
    if (this.#config.isLogged('zkLogin:info')) this.#log.info({ name: 'zkLogin:info', ...line }, message);
  }

  /**
   * Limits the requests of a user. One token allows any number of different requests, since its nonce doesn't
   * bind the salt.
   */
  #limit({ issuer, payload: { aud, sub } }: Verified<ProverClient>): void {
    const user = createHash('sha256')
      .update(JSON.stringify([issuer, aud, sub]))
      .digest('base64');
    const retryAfterSeconds = this.#userLimit.take(user);
    if (retryAfterSeconds > 0) {
      throw new FrontendError('PROVER_RATE_LIMITED', 'too many requests of this user: try again later', {
        retryAfterSeconds,
      });
    }
  }

  /** @throws FrontendError: PROVER_BACKEND_ANSWER, PROVER_WRONG_NETWORK */
  #check(proof: Groth16Proof, publicInput: bigint): void {
    const { own: ownKey, others: otherKeys } = this.#config.keys;
    if (isValid(ownKey, proof, publicInput)) return;
    const otherKey = otherKeys.find((key) => isValid(key, proof, publicInput));
    if (otherKey) {
      const error = createNetworkError(otherKey.network, ownKey.network);
      this.#log.error({ backend: otherKey.network, service: ownKey.network }, error.message);
      throw error;
    }
    throw new FrontendError(
      'PROVER_BACKEND_ANSWER',
      "the proving component's proof is not valid for this request under VERIFYING_KEY",
    );
  }

  /**
   * Asks the backend for the network of its key, and logs this network.
   *
   * @returns whether the backend named its network
   */
  async checkNetwork(): Promise<boolean> {
    const serviceNetwork = this.#config.keys.own.network;
    const backendNetwork = (await this.#backend.health())?.network;
    this.#wrongNetwork = undefined;
    if (backendNetwork === undefined) return false;
    if (backendNetwork === serviceNetwork) {
      this.#log.info({ network: serviceNetwork }, 'the backend has the key of this network');
    } else if (canMatch(backendNetwork, serviceNetwork)) {
      this.#log.info(
        { backend: backendNetwork, service: serviceNetwork },
        'the key of the backend is pinned and not published: only its proofs show whether it belongs to VERIFYING_KEY',
      );
    } else {
      this.#wrongNetwork = backendNetwork;
      this.#log.error(
        { backend: backendNetwork, service: serviceNetwork },
        createNetworkError(backendNetwork, serviceNetwork).message,
      );
    }
    return true;
  }

  /**
   * Returns the networks of the service and of the backend, if the service can answer requests according to
   * the backend's status. The status is read at most every two seconds.
   *
   * @param leaving signal that is aborted when the caller has left
   * @throws FrontendError: PROVER_NOT_READY, PROVER_WRONG_NETWORK. Throws the reason of `leaving` once it is
   *   aborted
   */
  async readiness(leaving?: AbortSignal): Promise<Readiness> {
    if (performance.now() >= this.#healthUntil) {
      this.#healthUntil = performance.now() + HEALTH_AGE_MS;
      this.#health = this.#backend.health();
    }
    const health = await untilAborted(this.#health, leaving);
    const serviceNetwork = this.#config.keys.own.network;
    if (health === undefined) throw createReadinessError('the backend does not answer');
    if (health.status >= 500)
      throw createReadinessError('no backend is ready: the key is being loaded, or no backend is in service');
    if (health.network === undefined) return { ready: true, network: serviceNetwork, backend: null };
    if (!canMatch(health.network, serviceNetwork)) throw createNetworkError(health.network, serviceNetwork);
    return { ready: true, network: serviceNetwork, backend: health.network };
  }

  /** @throws FrontendError: PROVER_WRONG_NETWORK */
  async #requireNetwork(): Promise<void> {
    if (this.#wrongNetwork === undefined) return;
    if (performance.now() >= this.#askAgainAt) {
      this.#askAgainAt = performance.now() + NETWORK_PAUSE_MS;
      await this.checkNetwork();
    }
    if (this.#wrongNetwork !== undefined)
      throw createNetworkError(this.#wrongNetwork, this.#config.keys.own.network);
  }
}

/** Requires a claim that identifies a user. Users can choose the values of other claims, such as a name. */
function requireIdentity({ keyClaimName }: ProofRequest): void {
  if (keyClaimName === 'sub' || keyClaimName === 'email') return;
  throw new ProverError('PROVER_REQUEST', 'keyClaimName must be "sub" or "email"');
}

/**
 * Returns whether the backend's key can be that of the service. A backend names the network of a pinned key
 * `unknown`, and the service counts each verifying key that is not published as `development`.
 */
function canMatch(backend: string, service: NetworkName): boolean {
  return backend === service || (backend === 'unknown' && service === 'development');
}

function createReadinessError(problem: string): FrontendError {
  return new FrontendError('PROVER_NOT_READY', problem, { retryAfterSeconds: HEALTH_AGE_MS / 1000 });
}

function createNetworkError(backend: string, service: string): FrontendError {
  return new FrontendError(
    'PROVER_WRONG_NETWORK',
    `the backend has the key of ${backend}, but this service has the key of ${service}: the operator must change the key of the backend (ZKEY) or of this service (VERIFYING_KEY)`,
  );
}

function isValid({ verifyingKey }: NetworkKey, proof: Groth16Proof, publicInput: bigint): boolean {
  try {
    return verifyProof(verifyingKey, proof, [publicInput]);
  } catch (error) {
    // The error is PROVER_MALFORMED_PROOF: the backend's proof has invalid points.
    if (error instanceof ProverError) return false;
    throw error;
  }
}

/**
 * Hashes a request. Requests with the same token and the same numbers have the same hash, in any encoding.
 */
function computeHash(request: ProofRequest): string {
  const { key, maxEpoch, randomness, salt } = readNumbers(request);
  const canonical = [request.jwt, ...[key, maxEpoch, randomness, salt].map(String), request.keyClaimName];
  return createHash('sha256').update(JSON.stringify(canonical)).digest('base64');
}

/** Returns upstreams that log the answers of issuers, if DEBUG selects these lines. */
function logUpstreams(upstream: Upstreams, { isLogged }: FrontendConfig, log: Logger): Upstreams {
  return (host, bounds) => {
    const client = upstream(host, bounds);
    if (isLogged('jwks')) logExchanges(client, host, log);
    return client;
  };
}

function logExchanges(client: AxiosInstance, host: string, log: Logger): void {
  client.interceptors.response.use(
    (answer) => {
      const { status, data } = answer;
      log.info({ name: 'jwks', host, status, bytes: (data as Buffer).length }, "fetched the issuer's keys");
      return answer;
    },
    (error: unknown) => {
      const reason = isUpstreamError(error) ? error.reason : 'internal';
      log.info({ name: 'jwks', host, reason }, "could not fetch the issuer's keys");
      throw error;
    },
  );
}

/** Measures the milliseconds of each part of a request. */
class Timer {
  readonly laps: Partial<Record<FrontendPart, number>> = {};
  readonly #onPart: OnPart | undefined;
  #lapStart = performance.now();

  constructor(onPart: OnPart | undefined) {
    this.#onPart = onPart;
  }

  lap(part: FrontendPart): void {
    const now = performance.now();
    this.#onPart?.(part, now - this.#lapStart);
    this.laps[part] = Math.round(now - this.#lapStart);
    this.#lapStart = now;
  }
}
