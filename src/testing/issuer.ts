/**
 * Starts an issuer on loopback that issues a token to anyone, so that a proof can be tried without a login.
 */
import { randomUUID } from 'node:crypto';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { generateNonce, generateRandomness, getExtendedEphemeralPublicKey } from '@mysten/sui/zklogin';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { ProofRequest } from 'sui-enclave/zklogin/services';
import { listenOnLoopback } from './fakes.ts';

/** An issuer on this machine, over http. */
export interface LocalIssuer {
  readonly issuer: string;
  /** URL of the issuer's JWKS (JSON Web Key Set). */
  readonly jwksUrl: string;
}

export interface DevelopmentIssuer extends LocalIssuer {
  /**
   * URL at which `GET` returns a request for a proof, for a new user and a new key that is then discarded. A
   * query adds claims to the token, or replaces them.
   */
  readonly requestUrl: string;
  request(claims?: object): Promise<ProofRequest>;
  close(): Promise<void>;
}

const KID = 'development';
const MAX_EPOCH = 10;
const LIFETIME_S = 3600;

/** Starts the issuer on a free port. */
export async function startDevelopmentIssuer(): Promise<DevelopmentIssuer> {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: KID, use: 'sig', alg: 'RS256' }];
  const request = (claims: object = {}) => createRequest(origin, claims, privateKey);
  const { origin, close } = await listenOnLoopback(async ({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://issuer.invalid');
    const answers: Record<string, () => object> = {
      '/jwks': () => ({ keys }),
      '/request': () => request(Object.fromEntries(searchParams)),
    };
    const answer = await answers[pathname]?.();
    response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { error: 'only /jwks and /request' }));
  });
  return { issuer: origin, jwksUrl: `${origin}/jwks`, requestUrl: `${origin}/request`, request, close };
}

/** Makes a request as a wallet does. Its ephemeral key is discarded. */
async function createRequest(issuer: string, claims: object, signingKey: CryptoKey): Promise<ProofRequest> {
  const ephemeral = new Ed25519Keypair().getPublicKey();
  const jwtRandomness = generateRandomness();
  const iat = Math.floor(Date.now() / 1000);
  const defaults = { iss: issuer, aud: 'development', sub: randomUUID(), iat, exp: iat + LIFETIME_S };
  const nonce = generateNonce(ephemeral, MAX_EPOCH, jwtRandomness);
  const jwt = await new SignJWT({ ...defaults, nonce, ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: KID, typ: 'JWT' })
    .sign(signingKey);
  return {
    jwt,
    extendedEphemeralPublicKey: getExtendedEphemeralPublicKey(ephemeral),
    maxEpoch: MAX_EPOCH,
    jwtRandomness,
    salt: generateRandomness(),
    keyClaimName: 'sub',
  };
}
