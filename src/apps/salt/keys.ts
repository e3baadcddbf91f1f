/** The keys of an issuer: fetched when they are needed, kept, and renewed at a bounded rate. */
import { createLocalJWKSet, type JWK } from 'jose';
import * as v from 'valibot';
import type { EnclaveError } from '../../errors.ts';
import { fetchText, NoAnswer } from '../../fetch.ts';
import { IssuerMalformed, IssuerRefused, IssuerSlow, IssuerUnreachable, TokenKeyUnknown } from './errors.ts';

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

/** A modulus of 2048 bits in base64url (RFC 7518, section 3.3: no RS256 key is smaller). */
const MIN_MODULUS_LENGTH = 342;

const KeySet = v.object({ keys: v.array(v.looseObject({ kty: v.string() })) });
const RsaKey = v.looseObject({
  kty: v.literal('RSA'),
  kid: v.string(),
  n: v.pipe(v.string(), v.minLength(MIN_MODULUS_LENGTH)),
  e: v.string(),
});

/** A key as a set has it; `issuer` is no member that RFC 7517 knows. */
type Key = JWK & { readonly issuer?: unknown };

/** What a set has under one key id. */
export interface KeysOfId {
  readonly getKey: ReturnType<typeof createLocalJWKSet>;
  /** Whose tokens alone they sign, where the set says it, as Microsoft's does: `{tenantid}` stands for any tenant. */
  readonly issuers: readonly string[];
}

interface Kept {
  readonly byId: ReadonlyMap<string, KeysOfId>;
  readonly at: number;
}

export class IssuerKeys {
  readonly #url: URL;
  readonly #now: () => number;
  #kept: Kept | undefined;
  #failure: EnclaveError | undefined;
  #askAgainAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  /** @param now a clock in milliseconds that only goes forward */
  constructor(url: URL, now: () => number = () => performance.now()) {
    this.#url = url;
    this.#now = now;
  }

  /**
   * The keys of this id. The issuer is asked only when none is known or the known ones are
   * old, and all callers share one question.
   *
   * @throws TokenKeyUnknown, or why the issuer gave no keys
   */
  async with(kid: string): Promise<KeysOfId> {
    const known = this.#known(kid, FRESH_MS);
    if (known) return known;
    const asking = this.#ask();
    // While the issuer fails, known keys don't wait for its next failure.
    if (!this.#failure || !this.#known(kid, MAX_AGE_MS)) await asking;
    const now = this.#known(kid, MAX_AGE_MS);
    if (now) return now;
    if (this.#failure) throw this.#failure;
    throw new TokenKeyUnknown('the issuer has no key of the id that the token names');
  }

  #known(kid: string, maxAgeMs: number): KeysOfId | undefined {
    const kept = this.#kept;
    return kept && this.#now() - kept.at < maxAgeMs ? kept.byId.get(kid) : undefined;
  }

  async #ask(): Promise<void> {
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
      const byId = Map.groupBy(parseKeys(await fetchKeys(this.#url)), ({ kid }) => kid as string);
      this.#kept = {
        byId: new Map([...byId].map(([kid, keys]) => [kid, keysOfId(keys)])),
        at: this.#now(),
      };
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error as EnclaveError;
    }
    this.#askAgainAt = this.#now() + (this.#failure ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS);
  }
}

function keysOfId(keys: Key[]): KeysOfId {
  const issuers = keys.map(({ issuer }) => issuer).filter((issuer) => typeof issuer === 'string');
  return { getKey: createLocalJWKSet({ keys }), issuers };
}

async function fetchKeys(url: URL): Promise<string> {
  const bounds = { timeoutMs: TIMEOUT_MS, maxSize: MAX_SIZE };
  const headers = { accept: 'application/json' };
  const { status, text } = await fetchText(url, { headers }, bounds).catch((error: unknown) => {
    if (!(error instanceof NoAnswer)) throw error;
    if (error.reason === 'timeout') {
      throw new IssuerSlow(`the issuer did not give its keys within ${TIMEOUT_MS} ms`);
    }
    if (error.reason === 'too large') {
      throw new IssuerMalformed(`the issuer's keys are larger than ${MAX_SIZE} bytes`);
    }
    throw new IssuerUnreachable("the issuer's keys could not be fetched");
  });
  if (status !== 200)
    throw new IssuerRefused(`the issuer answered with status ${status} when asked for its keys`);
  return text;
}

/** What can sign RS256, of a JWK Set (RFC 7517, section 5); other keys of the set are passed over. */
function parseKeys(text: string): Key[] {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new IssuerMalformed('the issuer answered with no JSON when asked for its keys');
  }
  const set = v.safeParse(KeySet, data);
  const keys = set.success ? set.output.keys.filter((key) => v.is(RsaKey, key)) : [];
  // No keys at all is no withdrawal of all: no issuer of ours works without one.
  if (keys.length === 0) throw new IssuerMalformed('the issuer answered with no usable RSA key');
  return keys as Key[];
}
