/**
 * Measures the cost that this project adds to cryptographic operations: signatures, documents, tokens and
 * sealed calls.
 */
import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { SignJWT } from 'jose';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { EphemeralKey } from '../../../src/server/keys/key.ts';
import { Nsm } from '../../../src/server/nsm/nsm.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import type { Load, LoadRequest } from './load.ts';
import {
  type Cost,
  compareRates,
  measureCost,
  type Server,
  startServer,
  stop,
  takeTurns,
} from './servers.ts';
import type { Comparison } from './table.ts';

const TURNS = 3;
const SERVER_TURN = { connections: 16, seconds: 1 };
/** Number of users. A single user would reach the limit on a user's requests. */
const USERS = 64;

/** Measures the cost of a call. Repeats the call for about 0.3 s in this process. */
async function measureCallCost(call: () => unknown): Promise<Cost> {
  // A turn of the event loop completes earlier work, which must not count.
  await setImmediate();
  const [cpu, start] = [process.cpuUsage(), performance.now()];
  let calls = 0;
  for (; performance.now() - start < 300; calls += 10) for (let i = 0; i < 10; i++) await call();
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: calls / seconds, p99: Number.NaN, cpu: (user + system) / calls };
}

export async function benchSigning(): Promise<Comparison> {
  const message = {
    intent: 0,
    timestamp_ms: 1744038900000n,
    payload: { location: 'San Francisco', temperature: 13n },
  };
  const bytes = WeatherResponse.message.serialize(message).toBytes();
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = EphemeralKey.create();
  const bare = () => measureCallCost(() => sign(null, bytes, privateKey));
  const ours = () => measureCallCost(() => key.sign(WeatherResponse.message.serialize(message).toBytes()));
  const names = { name: 'signing + BCS', floorName: 'OpenSSL ed25519' };
  return compareRates(names, await takeTurns(5, bare, ours), 0.7);
}

/** Measures requests for documents with a nonce, each of which the NSM must sign. */
export async function benchAttestation(load: Load, weather: Server): Promise<Comparison> {
  const nsm = new Nsm(new EmulatedNsm());
  const fields = { publicKey: randomBytes(32), userData: randomBytes(64), nonce: randomBytes(16) };
  const request: LoadRequest = { path: `/get_attestation?nonce=${fields.nonce.toString('hex')}` };
  const bare = () => measureCallCost(() => nsm.attestation(fields));
  const ours = () => measureCost(load, weather, request, SERVER_TURN);
  const names = { name: '/get_attestation with a nonce', floorName: 'emulated NSM' };
  return compareRates(names, await takeTurns(TURNS, bare, ours));
}

export async function benchSalt(load: Load): Promise<Comparison> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'RS256', use: 'sig' };
  const tokens = await Promise.all(
    Array.from({ length: USERS }, (_, user) =>
      new SignJWT({
        iss: 'https://accounts.google.com',
        aud: 'bench',
        sub: `11046345216730359${8000 + user}`,
      })
        .setProtectedHeader({ alg: 'RS256', kid: 'bench', typ: 'JWT' })
        .setIssuedAt()
        .setExpirationTime('1 hour')
        .sign(privateKey),
    ),
  );
  const request: LoadRequest = {
    path: '/get_salt',
    bodies: tokens.map((token) => JSON.stringify({ token })),
  };
  const [signed = '', signature = ''] = (tokens[0] ?? '').split(/\.(?=[^.]*$)/);
  const [data, bytes] = [Buffer.from(signed), Buffer.from(signature, 'base64url')];
  const bare = () =>
    measureCallCost(() => {
      if (!verify('RSA-SHA256', data, publicKey, bytes)) throw new Error('the token does not verify');
    });
  const salt = await startServer('./salt.ts', { TOKEN_KEY: JSON.stringify(jwk) });
  try {
    const names = { name: '/get_salt', floorName: 'RSA verification' };
    return compareRates(
      names,
      await takeTurns(TURNS, bare, () => measureCost(load, salt, request, SERVER_TURN)),
    );
  } finally {
    stop([salt]);
  }
}
