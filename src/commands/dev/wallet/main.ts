/** `make dev-wallet`: a wallet's page and everything that it talks to, on loopback, to try zkLogin by hand. */
import { EnclaveError } from 'sui-enclave/errors';
import { integer } from 'sui-enclave-service/env';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { builtProver } from '../../prover/artifacts.ts';
import { CLIENTS } from './servers.ts';
import { startWalletServices, type WalletServices } from './services.ts';

const prover = builtProver('small');
const { origin, issuer, saltUrl, proverUrl, node, died, close } = await startAtPort().catch(fail);

async function startAtPort(): Promise<WalletServices> {
  const port = integer(process.env, 'PORT', { from: 0, to: 65_535, otherwise: 0 });
  return startWalletServices({ log: createLog('warn'), port, ...(prover && { prover }) });
}

function fail(error: unknown): never {
  if (!(error instanceof EnclaveError)) throw error;
  console.error(`make dev-wallet: ${error.message}`);
  process.exit(1);
}

const clientIds = Object.values(CLIENTS).map(({ clientId }) => clientId);
const proving = prover
  ? {
      real: `
            ${proverUrl}  the proving service, small size: its proofs are of this very login, for a development key`,
      fake: '',
      checks: 'checks zkLogin signatures with their proofs',
    }
  : {
      real: '',
      fake: `
            ${proverUrl}  the prover: it makes proofs of another statement, which no validator accepts.
            For real proofs: make prover-dev SIZE=small (minutes, once), then make dev-wallet again`,
      checks: 'checks zkLogin signatures except for the proof',
    };
process.stdout.write(`
${origin}  the wallet's page: log in by any name and password, send, log out

Real:       ${saltUrl}  the salt service, with a seed of this run: the next run has other addresses${proving.real}
Fakes:      ${issuer}  the OpenID provider (oidc-provider)${proving.fake}
            ${node.url}  the Sui node: ${proving.checks}, gives SUI to everyone who asks

Client ids: ${clientIds.join(', ')}. PORT=<port> sets the page's port.

Ctrl-C ends it.
`);
endOnSignal(close);
await died.catch(fail);
