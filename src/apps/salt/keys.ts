/** The keys of an issuer: fetched when they are needed, kept, and renewed at a bounded rate. */
import type { CryptoKey } from 'jose';
import * as v from 'valibot';
import type { EnclaveError } from '../../errors.ts';
import { ExchangeFailed, parseJson, type Upstream } from '../../server/upstream.ts';
import { IssuerMalformed, IssuerRefused, IssuerSlow, IssuerUnreachable, TokenKeyUnknown } from './errors.ts';
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
  #failure: EnclaveError | undefined;
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
   * @throws TokenKeyUnknown, IssuerMalformed where the key can't be read, or why the issuer gave no keys
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
      throw new IssuerMalformed("the issuer's key of the id that the token names is malformed");
    }
    throw new TokenKeyUnknown(
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
      this.#failure = error as EnclaveError;
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
    throw error instanceof ExchangeFailed ? FAILURES[error.reason]() : error;
  });
  if (status >= 300 && status < 400) {
    throw new IssuerUnreachable('the issuer says that its keys are elsewhere, and no redirect is followed');
  }
  if (status !== 200)
    throw new IssuerRefused(`the issuer answered with status ${status} when asked for its keys`);
  return body;
}

const unreachable = () => new IssuerUnreachable("the issuer's keys could not be fetched");
const slow = () => new IssuerSlow(`the issuer did not give its keys within ${TIMEOUT_MS} ms`);
const FAILURES: Readonly<Record<ExchangeFailed['reason'], () => EnclaveError>> = {
  unreachable,
  broken: unreachable,
  timeout: slow,
  'slow body': slow,
  'too large': () => new IssuerMalformed(`the issuer's keys are larger than ${MAX_SIZE} bytes`),
};

/** What a token can name of a JWK Set (RFC 7517, section 5); the rest of the set is passed over. */
async function readKeys(body: Buffer): Promise<IssuerKey[]> {
  const set = v.safeParse(KeySet, parseJson(body));
  if (!set.success) throw new IssuerMalformed('the issuer answered with no set of keys');
  const keys = (await Promise.all(set.output.keys.map(readKey))).filter((key) => key !== undefined);
  // No keys at all is no withdrawal of all: no issuer of ours works without one.
  if (keys.every(({ key }) => key === 'malformed')) {
    throw new IssuerMalformed('the issuer answered with no usable RSA key');
  }
  return keys;
}
