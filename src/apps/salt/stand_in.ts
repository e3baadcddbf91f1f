/** Fakes the host of Google's keys, and signs one token. The seed is public, so its salts are not secret. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { fingerprint } from 'sui-enclave-service/salt_seeds';
import { type Fakes, listenOnLoopback } from 'sui-enclave-testing/fakes';

const KEYS_HOST = 'www.googleapis.com';
const ISSUER = 'https://accounts.google.com';
const CLIENT_ID = 'development';
const SEED = Buffer.from('seed of development, not secret!');

export async function start(): Promise<Fakes> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const header = { alg: 'RS256', kid: 'development', typ: 'JWT' };
  const keys = [{ ...(await exportJWK(publicKey)), kid: header.kid, alg: header.alg, use: 'sig' }];
  const { origin, close } = await listenOnLoopback((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
  }, KEYS_HOST);
  const token = await new SignJWT({ iss: ISSUER, aud: CLIENT_ID, sub: '110463452167303598383' })
    .setProtectedHeader(header)
    .setIssuedAt()
    .setExpirationTime('1 day')
    .sign(privateKey);
  return {
    origins: { [KEYS_HOST]: origin },
    secrets: { SALT_SEED: SEED.toString('hex') },
    settings: {
      CORS_ORIGINS: 'none',
      SALT_CLIENTS: JSON.stringify([{ issuer: ISSUER, client_id: CLIENT_ID, seed: 1 }]),
      SALT_SEED_FINGERPRINTS: fingerprint(SEED),
    },
    example: { path: '/get_salt', body: { token } },
    notes: [`Client id: ${CLIENT_ID}, of ${ISSUER}. The token below is valid for a day.`],
    close,
  };
}
