/** The keys of an issuer: fetched on demand, cached, and renewed at a bounded rate. */
import type { CryptoKey } from 'jose';
import * as v from 'valibot';
import { ExchangeFailed, parseJson, type Upstream } from '../../server/upstream.ts';
import { type SaltCode, SaltError } from './errors.ts';
import { type IssuerKey, readKey } from './jwk.ts';

/** Keys are renewed after this time. If the issuer answers, a revoked key is not accepted any longer. */
const FRESH_MS = 10 * 60_000;
/** During an outage of the issuer, known keys remain valid for at most this time. */
const MAX_AGE_MS = 24 * 60 * 60_000;
/** Minimum interval between requests to the issuer, whatever keys tokens name; shorter after a failure. */
const PAUSE_MS = 30_000;
const PAUSE_AFTER_FAILURE_MS = 5000;

const TIMEOUT_MS = 5000;
/** The largest key set of the known providers has about 20 KB. */
const MAX_SIZE = 256 * 1024;

const KeySet = v.object({ keys: v.array(v.unknown()) });

/** The key with one key id in a set. */
export interface KeyOfId {
  readonly key: CryptoKey;
  /** The only issuers whose tokens it signs; empty if the set doesn't specify them. `{tenantid}` matches any tenant. */
  readonly issuers: readonly string[];
}

interface Kept {
  readonly byId: ReadonlyMap<string, KeyOfId>;
  /** Ids for which the set has only malformed keys. */
  readonly malformed: ReadonlySet<string>;
  readonly at: number;
}

export class IssuerKeys {
  readonly #ask: Upstream;
  readonly #path: string;
  readonly #now: () => number;
  #kept: Kept | undefined;
  /** Why the last attempt failed: of an upstream, or of the budget of calls to it. */
  #failure: unknown;
  #askAgainAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  /**
   * @param ask the upstream for the host of the keys
   * @param path path and query of the keys
   * @param now a monotonic clock in milliseconds
   */
  constructor(ask: Upstream, path: string, now: () => number = () => performance.now()) {
    this.#ask = ask;
    this.#path = path;
    this.#now = now;
  }

  /**
   * The key with this id. Fetches the keys only if the key is unknown or the known keys are old; concurrent callers
   * share one request.
   *
   * @throws SALT_TOKEN_KEY_UNKNOWN, SALT_ISSUER_MALFORMED if the key is malformed, or the failure to fetch
   *   the keys
   */
  async with(kid: string): Promise<KeyOfId> {
    const known = this.#known(kid, FRESH_MS);
    if (known) return known;
    const renewed = this.#renew();
    // While the issuer fails, known keys are used without waiting for the next attempt.
    if (!this.#failure || !this.#known(kid, MAX_AGE_MS)) await renewed;
    const now = this.#known(kid, MAX_AGE_MS);
    if (now) return now;
    if (this.#failure) throw this.#failure;
    if (this.#kept?.malformed.has(kid)) {
      throw new SaltError(
        'SALT_ISSUER_MALFORMED',
        'the issuer published a malformed key with the id that the token names',
      );
    }
    throw new SaltError(
      'SALT_TOKEN_KEY_UNKNOWN',
      'the issuer has no key for RS256 with the id that the token names, or more than one',
    );
  }

  #known(kid: string, maxAgeMs: number): KeyOfId | undefined {
    const kept = this.#kept;
    return kept && this.#now() - kept.at < maxAgeMs ? kept.byId.get(kid) : undefined;
  }

  async #renew(): Promise<void> {
    if (!this.#asking) {
      if (this.#now() < this.#askAgainAt) return;
      this.#asking = this.#fetch().finally(() => {
        this.#asking = undefined;
      });
    }
    await this.#asking;
  }

  async #fetch(): Promise<void> {
    try {
      const keys = await readKeys(await fetchKeys(this.#ask, this.#path));
      this.#kept = { ...sort(keys), at: this.#now() };
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
    }
    this.#askAgainAt = this.#now() + (this.#failure ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS);
  }
}

function sort(keys: readonly IssuerKey[]): Pick<Kept, 'byId' | 'malformed'> {
  const byId = new Map<string, KeyOfId>();
  const malformed = new Set<string>();
  for (const [kid, ofId] of Map.groupBy(keys, (each) => each.kid)) {
    const whole = ofId.filter(({ key }) => key !== 'malformed');
    const usable = whole.flatMap(({ key }) => (typeof key === 'object' ? [key] : []));
    const issuers = whole.map(({ issuer }) => issuer).filter((issuer) => typeof issuer === 'string');
    const [key] = usable;
    if (key && usable.length === 1) byId.set(kid, { key, issuers });
    if (whole.length === 0) malformed.add(kid);
  }
  return { byId, malformed };
}

async function fetchKeys(ask: Upstream, path: string): Promise<Buffer> {
  const bounds = { timeoutMs: TIMEOUT_MS, maxSize: MAX_SIZE };
  const headers = { accept: 'application/json' };
  const { status, body } = await ask(path, { headers, ...bounds }).catch((error: unknown) => {
    throw error instanceof ExchangeFailed ? failure(error) : error;
  });
  if (status >= 300 && status < 400) {
    throw new SaltError(
      'SALT_ISSUER_UNREACHABLE',
      'the issuer redirected the request for its keys, and redirects are not followed',
    );
  }
  if (status !== 200)
    throw new SaltError(
      'SALT_ISSUER_REFUSED',
      `the issuer answered with status ${status} when asked for its keys`,
    );
  return body;
}

function failure(cause: ExchangeFailed): SaltError {
  const [code, message] = FAILURES[cause.reason];
  return new SaltError(code, message, { cause });
}

const UNREACHABLE = ['SALT_ISSUER_UNREACHABLE', "the issuer's keys could not be fetched"] as const;
const SLOW = ['SALT_ISSUER_TIMEOUT', `the issuer did not give its keys within ${TIMEOUT_MS} ms`] as const;
const FAILURES: Readonly<Record<ExchangeFailed['reason'], readonly [SaltCode, string]>> = {
  unreachable: UNREACHABLE,
  broken: UNREACHABLE,
  timeout: SLOW,
  'slow body': SLOW,
  'too large': ['SALT_ISSUER_MALFORMED', `the issuer's keys are larger than ${MAX_SIZE} bytes`],
};

/** The keys of a JWK set (RFC 7517, section 5) that a token can name; other keys are ignored. */
async function readKeys(body: Buffer): Promise<IssuerKey[]> {
  const set = v.safeParse(KeySet, parseJson(body));
  if (!set.success) throw new SaltError('SALT_ISSUER_MALFORMED', 'the issuer did not answer with a JWK set');
  const keys = (await Promise.all(set.output.keys.map(readKey))).filter((key) => key !== undefined);
  // An empty key set is a failure, not a revocation of all keys: no issuer works without a key.
  if (keys.every(({ key }) => key === 'malformed')) {
    throw new SaltError('SALT_ISSUER_MALFORMED', 'the issuer answered without a usable RSA key');
  }
  return keys;
}
