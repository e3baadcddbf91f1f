/**
 * `sui-enclave dev_wallet`, or `make dev-wallet`: runs a wallet's page and all services that it calls, on
 * loopback, so that people can try zkLogin.
 */
import { isEnclaveError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { integer } from 'sui-enclave-service/env';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { builtProver } from '../../prover/artifacts.ts';
import { LAST_PORT, portsFrom } from './ports.ts';
import { developmentSeed, seedFolder } from './seed.ts';
import { CLIENTS } from './servers.ts';
import { startWalletServices, type WalletServices } from './services.ts';

export const main = command({
  name: 'dev_wallet',
  purpose:
    "Serves a wallet's page and all services that it calls, to try zkLogin by hand, until SIGTERM or Ctrl-C.",
  arguments: {},
  options: {},
  notes: `environment:
  PORT            the page's port; salt service, prover, issuer and node have the next four. 0: any. Default: 4170
  CACHE           the folder of what make prover-dev built, for real proofs
  XDG_CACHE_HOME  where the salt service's seed stays, in sui-enclave/dev-wallet. Default: ~/.cache

exit codes: 0 ended by a signal; 1 it can't start, or a part of it ended; 2 invalid command line`,
  async run(_, { env, io }) {
    const prover = builtProver('small');
    const ports = portsFrom(integer(env, 'PORT', { from: 0, to: LAST_PORT, default: 4170 }));
    const folder = seedFolder(env);
    const seed = developmentSeed(folder);
    const services = await startWalletServices({
      log: createLog('warn'),
      ports,
      seed,
      ...(prover && { prover }),
    });
    io.log(describe(services, { folder, isProving: prover !== undefined }));
    endOnSignal(services.close);
    await services.died;
    return { json: {} };
  },
  report: (error, failure) =>
    isEnclaveError(error) && failure
      ? { ...failure, text: `sui-enclave dev-wallet: ${error.message}` }
      : undefined,
});

function describe(
  { origin, issuer, saltUrl, proverUrl, node }: WalletServices,
  { folder, isProving }: { folder: string; isProving: boolean },
): string {
  const clientIds = Object.values(CLIENTS).map(({ clientId }) => clientId);
  const proving = isProving
    ? {
        real: `
            ${proverUrl}  the proving service, small size: it proves this login, under a development key`,
        fake: '',
        checks: 'checks zkLogin signatures with their proofs',
      }
    : {
        real: '',
        fake: `
            ${proverUrl}  the prover: its proofs are not of this login, and no validator accepts them.
            For real proofs: make prover-dev SIZE=small (takes minutes, once), then make dev-wallet again`,
        checks: 'checks zkLogin signatures except for the proof',
      };
  return `
${origin}  the wallet's page: log in with any name and password, send, log out

Real:       ${saltUrl}  the salt service; its seed stays in ${folder}${proving.real}
Fakes:      ${issuer}  the OpenID provider (oidc-provider)${proving.fake}
            ${node.url}  the Sui node: ${proving.checks}, gives SUI to everyone who asks (POST /v2/gas)

Client ids: ${clientIds.join(', ')}
A user keeps the address from run to run, as long as seed and issuer stay the same. A page of your own, on any port of 127.0.0.1 or
localhost, may use these services too: the provider accepts any redirect URI there. PORT=<port> moves all five ports.

Ctrl-C ends it.`;
}

if (import.meta.main) await runAsProcess(main);
