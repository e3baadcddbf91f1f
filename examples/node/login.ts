/**
 * Logs in at an OpenID provider, and sends a transaction from the zkLogin address: `node login.ts`. Stores
 * nothing.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { Transaction } from '@mysten/sui/transactions';
import {
  beginLogin,
  completeLogin,
  createEpochSource,
  createMemoryStore,
  discoverProvider,
  getProof,
  getSalt,
} from 'sui-enclave/zklogin';
import { readLogin, readNode } from './settings.ts';

const [sui, { issuer, clientId, saltUrl, proverUrl, redirectUri }] = [readNode(), readLogin()];
const currentEpoch = createEpochSource(sui);
const legacyAddress = false;
// The ephemeral key is lost when this process ends.
const storage = createMemoryStore();

// The browser posts the provider's answer to this server, so that no URL contains the token.
const extraParameters = { response_mode: 'form_post' };
const provider = await discoverProvider(issuer, {
  name: 'OpenID',
  responseType: 'code id_token',
  extraParameters,
});
const server = createServer().listen(Number(redirectUri.port), '127.0.0.1');
await once(server, 'listening');
const begin = {
  provider,
  clientId,
  redirectUri: redirectUri.href,
  currentEpoch: await currentEpoch(),
  storage,
};
console.log(`Log in:   ${beginLogin(begin)}`);
const answer = await new Promise<string>((resolve) => {
  server.on('request', async (request, response) => {
    if (request.method !== 'POST' || request.url !== redirectUri.pathname)
      return response.writeHead(404).end();
    resolve(await text(request));
    return response.end('You are logged in: go back to the terminal.');
  });
});
server.close();

const login = await completeLogin(answer, { storage });
const salt = await getSalt(saltUrl, login.token);
console.log(`Address:  ${login.address(salt, { legacyAddress })}`);
const proof = await getProof(proverUrl, login.proofRequest(salt));
const session = login.open({ salt, proof, legacyAddress, currentEpoch });

const host = process.env['SUI_FAUCET_URL'];
if (host) await requestSuiFromFaucetV2({ host, recipient: session.address });
const tx = new Transaction();
tx.transferObjects([tx.splitCoins(tx.gas, [1])], session.address);
const { digest } = await session.execute(tx, sui);
console.log(`Executed: ${digest}`);
session.end();
