/** The keys of an issuer: fetched on demand, cached, and renewed at a bounded rate. */
import type { AxiosInstance } from 'axios';
import { isUpstreamError, parseJson, type UpstreamError, type Upstreams } from '../upstream.ts';
import { startShared, waitForShared } from '../waiting.ts';
import type { Client } from './clients.ts';
import { type OidcCode, OidcError } from './errors.ts';
import { type KeyOfId, type KeysById, keyOfId, readKeySet } from './jwk.ts';

/**
 * Time after which keys are renewed, and thus the longest time for which a revoked key is accepted while the
 * issuer answers.
 */
const FRESH_MS = 10 * 60_000;
/** Maximum time for which known keys remain valid during an outage of the issuer. */
const MAX_AGE_MS = 24 * 60 * 60_000;
/**
 * Minimum interval between requests to the issuer, whatever keys the tokens name. It is shorter after a
 * failure.
 */
const PAUSE_MS = 30_000;
const PAUSE_AFTER_FAILURE_MS = 5000;

/** Limits for upstream(). The largest key set of the known providers has about 20 KB. */
export const KEYS_BOUNDS = { timeoutMs: 5000, maxSize: 256 * 1024 };

interface CachedKeys {
  readonly keys: KeysById;
  /** Time by the monotonic clock, in milliseconds. */
  readonly fetchedAt: number;
}

export class IssuerKeys {
  readonly #client: AxiosInstance;
  readonly #path: string;
  readonly #now: () => number;
  #cached: CachedKeys | undefined;
  /** Error of the last attempt, from the upstream or from the budget for its calls. */
  #failure: unknown;
  /** Time of that error, by the monotonic clock. */
  #failedAt = Number.NEGATIVE_INFINITY;
  #nextFetchAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;

  /**
   * @param client client for the host of the keys, with KEYS_BOUNDS
   * @param path path and query of the keys
   * @param now a monotonic clock in milliseconds
   */
  constructor(client: AxiosInstance, path: string, now: () => number = () => performance.now()) {
    this.#client = client;
    this.#path = path;
    this.#now = now;
  }

  /**
   * Returns the key with this id. Fetches the keys only if the key is unknown or the known keys are old.
   * Concurrent callers share one request.
   *
   * @throws OidcError: TOKEN_KEY_UNKNOWN, ISSUER_MALFORMED if the key is malformed, or the failure to fetch
   *   the keys; other errors of the upstream
   */
  async findKey(kid: string): Promise<KeyOfId> {
    const key = this.#findCached(kid, FRESH_MS);
    if (key) return key;
    const runningFetch = this.#fetching;
    const ownFetch = runningFetch ? undefined : this.#renew();
    // While the issuer fails, known keys are used without waiting for the next attempt. After a failure long
    // ago, the issuer may answer again, and may have revoked the key.
    const isFailing = this.#failure && this.#now() - this.#failedAt < FRESH_MS;
    if (!isFailing || !this.#findCached(kid, MAX_AGE_MS)) {
      await (runningFetch ? waitForShared(runningFetch) : ownFetch);
    }
    const cachedKey = this.#findCached(kid, MAX_AGE_MS);
    if (cachedKey) return cachedKey;
    if (this.#failure) throw this.#failure;
    return keyOfId((this.#cached as CachedKeys).keys, kid);
  }

  #findCached(kid: string, maxAgeMs: number): KeyOfId | undefined {
    const cached = this.#cached;
    return cached && this.#now() - cached.fetchedAt < maxAgeMs ? cached.keys.byId.get(kid) : undefined;
  }

  /** Fetches the keys again. Never rejects. @returns undefined if it is too early to fetch them */
  #renew(): Promise<void> | undefined {
    if (this.#now() < this.#nextFetchAt) return undefined;
    this.#fetching = startShared(() => this.#fetch()).finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      const keys = await readKeySet(parseJson(await fetchKeys(this.#client, this.#path)));
      this.#cached = { keys, fetchedAt: this.#now() };
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
      this.#failedAt = this.#now();
    }
    this.#nextFetchAt = this.#now() + (this.#failure ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS);
  }
}

/**
 * Creates one IssuerKeys for each URL of keys. All issuers and clients with that URL share it.
 *
 * @param upstream makes a client for a host. Called once for each URL
 * @returns a function that returns the keys of a client
 * @throws the errors of `upstream`
 */
export function createKeySources<Accepted extends Pick<Client, 'jwksUrl'>>(
  clients: readonly Accepted[],
  upstream: Upstreams,
): (client: Accepted) => IssuerKeys {
  const keys = new Map<string, IssuerKeys>();
  for (const { jwksUrl } of clients) {
    if (keys.has(jwksUrl.href)) continue;
    const { hostname, pathname, search } = jwksUrl;
    keys.set(jwksUrl.href, new IssuerKeys(upstream(hostname, KEYS_BOUNDS), pathname + search));
  }
  return ({ jwksUrl }) => keys.get(jwksUrl.href) as IssuerKeys;
}

async function fetchKeys(client: AxiosInstance, path: string): Promise<Buffer> {
  const request = {
    headers: { accept: 'application/json' },
    responseType: 'arraybuffer',
    validateStatus: null,
  } as const;
  const { status, data } = await client.get<Buffer>(path, request).catch((error: unknown) => {
    throw isUpstreamError(error) ? toFailure(error) : error;
  });
  if (status >= 300 && status < 400) {
    throw new OidcError(
      'ISSUER_UNREACHABLE',
      'the issuer redirected the request for its keys, and redirects are not followed',
    );
  }
  if (status !== 200)
    throw new OidcError(
      'ISSUER_REFUSED',
      `the issuer answered with status ${status} when asked for its keys`,
    );
  return data;
}

function toFailure(cause: UpstreamError): OidcError {
  const [code, message] = FAILURES[cause.reason as Incomplete];
  return new OidcError(code, message, { cause });
}

const UNREACHABLE = ['ISSUER_UNREACHABLE', "the issuer's keys could not be fetched"] as const;
const SLOW = [
  'ISSUER_TIMEOUT',
  `the issuer did not send its keys within ${KEYS_BOUNDS.timeoutMs} ms`,
] as const;
/**
 * Reasons for an incomplete answer. The other reasons don't occur: every status is accepted, and the body is
 * taken as bytes.
 */
type Incomplete = Exclude<UpstreamError['reason'], 'status' | 'malformed'>;

const FAILURES: Readonly<Record<Incomplete, readonly [OidcCode, string]>> = {
  unreachable: UNREACHABLE,
  broken: UNREACHABLE,
  timeout: SLOW,
  'slow body': SLOW,
  'too large': ['ISSUER_MALFORMED', `the issuer's keys are larger than ${KEYS_BOUNDS.maxSize} bytes`],
};
