/** The issuer of `make prover`, whose tokens the front end accepts. */
import { expect, onTestFinished, test } from 'vitest';
import { buildInput } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import { readProofRequest } from '../../../src/prover/request.ts';
import { verifyToken } from '../../../src/prover/token.ts';
import { startDevelopmentIssuer } from '../../../src/testing/issuer.ts';

const decodeClaims = (jwt: string) =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());

async function start() {
  const issuer = await startDevelopmentIssuer();
  onTestFinished(() => issuer.close());
  const ask = async (query = '') => readProofRequest(await (await fetch(issuer.requestUrl + query)).json());
  return { ...issuer, ask };
}

test('the issuer returns a request that fits the small circuit, with a token that its keys verify', async () => {
  const { ask, jwksUrl } = await start();
  const request = await ask();
  const key = await verifyToken(request.jwt, await (await fetch(jwksUrl)).json(), new Date());
  expect(() => buildInput(request, key, PROFILES.small)).not.toThrow();
});

test('the issuer gives each caller a different user, key, randomness and salt; a query changes the claims', async () => {
  const { ask } = await start();
  const requests = [await ask(), await ask()];
  const claims = requests.map(({ jwt }) => decodeClaims(jwt));
  for (const values of [
    claims.map(({ sub }) => sub),
    requests.map(({ extendedEphemeralPublicKey }) => extendedEphemeralPublicKey),
    requests.map(({ jwtRandomness }) => jwtRandomness),
    requests.map(({ salt }) => salt),
  ]) {
    expect(new Set(values).size).toBe(2);
  }
  const { jwt } = await ask('?sub=alice');
  expect(decodeClaims(jwt)).toMatchObject({ sub: 'alice' });
});

test('the issuer answers requests for other paths with 404', async () => {
  const { issuer } = await start();
  for (const path of ['/', '/toString', '/__proto__']) expect((await fetch(issuer + path)).status).toBe(404);
});
