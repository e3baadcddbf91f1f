/** Reads one key of an issuer's JWK set (RFC 7517, section 5) for RS256. */
import { type CryptoKey, importJWK } from 'jose';
import * as v from 'valibot';

/** RFC 7518, section 3.3, requires 2048 bits. Above 8192, verification would let attackers waste CPU time. */
const MODULUS_BITS = { from: 2048, to: 8192 };
/** The providers' exponent is 65537. A large one makes verification as expensive as signing. */
const MAX_EXPONENT_BYTES = 8;

/** The properties that identify a key. `issuer` is not defined by RFC 7517; Microsoft uses it. */
const Rsa = v.looseObject({ kty: v.literal('RSA'), kid: v.string(), issuer: v.optional(v.unknown()) });

/** A nonzero integer in base64url without padding (RFC 7518, section 2). */
const Number64 = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]+$/), v.transform(decode), v.minLength(1));

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
  // The private exponent: whoever reads it can sign for the issuer.
  d: v.optional(v.never()),
});

export interface IssuerKey {
  readonly kid: string;
  /** The only issuer whose tokens the key signs, if the set specifies it. */
  readonly issuer: unknown;
  /** `none`: well-formed, but not for RS256 signatures. */
  readonly key: CryptoKey | 'none' | 'malformed';
}

/** @returns undefined for a key that no token can use: another key type, no key id, or too small */
export async function readKey(data: unknown): Promise<IssuerKey | undefined> {
  const rsa = v.safeParse(Rsa, data);
  if (!rsa.success) return undefined;
  const { kid, issuer } = rsa.output;
  const parsed = v.safeParse(PublicKey, data);
  if (!parsed.success) return { kid, issuer, key: 'malformed' };
  if (bitsOf(parsed.output.n) < MODULUS_BITS.from) return undefined;
  return { kid, issuer, key: await publicKeyOf(parsed.output) };
}

async function publicKeyOf(given: v.InferOutput<typeof PublicKey>): Promise<IssuerKey['key']> {
  const { use = 'sig', alg = 'RS256', key_ops = ['verify'], n, e } = given;
  const isInRange = bitsOf(n) <= MODULUS_BITS.to && e.length <= MAX_EXPONENT_BYTES && bitsOf(e) > 1;
  if (!isInRange || !isOdd(n) || !isOdd(e)) return 'malformed';
  if (use !== 'sig' || alg !== 'RS256' || !key_ops.includes('verify')) return 'none';
  const jwk = { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') };
  return await importJWK(jwk, 'RS256').then(
    (key) => key as CryptoKey,
    () => 'malformed',
  );
}

/** Removes the leading zeros that some issuers write. */
function decode(text: string): Buffer {
  // Not a valid base64url length; Buffer would drop the last character.
  if (text.length % 4 === 1) return Buffer.alloc(0);
  const bytes = Buffer.from(text, 'base64url');
  const first = bytes.findIndex((byte) => byte !== 0);
  return first === -1 ? Buffer.alloc(0) : bytes.subarray(first);
}

function isOdd(bytes: Buffer): boolean {
  return ((bytes.at(-1) ?? 0) & 1) === 1;
}

function bitsOf(bytes: Buffer): number {
  return 8 * bytes.length - Math.clz32(bytes[0] ?? 0) + 24;
}
