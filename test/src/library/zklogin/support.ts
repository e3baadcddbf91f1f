/**
 * Tokens and logins for tests. The tokens' signatures are invalid: wallets do not check them, but the salt
 * service and the proof do.
 */
import { readFileSync } from 'node:fs';
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import {
  type BeginOptions,
  beginLogin,
  createMemoryStore,
  PROVIDERS,
  type SessionStore,
} from '../../../../src/library/zklogin/index.ts';

export const vector = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../vectors/zklogin-${name}.json`, import.meta.url), 'utf8'));

export const CLIENT_ID = '25769832374-famecqrhe2gkebt5fvqms2263046lj96.apps.googleusercontent.com';
export const REDIRECT_URI = 'https://wallet.example/back';
export const SUBJECT = '106294049240999307923';
export const NOW = 1_700_000_000_000;

export const base64url = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/**
 * Makes a JWT. The payload has the claims in this order. A string is encoded as it is, other values as JSON.
 */
export function createJwt(
  payload: unknown,
  header: unknown = { alg: 'RS256', kid: 'k', typ: 'JWT' },
): string {
  return `${base64url(header)}.${base64url(payload)}.c2lnbmF0dXJl`;
}

/**
 * Returns the `issBase64Details` of a proof: the base64 characters of the payload that encode a claim.
 *
 * @param claim text of the claim in the payload, from the name's opening quote through the `,` or `}` that
 *   ends the claim
 */
export function issuerDetails(jwt: string, claim: string): { value: string; indexMod4: number } {
  const [, payload = ''] = jwt.split('.');
  const start = Buffer.from(payload, 'base64url').indexOf(claim);
  const index = Math.floor((8 * start) / 6);
  const end = Math.floor((8 * (start + Buffer.byteLength(claim)) - 1) / 6);
  return { value: payload.slice(index, end + 1), indexMod4: index % 4 };
}

/**
 * Returns the issuer that validators read from `issBase64Details` (fastcrypto-zkp). They drop the spare bits
 * at both ends, and parse the bytes without the last one as JSON.
 */
export function validatorsIssuer({ value, indexMod4 }: { value: string; indexMod4: number }): unknown {
  const bits = [...Buffer.from(value)].map((character) => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return alphabet.indexOf(String.fromCharCode(character)).toString(2).padStart(6, '0');
  });
  const spare = 2 * (3 - ((indexMod4 + value.length - 1) % 4));
  const bytes =
    bits
      .join('')
      .slice(2 * indexMod4, 6 * value.length - spare)
      .match(/.{8}/g) ?? [];
  const claim = Buffer.from(bytes.map((bits) => Number.parseInt(bits, 2))).toString();
  return JSON.parse(`{${claim.slice(0, -1)}}`).iss;
}

export interface Begun {
  readonly storage: SessionStore;
  readonly url: URL;
  readonly state: string;
  readonly nonce: string;
  /** Claims of a valid token. */
  readonly claims: Record<string, unknown>;
  /** Returns the URL to which the provider redirects the user. */
  back(parameters: Record<string, string>, separator?: '#' | '?'): string;
}

export function begin(options: Partial<BeginOptions> = {}): Begun {
  const storage = createMemoryStore();
  const defaults = {
    provider: PROVIDERS.google,
    clientId: CLIENT_ID,
    redirectUri: REDIRECT_URI,
    currentEpoch: 100,
    // devnet is the only network that accepts every provider.
    network: 'devnet' as const,
  };
  const url = new URL(beginLogin({ ...defaults, storage, ...options }));
  const state = url.searchParams.get('state') ?? '';
  const nonce = url.searchParams.get('nonce') ?? '';
  const iat = NOW / 1000;
  const claims = {
    iss: 'https://accounts.google.com',
    aud: CLIENT_ID,
    sub: SUBJECT,
    nonce,
    iat,
    exp: iat + 3600,
  };
  const back = (parameters: Record<string, string>, separator = '#') =>
    `${defaults.redirectUri}${separator}${new URLSearchParams({ state, ...parameters })}`;
  return { storage, url, state, nonce, claims, back };
}

/** Reads the stored login or session. */
export function readStored(storage: SessionStore, kind: 'login' | 'session' = 'login') {
  return JSON.parse(storage.get(`sui-enclave/zklogin/${kind}`) ?? 'null');
}

export function createPublicKey(secretKey: string) {
  return Ed25519Keypair.fromSecretKey(decodeSuiPrivateKey(secretKey).secretKey).getPublicKey();
}
