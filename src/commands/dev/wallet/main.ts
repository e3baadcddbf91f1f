/** `sui-enclave dev_wallet`, or `make dev-wallet`: a wallet's page and everything that it talks to, on loopback, to try zkLogin by hand. */
import { EnclaveError } from 'sui-enclave/errors';
import { integer } from 'sui-enclave-service/env';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { command, runAsProcess } from '../../command.ts';
import { builtProver } from '../../prover/artifacts.ts';
import { CLIENTS } from './servers.ts';
import { startWalletServices, type WalletServices } from './services.ts';

export const main = command({
  name: 'dev_wallet',
  purpose:
    "Serves a wallet's page, to try zkLogin by hand, with everything that it talks to, until SIGTERM or Ctrl-C.",
  arguments: {},
  options: {},
  notes: `environment:
  PORT   the page's port (default: any)
  CACHE  the folder of what make prover-dev built, for real proofs

exit codes: 0 ended by a signal; 1 it can't start, or a part of it ended; 2 invalid command line`,
  async run(_, { env, io }) {
    const prover = builtProver('small');
    const port = integer(env, 'PORT', { from: 0, to: 65_535, default: 0 });
    const services = await startWalletServices({ log: createLog('warn'), port, ...(prover && { prover }) });
    io.log(describe(services, prover !== undefined));
    endOnSignal(services.close);
    await services.died;
    return { json: {} };
  },
  report: (error, failure) =>
    error instanceof EnclaveError && failure
      ? { ...failure, text: `make dev-wallet: ${error.message}` }
      : undefined,
});

function describe({ origin, issuer, saltUrl, proverUrl, node }: WalletServices, isProving: boolean): string {
  const clientIds = Object.values(CLIENTS).map(({ clientId }) => clientId);
  const proving = isProving
    ? {
        real: `
            ${proverUrl}  the proving service, small size: its proofs are of this very login, for a development key`,
        fake: '',
        checks: 'checks zkLogin signatures with their proofs',
      }
    : {
        real: '',
        fake: `
            ${proverUrl}  the prover: its proofs are of another statement, and no validator accepts them.
            For real proofs: make prover-dev SIZE=small (minutes, once), then make dev-wallet again`,
        checks: 'checks zkLogin signatures except for the proof',
      };
  return `
${origin}  the wallet's page: log in by any name and password, send, log out

Real:       ${saltUrl}  the salt service, with a seed of this run: the next run has other addresses${proving.real}
Fakes:      ${issuer}  the OpenID provider (oidc-provider)${proving.fake}
            ${node.url}  the Sui node: ${proving.checks}, gives SUI to everyone who asks

Client ids: ${clientIds.join(', ')}. PORT=<port> sets the page's port.

Ctrl-C ends it.`;
}

if (import.meta.main) await runAsProcess(main);
