/**
 * `sui-enclave play`, or `make play`: runs contract, enclaves, console and dapp together in one terminal, on
 * loopback. In a clone it runs the wallet too.
 */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { command, type Io, runAsProcess } from 'sui-enclave-cli/command';
import { PROGRAM } from 'sui-enclave-cli/places';
import { endOnSignal } from 'sui-enclave-service/signals';
import { shortPath } from '../../project.ts';
import { type Key, listenForKeys } from '../keys.ts';
import type { Addresses, Play } from './play.ts';
import { COUNTERPARTS, playPorts } from './ports.ts';

export const main = command({
  name: 'play',
  purpose: `Starts a model of a Sui node with the contract of this repository, two emulated enclaves that are registered there,
the console, and the dapp and the wallet if there are any, on loopback, until SIGTERM or Ctrl-C. A changed file
restarts the parts that use it; changed types and contracts are published and registered again.`,
  arguments: {},
  options: {},
  notes: `--json prints all addresses and ids when everything has started.

environment:
  PORT  the first of 14 ports in a row; the Sui node has the fifth. Default: 4170, but with the node on 9000 and the
        faucet on 9123, where --network localnet of the other commands finds them
  APP   in a clone: the application, a folder of src/apps. Default: weather

exit codes: 0 ended by a signal; 1 it can't start, or a part of it has ended; 2 invalid command line`,
  async run(_, { env, io }) {
    const ports = playPorts(env);
    io.log('Starting a model of a Sui node, two emulated enclaves, and pages ...');
    // Loading the Move compiler and a whole node takes a second, so it happens only now.
    const { Play } = await import('./play.ts');
    const onEnd = (reason: string) => {
      io.error(`sui-enclave play: ${reason}`);
      void play.close().finally(() => process.exit(1));
    };
    const play = new Play({ env, ports, log: io.log, onEnd });
    endOnSignal(() => play.close());
    const addresses = await play.start().catch(async (error: unknown) => {
      await play.close();
      throw error;
    });
    const link = startLink(addresses);
    const keys = new Map<string, Key>([
      ['o', { purpose: `open ${link}`, run: () => openLink(link, io) }],
      ...play.keys,
    ]);
    const areKeysRead = listenForKeys(process.stdin, keys, (error) => io.error(String(error)));
    return { json: addresses, text: formatBanner(addresses, play, areKeysRead ? keys : new Map()) };
  },
  report: (_error, failure) => failure && { ...failure, text: `sui-enclave play: ${failure.json.error}` },
});

/** Returns the URL of the page that a user opens first. */
function startLink(addresses: Addresses): string {
  return addresses.dapp === undefined ? consoleLink(addresses) : `${addresses.dapp}/`;
}

function consoleLink({ console, enclaves: [url = ''] }: Addresses): string {
  return `${console}/#/enclave?url=${encodeURIComponent(url)}`;
}

function openLink(link: string, { error }: Io): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const browser = spawn(program, [link], { stdio: 'ignore', detached: true });
  browser.on('error', () => error(`No browser was found: open ${link}`));
  browser.unref();
}

function formatBanner(addresses: Addresses, play: Play, keys: ReadonlyMap<string, Key>): string {
  const { root } = play.project;
  const path = (file: string) => shortPath(process.cwd(), resolve(file));
  const { node, faucet, enclaves, console, counterparts, dapp, wallet, issuer, salt, prover } = addresses;
  const rows = [
    ['Wallet', wallet && `${wallet}/`],
    ['Console', consoleLink(addresses)],
    ['Ledger', `${console}/#/chain?node=${encodeURIComponent(node)}`],
    ['Enclaves', enclaves.join(', ')],
    ['Sui node', node],
    ['Faucet', faucet],
    ['OpenID provider', issuer],
    ['Salt service', salt],
    ['Prover', prover],
    ['Package', addresses.package],
    ['Config', addresses.config],
    ['Files', `${path(play.deployments.path)}, ${path(play.out)}`],
    ['Broken servers', COUNTERPARTS.map((name) => `${new URL(counterparts[name]).port} ${name}`).join(', ')],
  ].filter(([, value]) => value !== undefined);
  const width = Math.max(...rows.map(([name = '']) => name.length));
  const lines = rows.map(([name = '', value]) => `  ${name.padEnd(width)}  ${value}`);
  const login = dapp !== undefined && wallet !== undefined ? ', and log in with any name and password' : '';
  const option = node === 'http://127.0.0.1:9000' ? '' : ` --rpc-url ${node}`;
  const keyLines = [...keys].map(([character, { purpose }]) => `  ${character}  ${purpose}`);
  return `
Start here:  ${startLink(addresses)}${login}

${lines.join('\n')}

In another terminal${root === process.cwd() ? '' : `, in ${path(root)}`}:
  ${PROGRAM} status --network localnet --app ${play.contractName} --root ${path(`${play.out}/dev-root.pem`)}${option}

${keyLines.length > 0 ? `Keys:\n${keyLines.join('\n')}\n\n` : ''}Nothing here proves anything: chain and enclaves are models. Ctrl-C ends it.
`;
}

if (import.meta.main) await runAsProcess(main);
