/**
 * `sui-enclave play`, or `make play`: contract, enclaves, console, wallet and dapp at once, in one terminal,
 * on loopback.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parsePcrs } from 'sui-enclave/attestation';
import { ConfigError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { listen } from 'sui-enclave-devnet/listen';
import { integer } from 'sui-enclave-service/env';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { builtProver } from '../../prover/artifacts.ts';
import { developmentFiles, startConsole } from '../console.ts';
import { forkServer } from '../fork_server.ts';
import { createStaticServer } from '../site.ts';
import { adminOn, publishWeather } from '../sui/admin.ts';
import { startDevSui } from '../sui/service.ts';
import { portsFrom } from '../wallet/ports.ts';
import { developmentSeed, seedFolder } from '../wallet/seed.ts';
import { CLIENTS } from '../wallet/servers.ts';
import { startWalletServices } from '../wallet/services.ts';

const CLONE = new URL('../../../../', import.meta.url);
const inClone = (path: string) => fileURLToPath(new URL(path, CLONE));
const at = (port: number) => `http://127.0.0.1:${port}`;

/** An emulated enclave of the weather application. @throws ConfigError, when it has said why */
async function startEnclave(port: number): Promise<ChildProcess> {
  const env = { ...process.env, APP: 'weather', ATTEST: 'emulated', PORT: `${port}`, OUT: inClone('out') };
  return await new Promise((resolve, reject) => {
    const options = { env, seed: randomBytes(32), quiet: true };
    const server = forkServer(options, (message) => 'port' in message && resolve(server));
    server.once('exit', () => reject(new ConfigError(`the enclave on port ${port} did not start`)));
  });
}

export const main = command({
  name: 'play',
  purpose: `Starts a model of a Sui node, two emulated enclaves that are registered there, the console, the wallet and the
example dapp on loopback, until SIGTERM or Ctrl-C.`,
  arguments: {},
  options: {},
  notes: 'environment:\n  PORT  the first of ten ports. Default: 4170',
  async run(_, { env, io: { log } }) {
    const first = integer(env, 'PORT', { from: 1024, to: 65_526, default: 4170 });
    const ports = portsFrom(first);
    const [faucetPort, dapp, console, url, otherUrl] = [
      first + 5,
      first + 6,
      first + 7,
      at(first + 8),
      at(first + 9),
    ];
    const children: ChildProcess[] = [];
    const running: (() => unknown)[] = [() => children.map((child) => child.kill())];
    endOnSignal(async () => void (await Promise.all(running.splice(0).map((end) => end()))));
    const folder = new URL('out/', CLONE);
    const sui = await startDevSui({ port: ports.node, faucetPort, folder, env: {} });
    running.push(sui.close);
    children.push(await startEnclave(first + 8), await startEnclave(first + 9));
    const admin = adminOn(sui, inClone('out/play'));
    const ids = await publishWeather(admin, inClone('out/dev.pcrs'));
    await admin('register_enclave', url, otherUrl, '--root', inClone('out/dev-root.pem'));
    const files = developmentFiles(folder, ['dev-root.pem', 'dev.pcrs']);
    const { 'dev-root.pem': rootPem = '', 'dev.pcrs': pcrs = '' } = files;
    const [seed, prover] = [developmentSeed(seedFolder(env)), builtProver('small')];
    const real = { log: createLog('warn'), ports, seed, ...(prover && { prover }) };
    const wallet = await startWalletServices({
      ...real,
      chain: sui,
      enclave: () => ({ url, rootPem, ...ids }),
    });
    const { issuer, saltUrl, proverUrl, faucetUrl } = wallet;
    const services = { issuer, saltUrl, proverUrl, clientId: CLIENTS.implicit.clientId };
    const settings = {
      enclave: { url, image: parsePcrs(pcrs), developmentRoots: rootPem },
      sui: { network: 'localnet', nodeUrl: sui.node.url, faucetUrl, ...ids },
      login: { ...services, name: 'Local login' },
    };
    const page = createStaticServer(inClone('examples/dapp/dist'), settings);
    await listen(page, 'PORT', dapp);
    const link = `#/chain?node=${sui.node.url}`;
    running.push(
      wallet.close,
      () => page.closeAllConnections(),
      startConsole({ port: console, link, log, development: () => files }).close,
    );
    log(`Dapp:     ${at(dapp)}/\nWallet:   ${wallet.origin}/\nEnclave:  ${at(console)}/#/enclave?url=${url}`);
    await Promise.race([wallet.died, ...children.map((child) => once(child, 'exit'))]);
    if (running.length > 0) throw new ConfigError('a part of it has ended: see above');
    return { json: {} };
  },
  report: (_error, failure) => failure && { ...failure, text: `make play: ${failure.json.error}` },
});

if (import.meta.main) await runAsProcess(main);
