/**
 * Installs the examples from their lockfiles with the packed library, compiles them, and runs them on one
 * machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantity } from '../../../src/library/wording.ts';
import { findFreePort } from '../bench/ports.ts';
import { type DappServers, dappSteps, logInAtProvider } from './dapp.ts';
import { expectEqual, launchBrowser, ROOT, run, type Steps } from './support.ts';
import { walletPageSteps } from './wallet_page.ts';

const EXAMPLES = ['node', 'dapp'];
const READY = /Ctrl-C ends it/;
const SECRET = /suiprivkey\w{20}/;

/** Variables of the developer's shell that must not reach the examples. */
const HIDDEN = /^(npm_|SUI_|ENCLAVE_|WEATHER_|DEPLOYMENTS$|OUT$|APP$|PORT$|FRAMEWORK$|VITEST)/;

/** The model of Sui, an emulated enclave that is registered on it, and the services of a login. */
type Chain = Omit<DappServers, 'pcrs' | 'root'>;

/** @param tarball returns the path of the packed library, once it is packed */
export function exampleSteps(work: string, tarball: () => string): Steps {
  const folder = join(work, 'examples');
  // The examples look for these files at the same paths as in a clone.
  const out = join(work, 'out');
  const deployments = join(work, 'deployments');
  const children: ChildProcess[] = [];
  let chain: Chain | undefined;
  const environment = (variables: Readonly<Record<string, string>>) => ({
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !HIDDEN.test(name))),
    ...variables,
  });

  /** Starts a development server, and returns what it has printed when it answers. */
  async function start(name: string, variables: Readonly<Record<string, string>>): Promise<string> {
    // CACHE hides a prover that may be built here. A fake makes the proofs, and nobody checks them.
    const env = environment({ PORT: '0', CONSOLE_PORT: '0', CACHE: '/nonexistent', OUT: out, ...variables });
    const child = spawn(process.execPath, ['src/cli/main.ts', name], { cwd: ROOT, env, stdio: 'pipe' });
    children.push(child);
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        printed += chunk;
      });
    }
    while (!READY.test(printed)) {
      if (child.exitCode !== null) throw new Error(`${name} ended:\n${printed}`);
      await sleep(50);
    }
    return printed;
  }

  const findUrl = (label: string, printed: string) =>
    findMatch(printed, new RegExp(`(http://127\\.0\\.0\\.1:\\d+) {2}${label}`));

  const findMatch = (printed: string, pattern: RegExp) => {
    const [, url] = pattern.exec(printed) ?? [];
    if (url === undefined) throw new Error(`no ${pattern} in:\n${printed}`);
    return url;
  };

  async function startEnclave(): Promise<string> {
    return findMatch(await start('dev', { ATTEST: 'emulated' }), /curl -s (\S+)\/process_data/);
  }

  /** Starts a chain in the way that src/library/sui/README.md describes under "On one machine". */
  async function startChain(): Promise<Chain> {
    const printed = await start('dev_sui', { FAUCET_PORT: '0' });
    const [node, faucet] = [findUrl('a MODEL', printed), findUrl('the faucet', printed)];
    const [enclave, unregistered, services] = await Promise.all([
      startEnclave(),
      startEnclave(),
      start('dev_wallet', { XDG_CACHE_HOME: join(out, 'cache') }),
    ]);
    const login = {
      issuer: findUrl('the OpenID provider', services),
      saltUrl: findUrl('the salt service', services),
      proverUrl: findUrl('the prover', services),
    };
    const root = join(out, 'dev-root.pem');
    const env = environment({
      SUI_PRIVATE_KEY: secretKey(),
      DEPLOYMENTS: deployments,
      SUI_ENCLAVE_NETWORK: 'localnet',
      SUI_ENCLAVE_ROOT: root,
    });
    const admin = async (...argv: string[]) => {
      const command = ['src/cli/main.ts', ...argv, '--rpc-url', node, '--json'];
      return JSON.parse((await run(process.execPath, command, { cwd: ROOT, env })).stdout);
    };
    const { package: appPackage } = await admin('publish', 'weather');
    const { config: configId } = await admin('create_config', 'weather', '--pcrs', join(out, 'dev.pcrs'));
    await admin('register_enclave', enclave);
    return { enclave, unregistered, node, faucet, appPackage, configId, login };
  }

  const secretKey = () => readFileSync(join(out, 'dev-sui.key'), 'utf8').trim();

  const trust = ({ enclave, node, appPackage, configId }: Chain) => ({
    ENCLAVE_URL: enclave,
    ENCLAVE_PCRS: join(out, 'dev.pcrs'),
    ENCLAVE_ROOT: join(out, 'dev-root.pem'),
    SUI_NETWORK: 'localnet',
    SUI_NODE_URL: node,
    SUI_PRIVATE_KEY: secretKey(),
    WEATHER_PACKAGE: appPackage,
    WEATHER_CONFIG: configId,
  });

  /** Runs the example in Node. */
  async function runNode(env: Readonly<Record<string, string>>, ...argv: string[]) {
    const options = { cwd: join(folder, 'node'), env: environment(env) };
    const outcome = await run(process.execPath, argv, options).catch((error) => error);
    const { code = 0, stdout, stderr } = outcome;
    expectEqual(SECRET.test(stdout + stderr), false);
    return { code, stdout, stderr };
  }

  const readOut = (name: string) => readFileSync(join(out, name), 'utf8');
  const servers = (): DappServers => {
    if (chain === undefined) throw new Error('there is no chain');
    return { ...chain, pcrs: readOut('dev.pcrs'), root: readOut('dev-root.pem') };
  };

  const steps: Steps = {
    async 'the examples install the packed library by their lockfiles'() {
      for (const name of EXAMPLES) {
        const excludedPaths = ['node_modules', 'dist'].map((entry) => join(ROOT, 'examples', name, entry));
        const filter = (path: string) => !excludedPaths.includes(path);
        cpSync(join(ROOT, 'examples', name), join(folder, name), { recursive: true, filter });
      }
      mkdirSync(out, { recursive: true });
      cpSync(tarball(), join(out, 'sui-enclave.tgz'));
      for (const name of EXAMPLES) {
        await run('npm', ['ci', '--prefer-offline', '--ignore-scripts'], {
          cwd: join(folder, name),
          env: environment({}),
        });
      }
      return EXAMPLES.join(', ');
    },

    async 'TypeScript accepts the examples'() {
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      for (const name of EXAMPLES) await run(process.execPath, [tsc], { cwd: join(folder, name) });
      return quantity(globSync('*/{,src/**/}*.{ts,tsx}', { cwd: folder }).length, 'file');
    },

    async 'examples/node verifies, calls and submits, which mints an object from the answer'() {
      chain = await startChain();
      const { code, stdout, stderr } = await runNode(trust(chain), 'main.ts', 'Paris');
      expectEqual([code, stderr.includes('ENCLAVE_ROOT is set')], [0, true]);
      const [, id = ''] =
        /^Minted: +(0x\w{64}), a 0x\w{64}::weather::WeatherNFT, in \w+$/m.exec(stdout) ?? [];
      const [, degrees] = /^Signed: +(\d+) °C in Paris$/m.exec(stdout) ?? [];
      expectEqual([id.length, degrees !== undefined], [66, true]);
      return `${degrees} °C in ${id.slice(0, 8)}…`;
    },

    async 'examples/node names what it refuses: a root, registers, an unregistered key, and settings'() {
      if (chain === undefined) throw new Error('there is no chain');
      const trustEnvironment = trust(chain);
      const otherPcrsFile = join(out, 'other.pcrs');
      const otherPcrs = readFileSync(trustEnvironment.ENCLAVE_PCRS, 'utf8').replace(/^\w{8}/gm, 'abcdabcd');
      writeFileSync(otherPcrsFile, otherPcrs);
      const refusals: [variables: Record<string, string>, code: number, begins: RegExp][] = [
        [{ ENCLAVE_ROOT: '' }, 1, /^CHAIN_ROOT: /m],
        [{ ENCLAVE_PCRS: otherPcrsFile }, 1, /^POLICY_PCRS: /m],
        [{ ENCLAVE_URL: chain.unregistered }, 1, /^CLIENT_NOT_REGISTERED: /m],
        [{ WEATHER_CONFIG: '0x6' }, 2, /^WEATHER_CONFIG is not an object id/m],
        [{ ENCLAVE_URL: '' }, 2, /^ENCLAVE_URL is not set/m],
        [{ SUI_PRIVATE_KEY: `${trustEnvironment.SUI_PRIVATE_KEY}x` }, 2, /^SUI_PRIVATE_KEY can't be used/m],
      ];
      for (const [variables, code, begins] of refusals) {
        const outcome = await runNode({ ...trustEnvironment, ...variables }, 'main.ts');
        expectEqual([outcome.code, begins.test(outcome.stderr)], [code, true]);
        expectEqual(outcome.stdout.includes('Minted'), false);
      }
      return quantity(refusals.length, 'refusal');
    },

    async 'examples/node logs in: the answer that the browser posts opens a session, which sends a transaction'() {
      const { node, faucet, login } = servers();
      const port = await findFreePort();
      const env = environment({
        ISSUER: login.issuer,
        CLIENT_ID: 'wallet-form-post',
        REDIRECT_URI: `http://127.0.0.1:${port}/back`,
        SALT_URL: login.saltUrl,
        PROVER_URL: login.proverUrl,
        SUI_NETWORK: 'localnet',
        SUI_NODE_URL: node,
        SUI_FAUCET_URL: faucet,
      });
      const child = spawn(process.execPath, ['login.ts'], { cwd: join(folder, 'node'), env, stdio: 'pipe' });
      const ended = once(child, 'close');
      let printed = '';
      child.stdout.on('data', (chunk) => {
        printed += chunk;
      });
      const browser = await launchBrowser();
      try {
        while (!/^Log in: +\S+\n/m.test(printed) && child.exitCode === null) await sleep(50);
        const page = await browser.newPage();
        await page.goto(findMatch(printed, /^Log in: +(\S+)\n/m));
        await logInAtProvider(page);
        await page.getByText('You are logged in: go back to the terminal.').waitFor();
        expectEqual(page.url(), `http://127.0.0.1:${port}/back`);
        expectEqual(await ended, [0, null]);
      } finally {
        child.kill('SIGKILL');
        await browser.close();
      }
      expectEqual(/^Executed: \w{40,}\n/m.test(printed), true);
      return findMatch(printed, /^Address: +(0x\w{6})/m);
    },

    async 'examples/dapp writes its settings from the files of the commands'() {
      const cwd = join(folder, 'dapp');
      await run(process.execPath, ['write_settings.ts'], { cwd });
      const { enclave, sui } = JSON.parse(readFileSync(join(cwd, 'public/settings.json'), 'utf8'));
      const { appPackage, configId } = servers();
      expectEqual([sui.packageId, sui.configId], [appPackage, configId]);
      expectEqual(enclave.developmentRoots, readOut('dev-root.pem'));
      return quantity(Object.keys(enclave.image).length, 'register');
    },

    ...dappSteps(join(folder, 'dapp'), servers),
    ...walletPageSteps(join(folder, 'dapp')),

    async 'the servers of the examples end'() {
      for (const child of children) child.kill('SIGTERM');
      for (const child of children) {
        if (child.exitCode === null) await once(child, 'close');
        expectEqual(child.exitCode, 0);
      }
      return quantity(children.length, 'server');
    },
  };
  // Servers of a failed step must not outlive this process.
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL');
  });
  return steps;
}
