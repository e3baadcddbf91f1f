/** Reads an issuer's JWK set (RFC 7517, section 5) for RS256. */
import { type CryptoKey, importJWK } from 'jose';
import * as v from 'valibot';
import { OidcError } from './errors.ts';

/** RFC 7518, section 3.3, requires 2048 bits. Above 8192, verification would let attackers waste CPU time. */
const MODULUS_BITS = { from: 2048, to: 8192 };
/** The providers' exponent is 65537. A large exponent makes verification as expensive as signing. */
const MAX_EXPONENT_BYTES = 8;

/** The properties that identify a key. `issuer` is not defined by RFC 7517; Microsoft uses it. */
const Rsa = v.looseObject({ kty: v.literal('RSA'), kid: v.string(), issuer: v.optional(v.unknown()) });

/**
 * A nonzero integer in base64url (RFC 7518, section 2). Some issuers add padding, which Sui's validators
 * ignore too.
 */
const Number64 = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9_-]+={0,2}$/),
  v.transform((text) => decode(text.replace(/=+$/, ''))),
  v.minLength(1),
);

const PublicKey = v.looseObject({
  use: v.optional(v.string()),
  alg: v.optional(v.string()),
  key_ops: v.optional(
    v.pipe(
      v.array(v.string()),
      v.check((names) => new Set(names).size === names.length),
    ),
  ),
  n: Number64,
  e: Number64,
  // This is the private exponent. Anyone who reads it can sign for the issuer.
  d: v.optional(v.never()),
});

const KeySet = v.object({ keys: v.array(v.unknown()) });

/** An RSA key in canonical form: n and e in base64url without padding or leading zeros. */
export interface RsaKey {
  readonly kty: 'RSA';
  readonly n: string;
  readonly e: string;
}

export interface IssuerKey {
  readonly kid: string;
  /** The only issuer whose tokens the key signs, if the set specifies it. */
  readonly issuer: unknown;
  /** `none`: well-formed, but not for RS256 signatures. */
  readonly key: UsableKey | 'none' | 'malformed';
}

interface UsableKey {
  readonly jwk: RsaKey;
  readonly imported: CryptoKey;
}

/** The only usable key with its key id in a set. */
export interface KeyOfId extends UsableKey {
  /**
   * The only issuers whose tokens the key signs; empty if the set doesn't specify them. `{tenantid}` matches
   * any tenant.
   */
  readonly issuers: readonly string[];
}

/** The keys of a set that a token can name; other keys are ignored. */
export interface KeysById {
  readonly byId: ReadonlyMap<string, KeyOfId>;
  /** Ids whose keys in the set are all malformed. */
  readonly malformed: ReadonlySet<string>;
}

/**
 * Reads the keys of a JWK set.
 *
 * @param data the parsed JSON
 * @throws OidcError: ISSUER_MALFORMED
 */
export async function readKeySet(data: unknown): Promise<KeysById> {
  const set = v.safeParse(KeySet, data);
  if (!set.success) throw new OidcError('ISSUER_MALFORMED', 'the issuer did not answer with a JWK set');
  const keys = (await Promise.all(set.output.keys.map(readKey))).filter((key) => key !== undefined);
  // An empty key set is a failure, not a revocation of all keys: no issuer works without a key.
  if (keys.every(({ key }) => key === 'malformed')) {
    throw new OidcError('ISSUER_MALFORMED', 'the issuer answered without a usable RSA key');
  }
  return groupById(keys);
}

function groupById(keys: readonly IssuerKey[]): KeysById {
  const byId = new Map<string, KeyOfId>();
  const malformed = new Set<string>();
  for (const [kid, keysOfId] of Map.groupBy(keys, (key) => key.kid)) {
    const wellFormed = keysOfId.filter(({ key }) => key !== 'malformed');
    const usable = wellFormed.flatMap(({ key }) => (typeof key === 'object' ? [key] : []));
    const issuers = wellFormed.map(({ issuer }) => issuer).filter((issuer) => typeof issuer === 'string');
    const [key] = usable;
    if (key && usable.length === 1) byId.set(kid, { ...key, issuers });
    if (wellFormed.length === 0) malformed.add(kid);
  }
  return { byId, malformed };
}

/**
 * Returns the key with this id.
 *
 * @throws OidcError: TOKEN_KEY_UNKNOWN; ISSUER_MALFORMED if the key is malformed
 */
export function keyOfId({ byId, malformed }: KeysById, kid: string): KeyOfId {
  const key = byId.get(kid);
  if (key) return key;
  if (malformed.has(kid)) {
    throw new OidcError(
      'ISSUER_MALFORMED',
      'the issuer published a malformed key with the id that the token names',
    );
  }
  throw new OidcError(
    'TOKEN_KEY_UNKNOWN',
    'the issuer has no key for RS256 with the id that the token names, or more than one',
  );
}

/**
 * Reads a key of a set.
 *
 * @returns undefined for a key of another type, without a key id, or that is too small
 */
export async function readKey(data: unknown): Promise<IssuerKey | undefined> {
  const rsa = v.safeParse(Rsa, data);
  if (!rsa.success) return undefined;
  const { kid, issuer } = rsa.output;
  const parsed = v.safeParse(PublicKey, data);
  if (!parsed.success) return { kid, issuer, key: 'malformed' };
  if (countBits(parsed.output.n) < MODULUS_BITS.from) return undefined;
  return { kid, issuer, key: await importPublicKey(parsed.output) };
}

async function importPublicKey(publicJwk: v.InferOutput<typeof PublicKey>): Promise<IssuerKey['key']> {
  const { use = 'sig', alg = 'RS256', key_ops = ['verify'], n, e } = publicJwk;
  const isInRange = countBits(n) <= MODULUS_BITS.to && e.length <= MAX_EXPONENT_BYTES && countBits(e) > 1;
  if (!isInRange || !isOdd(n) || !isOdd(e)) return 'malformed';
  if (use !== 'sig' || alg !== 'RS256' || !key_ops.includes('verify')) return 'none';
  const jwk = { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') } as const;
  return await importJWK(jwk, 'RS256').then(
    (key) => ({ jwk, imported: key as CryptoKey }),
    () => 'malformed',
  );
}

/** Decodes base64url, and removes the leading zeros that some issuers write. */
function decode(text: string): Buffer {
  // This length is invalid in base64url: Buffer would drop the last character.
  if (text.length % 4 === 1) return Buffer.alloc(0);
  const bytes = Buffer.from(text, 'base64url');
  const start = bytes.findIndex((byte) => byte !== 0);
  return start === -1 ? Buffer.alloc(0) : bytes.subarray(start);
}

function isOdd(bytes: Buffer): boolean {
  return ((bytes.at(-1) ?? 0) & 1) === 1;
}

function countBits(bytes: Buffer): number {
  return 8 * bytes.length - Math.clz32(bytes[0] ?? 0) + 24;
}
