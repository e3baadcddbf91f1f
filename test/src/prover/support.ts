/** Makes requests for proofs: for recorded real tokens, and for tokens signed by the tests' RSA-2048 key. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import type { ProofRequest } from '../../../src/library/zklogin/services.ts';

export const vector = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8'));

interface RecordedToken {
  readonly jwt: string;
  readonly kid: string;
  readonly n: string;
  readonly provider: string;
}

const { common, jwts } = vector('zklogin-jwts') as {
  common: { ephemeralSecretHex: string; jwtRandomness: string; maxEpoch: number; nonce: string };
  jwts: RecordedToken[];
};

export const NONCE = common.nonce;
export const RANDOMNESS = common.jwtRandomness;
export const MAX_EPOCH = common.maxEpoch;
export const SALT = '248191903847969014646285995941615069143';

const ephemeral = Ed25519Keypair.fromSecretKey(Buffer.from(common.ephemeralSecretHex, 'hex'));
export const EPHEMERAL_KEY = BigInt(
  `0x${Buffer.from(ephemeral.getPublicKey().toSuiBytes()).toString('hex')}`,
);

export function requestFor(jwt: string, changes: Partial<ProofRequest> = {}): ProofRequest {
  return {
    jwt,
    extendedEphemeralPublicKey: EPHEMERAL_KEY,
    maxEpoch: common.maxEpoch,
    jwtRandomness: common.jwtRandomness,
    salt: SALT,
    keyClaimName: 'sub',
    ...changes,
  };
}

/** Real tokens of four providers, all for the same ephemeral key. */
export const REAL_TOKENS = jwts.map(({ provider, jwt, kid, n }) => ({
  provider,
  request: requestFor(jwt),
  key: { kty: 'RSA', kid, n, e: 'AQAB' },
}));

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const OUR_PRIVATE_KEY = privateKey;
export const OUR_KEY = { ...publicKey.export({ format: 'jwk' }), kid: 'ours' };
export const OUR_MODULUS = Buffer.from(OUR_KEY.n as string, 'base64url');

const base64url = (text: string) => Buffer.from(text).toString('base64url');

/** Signs a token. @param payload the exact JSON of its payload */
export function signToken(
  payload: string,
  header: object = { alg: 'RS256', kid: 'ours', typ: 'JWT' },
): string {
  const unsigned = `${base64url(JSON.stringify(header))}.${base64url(payload)}`;
  return `${unsigned}.${sign('sha256', Buffer.from(unsigned), privateKey).toString('base64url')}`;
}

export const CLAIMS = {
  iss: 'https://id.example',
  sub: '106294049240999307923',
  aud: 'client-id',
  nonce: NONCE,
  iat: 1_715_786_862,
  exp: 1_715_873_562,
};

/** Makes a request for a token with CLAIMS, to which these claims are added or which they replace. */
export function requestWith(claims: object, changes: Partial<ProofRequest> = {}): ProofRequest {
  return requestFor(signToken(JSON.stringify({ ...CLAIMS, ...claims })), changes);
}
