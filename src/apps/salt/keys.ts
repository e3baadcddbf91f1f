/** The keys of an issuer: fetched when they are needed, kept, and renewed at a bounded rate. */
import type { CryptoKey } from 'jose';
import * as v from 'valibot';
import { ExchangeFailed, parseJson, type Upstream } from '../../server/upstream.ts';
import { type SaltCode, SaltError } from './errors.ts';
import { type IssuerKey, readKey } from './jwk.ts';

/** Keys are asked for anew after this; a withdrawn one is taken no longer than that, if the issuer answers. */
const FRESH_MS = 10 * 60_000;
/** Through an outage of the issuer, keys that are known serve on; but no longer than this. */
const MAX_AGE_MS = 24 * 60 * 60_000;
/** However many unknown keys tokens name, the issuer is asked at most this often; sooner again while it fails. */
const PAUSE_MS = 30_000;
const PAUSE_AFTER_FAILURE_MS = 5000;

const TIMEOUT_MS = 5000;
/** The largest of the known providers' sets has about 20 KB. */
const MAX_SIZE = 256 * 1024;

const KeySet = v.object({ keys: v.array(v.unknown()) });

/** What a set has under one key id. */
export interface KeyOfId {
  readonly key: CryptoKey;
  /** Whose tokens alone it signs, where the set says it, as Microsoft's does: `{tenantid}` stands for any tenant. */
  readonly issuers: readonly string[];
}

interface Kept {
  readonly byId: ReadonlyMap<string, KeyOfId>;
  /** Ids under which there is nothing but keys that can't be read. */
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
   * @param ask the way to the host of the keys
   * @param path of the keys there, with a query
   * @param now a clock in milliseconds that only goes forward
   */
  constructor(ask: Upstream, path: string, now: () => number = () => performance.now()) {
    this.#ask = ask;
    this.#path = path;
    this.#now = now;
  }

  /**
   * The key of this id. The issuer is asked only when none is known or the known ones are
   * old, and all callers share one question.
   *
   * @throws SALT_TOKEN_KEY_UNKNOWN, SALT_ISSUER_MALFORMED where the key can't be read, or the failure to fetch
   *   the keys
   */
  async with(kid: string): Promise<KeyOfId> {
    const known = this.#known(kid, FRESH_MS);
    if (known) return known;
    const renewed = this.#renew();
    // While the issuer fails, known keys don't wait for its next failure.
    if (!this.#failure || !this.#known(kid, MAX_AGE_MS)) await renewed;
    const now = this.#known(kid, MAX_AGE_MS);
    if (now) return now;
    if (this.#failure) throw this.#failure;
    if (this.#kept?.malformed.has(kid)) {
      throw new SaltError(
        'SALT_ISSUER_MALFORMED',
        "the issuer's key of the id that the token names is malformed",
      );
    }
    throw new SaltError(
      'SALT_TOKEN_KEY_UNKNOWN',
      'the issuer has no key for RS256 of the id that the token names, or not one alone',
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
      'the issuer says that its keys are elsewhere, and no redirect is followed',
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

/** What a token can name of a JWK Set (RFC 7517, section 5); the rest of the set is passed over. */
async function readKeys(body: Buffer): Promise<IssuerKey[]> {
  const set = v.safeParse(KeySet, parseJson(body));
  if (!set.success) throw new SaltError('SALT_ISSUER_MALFORMED', 'the issuer answered with no set of keys');
  const keys = (await Promise.all(set.output.keys.map(readKey))).filter((key) => key !== undefined);
  // No keys at all is no withdrawal of all: no issuer of ours works without one.
  if (keys.every(({ key }) => key === 'malformed')) {
    throw new SaltError('SALT_ISSUER_MALFORMED', 'the issuer answered with no usable RSA key');
  }
  return keys;
}
