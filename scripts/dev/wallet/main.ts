/** `make dev-wallet`: a wallet's page and all that it talks to on loopback, to try zkLogin by hand. */
import { createLog } from '../../../src/server/log.ts';
import { endOnSignal } from '../../../src/server/signals.ts';
import { startWalletServices } from './services.ts';

const { origin, issuer, saltUrl, proverUrl, node, close } = await startWalletServices(createLog('warn'));
process.stdout.write(`
${origin}  the wallet's page: log in by any name and password, send, log out

As it is:   ${saltUrl}  the salt service, with a seed of this run: the next run's addresses are others
Stand-ins:  ${issuer}  the OpenID provider (oidc-provider)
            ${proverUrl}  the prover: its proofs are of another statement, and no validator takes them
            ${node.url}  the Sui node: checks a zkLogin signature but for its proof, gives SUI to whoever asks

Ctrl-C ends it.
`);
endOnSignal(close);
