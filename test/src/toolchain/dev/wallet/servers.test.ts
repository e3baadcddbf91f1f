/**
 * The provider of make dev-wallet: the redirect URIs that it accepts, and the pages that may exchange a code.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  CLIENTS,
  createFakeProver,
  listen,
  startProvider,
} from '../../../../../src/toolchain/dev/wallet/servers.ts';

let provider: Awaited<ReturnType<typeof startProvider>>;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => {
  provider.server.closeAllConnections();
  provider.server.close();
});

async function requestStatus(redirectUri: string): Promise<number> {
  const url = new URL(`${provider.issuer}/auth`);
  const [client_id, response_type] = [CLIENTS.implicit.clientId, 'id_token'];
  const parameters = { client_id, response_type, scope: 'openid', nonce: 'n', redirect_uri: redirectUri };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return (await fetch(url, { redirect: 'manual' })).status;
}

describe('a redirect URI', () => {
  test.each(['http://127.0.0.1:5173/', 'http://localhost:3000/any/path?and=query', 'http://localhost/back'])(
    '%s is accepted',
    async (uri) => {
      expect(await requestStatus(uri)).toBe(303);
    },
  );

  test.each([
    'https://wallet.example/back',
    'http://127.0.0.1.wallet.example/back',
    'http://user@wallet.example/back',
    'http://localhost@wallet.example/back',
    'http://wallet.localhost/back',
    'https://localhost/back',
    'javascript:alert(1)',
    'http://localhost:3000/#fragment',
    'not a URL',
  ])('%s is refused', async (uri) => {
    expect(await requestStatus(uri)).toBe(400);
  });
});

test('the fake prover refuses an invalid request, and continues', async () => {
  const server = createFakeProver(() => false);
  const url = await listen(server);
  onTestFinished(() => server.closeAllConnections());
  for (const body of ['', '{', 'null']) {
    expect((await fetch(url, { method: 'POST', body })).status).toBe(400);
  }
  const jwt = `e30.${Buffer.from('{"iss":"x","aud":"y"}').toString('base64url')}.`;
  expect((await fetch(url, { method: 'POST', body: JSON.stringify({ jwt }) })).status).toBe(200);
});
