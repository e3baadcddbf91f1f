/** `make dev-wallet`: a wallet's page and everything that it talks to, on loopback, to try zkLogin by hand. */
import { EnclaveError } from '../../../src/errors.ts';
import { integer } from '../../../src/server/config.ts';
import { createLog } from '../../../src/server/log.ts';
import { endOnSignal } from '../../../src/server/signals.ts';
import { CLIENTS } from './servers.ts';
import { startWalletServices, type WalletServices } from './services.ts';

const { origin, issuer, saltUrl, proverUrl, node, close } = await startAtPort().catch((error: unknown) => {
  if (!(error instanceof EnclaveError)) throw error;
  console.error(`make dev-wallet: ${error.message}`);
  process.exit(1);
});

async function startAtPort(): Promise<WalletServices> {
  const port = integer(process.env, 'PORT', { from: 0, to: 65_535, otherwise: 0 });
  return startWalletServices(createLog('warn'), port);
}

const clientIds = Object.values(CLIENTS).map(({ clientId }) => clientId);
process.stdout.write(`
${origin}  the wallet's page: log in by any name and password, send, log out

Real:       ${saltUrl}  the salt service, with a seed of this run: the next run has other addresses
Stand-ins:  ${issuer}  the OpenID provider (oidc-provider)
            ${proverUrl}  the prover: its proofs are of another statement, and no validator accepts them
            ${node.url}  the Sui node: checks zkLogin signatures except for the proof, gives SUI to everyone who asks

Client ids: ${clientIds.join(', ')}. PORT=<port> sets the page's port.

Ctrl-C ends it.
`);
endOnSignal(close);
