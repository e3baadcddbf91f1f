/**
 * `make dev-sui`: runs the Sui node of the tests as a service, so that people can try admin commands, dapps
 * and contracts offline.
 */
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { DEV_EMULATED, IS_CLONE } from 'sui-enclave-cli/places';
import { integer } from 'sui-enclave-service/env';
import { endOnSignal } from 'sui-enclave-service/signals';
import { consolePort, developmentFiles, startConsole } from '../console.ts';
import type { DevSui } from './service.ts';

export const main = command({
  name: 'dev_sui',
  purpose: `Starts a model of a Sui node on loopback, until SIGTERM or Ctrl-C: --network localnet of the other commands reaches it.
It keeps nothing: each start is a new chain. A funded account's key is in out/dev-sui.key, or is SUI_PRIVATE_KEY.`,
  arguments: {},
  options: {},
  notes: `--json prints all addresses when everything has started.

environment:
  PORT         the node's port. Default: 9000, like sui start
  FAUCET_PORT  the faucet's port. Default: 9123, like sui start --with-faucet
  CONSOLE_PORT the port of the console, a page that shows the chain. Default: chosen by the system
  LAG_MS       how long reads lag behind execution, as on full nodes, at most 60000. Default: 300
  OUT          the folder of dev-root.pem and dev-sui.key. Default: out

exit codes: 0 ended by a signal; 1 it can't start; 2 invalid command line`,
  async run(_, { env, io: { log } }) {
    const port = integer(env, 'PORT', { from: 0, to: 65_535, default: 9000 });
    const faucetPort = integer(env, 'FAUCET_PORT', { from: 0, to: 65_535, default: 9123 });
    if (port === faucetPort && port !== 0) throw new ConfigError('PORT and FAUCET_PORT must differ');
    const pagePort = consolePort(env);
    const lagMs = integer(env, 'LAG_MS', { from: 0, to: 60_000, default: 300 });
    const folder = resolve(env['OUT'] || 'out');
    // Loading the Move compiler and a whole node takes most of a second, so it happens only now.
    const { startDevSui } = await import('./service.ts');
    const service = await startDevSui({
      port,
      faucetPort,
      folder: pathToFileURL(`${folder}/`),
      env,
      lagMs,
    });
    const page = startConsole({
      port: pagePort,
      log,
      link: `#/chain?node=${encodeURIComponent(service.node.url)}`,
      development: () => ({
        command: 'sui-enclave dev-sui',
        started: [],
        files: developmentFiles(pathToFileURL(`${folder}/`), ['dev-root.pem']),
      }),
    });
    endOnSignal(() => {
      page.close();
      return service.close();
    });
    const { node, faucetUrl, account, checksProofs } = service;
    return {
      json: { url: node.url, faucetUrl, ...account, root: join(folder, 'dev-root.pem'), checksProofs },
      text: describe(service, relative(process.cwd(), folder)),
    };
  },
  report: (_error, failure) =>
    failure && {
      ...failure,
      text: `sui-enclave dev-sui: ${failure.json.error}`,
    },
});

function describe({ node, faucetUrl, account, checksProofs, note }: DevSui, folder: string): string {
  const isDefault = node.url === 'http://127.0.0.1:9000';
  const where = isDefault ? '--network localnet' : `--network localnet --rpc-url ${node.url}`;
  const key =
    account.keyFile === undefined
      ? 'the key in SUI_PRIVATE_KEY'
      : `export SUI_PRIVATE_KEY=$(cat ${folder}/dev-sui.key)`;
  const proofs = checksProofs
    ? 'with their Groth16 proofs, against the development key that was built'
    : `except for their Groth16 proofs${IS_CLONE ? ': to have these checked too, run make prover once before' : ''}`;
  const page = 'src/library/sui/README.md, "On one machine", has the commands from publish to rotate.\n';
  return `
${node.url}  a MODEL of a Sui node, not a validator: gRPC, for ${where}
${faucetUrl}  the faucet, like that of a local network

Account:  ${account.address}, with 1000 SUI: ${key}
Checked:  the signatures of sender and sponsor, owners and versions of objects; zkLogin signatures ${proofs}
Run:      the bytecode of any package that is published on it, on a stub of Sui's framework
Model:    attestation, who owns what, versions, gas; bytecode is not verified, and there are no checkpoints
Root:     attestation documents under ${folder}/dev-root.pem, which ${DEV_EMULATED} signs, and no others

${IS_CLONE ? page : ''}It keeps nothing: each start is a new chain. Ctrl-C ends it.${note === undefined ? '' : `\n\n${note}`}
`;
}

if (import.meta.main) await runAsProcess(main);
