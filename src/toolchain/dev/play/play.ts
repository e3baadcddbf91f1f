/** Starts the parts of `play`, and changes them when a key is pressed or a file changes. */
import { existsSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parsePcrs } from 'sui-enclave/attestation';
import { quantity } from 'sui-enclave/wording';
import { Deployments } from 'sui-enclave-cli/sui/deployments';
import { listen } from 'sui-enclave-devnet/listen';
import { createLog } from 'sui-enclave-service/log';
import { DevelopmentTrust } from 'sui-enclave-testing/development_trust';
import { hasGenerated } from '../../gen/generate.ts';
import { type ApplicationFolder, findProject, type Project } from '../../project.ts';
import { builtProver } from '../../prover/artifacts.ts';
import { developmentFiles, startConsole } from '../console.ts';
import type { Key } from '../keys.ts';
import { adminOn, runProgram } from '../sui/admin.ts';
import { type DevSui, startDevSui } from '../sui/service.ts';
import { requireFreePorts } from '../wallet/ports.ts';
import { developmentSeed, seedFolder } from '../wallet/seed.ts';
import { CLIENTS } from '../wallet/servers.ts';
import { startWalletServices, type WalletServices } from '../wallet/services.ts';
import { createChangingProxy, createReplayingProxy } from './broken.ts';
import { Contract, findContract } from './contract.ts';
import { buildDappPage, type DappPage, findDappPage } from './dapp_page.ts';
import { createDappServer } from './dapp_server.ts';
import { type Counterpart, namePorts, type PlayPorts, PORTS_REMEDY } from './ports.ts';
import { PlayServer, type PlayServerOptions } from './servers.ts';
import { watchFolder } from './watched_folder.ts';

const HOUR_MS = 60 * 60 * 1000;
/**
 * Step of the clock, in milliseconds. After it, contracts reject an answer: the templates' contracts accept
 * answers for a minute, and weather's for an hour.
 */
const CLOCK_STEP_MS = 2 * HOUR_MS;

export interface PlayOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly ports: PlayPorts;
  readonly log: (line: string) => void;
  /** Called if a part ends that can't be started again. */
  readonly onEnd: (reason: string) => void;
}

/** The addresses of the parts, and the ids on the chain. */
export interface Addresses {
  readonly node: string;
  readonly faucet: string;
  readonly enclaves: readonly string[];
  readonly console: string;
  readonly counterparts: Readonly<Record<Counterpart, string>>;
  readonly package: string;
  readonly config: string;
  readonly dapp?: string;
  readonly wallet?: string;
  readonly issuer?: string;
  readonly salt?: string;
  readonly prover?: string;
}

const ROOT_FILE = 'dev-root.pem';

/** Values of started parts that later parts need. */
interface Parts {
  readonly sui: DevSui;
  readonly contract: Contract;
  readonly enclaveUrls: readonly string[];
  readonly counterparts: Readonly<Record<Counterpart, string>>;
}

const formatUrl = (port: number) => `http://127.0.0.1:${port}`;

export class Play {
  readonly #options: PlayOptions;
  readonly project: Project;
  readonly application: ApplicationFolder;
  /** Folder of the root, the registers and the keys. */
  readonly out: string;
  /** The deployment file of `localnet`. */
  readonly deployments: Deployments;
  /** Folder of the Move package. */
  readonly #contractFolder: string;
  readonly #page: DappPage | undefined;
  readonly #closers: (() => unknown)[] = [];
  /** Resolves when the admin's latest command has ended, since commands run one at a time. */
  #latestTurn: Promise<unknown> = Promise.resolve();
  /** Keys of the terminal, which are set once all parts have started. */
  readonly keys = new Map<string, Key>();
  #contract: Contract | undefined;
  #signs: string | undefined;
  #clockAheadMs = 0;

  /** @throws ConfigError if there is no application, or if it has no contract */
  constructor(options: PlayOptions) {
    this.#options = options;
    this.project = findProject();
    const { root, isClone } = this.project;
    this.application = this.project.application(options.env['APP'] || (isClone ? 'weather' : undefined));
    this.out = join(root, 'out');
    this.deployments = new Deployments(
      'localnet',
      { DEPLOYMENTS: options.env['DEPLOYMENTS'] || join(root, 'deployments') },
      undefined,
    );
    this.#contractFolder = findContract(this.project, this.application.name);
    this.#page = findDappPage(this.project, this.application);
  }

  /** Returns the name of the contract's entry in the deployment file. */
  get contractName(): string {
    return basename(this.#contractFolder);
  }

  /**
   * Starts all parts.
   *
   * @throws ConfigError; the errors of the commands. The caller must then `close`, to end the parts that have
   * started
   */
  async start(): Promise<Addresses> {
    const { env, ports, log } = this.#options;
    await requireFreePorts(namePorts(ports, this.project.isClone), PORTS_REMEDY);
    const sui = await this.#startNode();
    const enclaveUrls = ports.enclaves.map(formatUrl);
    const contract = this.#createContract(sui, enclaveUrls);
    const enclaves = ports.enclaves.map((port, index) => this.#startEnclave(port, index));
    const counterparts = await this.#startCounterparts(enclaveUrls[0] ?? '');
    await Promise.all([contract.publish(), ...enclaves.map((enclave) => enclave.listening())]);
    await contract.register();
    log(`Enclaves: ${enclaveUrls.join(', ')}  (emulated), registered`);
    const parts = { sui, contract, enclaveUrls, counterparts };
    await this.#startConsole(parts);
    const wallet = this.project.isClone ? await this.#startWallet(env, parts) : undefined;
    const dapp = this.#page && (await this.#startDapp(this.#page, parts, wallet));
    this.#watchSources(contract);
    this.#addKeys(parts, enclaves);
    return {
      node: sui.node.url,
      faucet: sui.faucetUrl,
      enclaves: enclaveUrls,
      console: formatUrl(ports.console),
      counterparts,
      package: contract.ids.packageId,
      config: contract.ids.configId,
      ...(dapp !== undefined && { dapp }),
      ...(wallet && {
        wallet: wallet.origin,
        issuer: wallet.issuer,
        salt: wallet.saltUrl,
        prover: wallet.proverUrl,
      }),
    };
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#closers.splice(0).map(async (close) => close()));
  }

  async #startNode(): Promise<DevSui> {
    const { ports, log } = this.#options;
    const sui = await startDevSui({
      port: ports.wallet.node,
      faucetPort: ports.faucet,
      folder: this.#outUrl(),
      env: {},
      // The deployment file has the entries of one chain. On the same chain, those of other commands stay.
      chain: this.deployments.read()?.chain,
    });
    this.#closers.push(sui.close);
    sui.node.executor.now = () => Date.now() + this.#clockAheadMs;
    log(`Sui node: ${sui.node.url}  (a model), faucet ${sui.faucetUrl}`);
    return sui;
  }

  #createContract(sui: DevSui, enclaveUrls: readonly string[]): Contract {
    const { name } = this.application;
    const images = [1, 2].map((image) => DevelopmentTrust.load(this.#outUrl(), name, { image }));
    for (const trust of images) trust.save();
    const [pcrs = '', otherPcrs = ''] = images.map(({ pcrsName }) => join(this.out, pcrsName));
    return new Contract({
      admin: adminOn(sui, dirname(this.deployments.path)),
      application: name,
      folder: this.#contractFolder,
      pcrs: [pcrs, otherPcrs],
      rootFile: join(this.out, ROOT_FILE),
      enclaveUrls,
    });
  }

  #startEnclave(port: number, index: number): PlayServer {
    return this.#startServer({
      port,
      name: `Enclave ${index + 1}`,
      ...(index === 0 && { onListening: (signs: string) => this.#compareSigned(signs) }),
    });
  }

  #startServer(options: Pick<PlayServerOptions, 'port' | 'name' | 'image' | 'onListening'>): PlayServer {
    const server = new PlayServer({
      root: this.project.root,
      application: this.application.name,
      out: this.out,
      log: this.#options.log,
      ...options,
    });
    this.#closers.push(() => server.end());
    return server;
  }

  /**
   * Starts the broken counterparts. Two of them are servers, which are needed only later, so nothing waits
   * for them.
   */
  async #startCounterparts(enclaveUrl: string): Promise<Readonly<Record<Counterpart, string>>> {
    const { changed, replayed, other_image, unregistered } = this.#options.ports.counterparts;
    this.#startServer({ port: other_image, name: 'The server with another image', image: 2 });
    this.#startServer({ port: unregistered, name: 'The server with an unregistered key' });
    return {
      changed: await this.#listen(createChangingProxy(enclaveUrl), changed),
      replayed: await this.#listen(createReplayingProxy(enclaveUrl), replayed),
      other_image: formatUrl(other_image),
      unregistered: formatUrl(unregistered),
    };
  }

  async #startConsole({ enclaveUrls, counterparts }: Parts): Promise<void> {
    const { ports, log } = this.#options;
    const names = [ROOT_FILE, this.#pcrsName()];
    const page = startConsole({
      port: ports.console,
      link: `#/enclave?url=${encodeURIComponent(enclaveUrls[0] ?? '')}`,
      log,
      development: () => ({
        command: 'sui-enclave play',
        started: [...enclaveUrls, ...Object.values(counterparts)],
        files: developmentFiles(this.#outUrl(), names),
      }),
    });
    this.#closers.push(page.close);
    await page.settled;
  }

  async #startWallet(
    env: PlayOptions['env'],
    { sui, contract, enclaveUrls }: Parts,
  ): Promise<WalletServices> {
    const { ports, log, onEnd } = this.#options;
    const prover = builtProver('small');
    const [url = ''] = enclaveUrls;
    const rootPem = readFileSync(join(this.out, ROOT_FILE), 'utf8');
    const wallet = await startWalletServices({
      log: createLog('warn'),
      ports: ports.wallet,
      seed: developmentSeed(seedFolder(env)),
      chain: sui,
      enclave: () => ({ url, rootPem, ...contract.ids }),
      ...(prover && { prover }),
    });
    this.#closers.push(wallet.close);
    wallet.died.catch(() => onEnd('the backend of the proving service has ended'));
    log(`Wallet:   ${wallet.origin}/`);
    return wallet;
  }

  async #startDapp(
    { built, source }: DappPage,
    parts: Parts,
    wallet: WalletServices | undefined,
  ): Promise<string> {
    const { ports, log } = this.#options;
    if (source !== undefined && !existsSync(join(built, 'index.html'))) {
      log('Building the page: npm run build:page');
      await buildDappPage(this.project.root);
    }
    const server = createDappServer({
      folder: built,
      settings: (enclaveUrl) => this.#describeSettings(enclaveUrl, parts, wallet),
      enclaveUrl: parts.enclaveUrls[0] ?? '',
      counterparts: parts.counterparts,
    });
    const url = await this.#listen(server, ports.dapp);
    log(`Dapp:     ${url}/`);
    return url;
  }

  /** Returns the content of a dapp's settings.json. */
  #describeSettings(url: string, { sui, contract }: Parts, wallet: WalletServices | undefined): object {
    const files = developmentFiles(this.#outUrl(), [ROOT_FILE, this.#pcrsName()]);
    return {
      enclave: {
        url,
        image: parsePcrs(files[this.#pcrsName()] ?? ''),
        developmentRoots: files[ROOT_FILE],
      },
      sui: {
        network: 'localnet',
        nodeUrl: sui.node.url,
        faucetUrl: sui.faucetUrl,
        consoleUrl: `${formatUrl(this.#options.ports.console)}/`,
        ...contract.ids,
      },
      ...(wallet && {
        login: {
          issuer: wallet.issuer,
          name: 'Local login',
          clientId: CLIENTS.implicit.clientId,
          saltUrl: wallet.saltUrl,
          proverUrl: wallet.proverUrl,
        },
      }),
    };
  }

  async #listen(server: Server, port: number): Promise<string> {
    const url = await listen(server, 'PORT', port);
    this.#closers.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return url;
  }

  #watchSources(contract: Contract): void {
    const isMove = (path: string) => path.endsWith('.move') || path === 'Move.toml';
    const publishChanged = () =>
      this.#inTurn(async () => {
        if (contract.hasChanged()) await this.#publishAgain(contract, 'The contract has changed');
      });
    this.#contract = contract;
    this.#closers.push(watchFolder(this.#contractFolder, isMove, publishChanged));
    const source = this.#page?.source;
    if (source === undefined) return;
    const isSource = (path: string) => !/^(dist|node_modules)([/\\]|$)/.test(path);
    this.#closers.push(watchFolder(source, isSource, () => this.#inTurn(() => this.#buildPage())));
  }

  /** Publishes again if the types that the application signs have changed. */
  #compareSigned(signs: string): void {
    const before = this.#signs;
    this.#signs = signs;
    const contract = this.#contract;
    if (before === undefined || before === signs || contract === undefined) return;
    this.#inTurn(async () => {
      await this.#generate();
      await this.#publishAgain(contract, 'The signed types have changed');
      if (this.#page?.source !== undefined) await this.#buildPage();
    });
  }

  /** Writes the generated files again, if the application has any. */
  async #generate(): Promise<void> {
    if (!hasGenerated(this.application, this.#contractFolder)) return;
    const names = this.project.isClone ? [this.application.name] : [];
    await runProgram('gen', [...names, '--move', this.#contractFolder]);
    await runProgram('schema', names);
  }

  async #publishAgain(contract: Contract, reason: string): Promise<void> {
    const { log } = this.#options;
    log(`\n${reason}: publishing and registering again.`);
    await contract.publish();
    await contract.register();
    const { packageId, configId } = contract.ids;
    log(`Published as ${packageId}, under the config ${configId}. Reload the pages.`);
  }

  async #buildPage(): Promise<void> {
    await buildDappPage(this.project.root);
    this.#options.log('\nThe page is built again: reload it.');
  }

  #addKeys({ contract }: Parts, enclaves: readonly PlayServer[]): void {
    const { log } = this.#options;
    const [enclave] = enclaves;
    this.keys
      .set('r', {
        purpose: 'restart an enclave',
        run: async () => {
          log('\nEnclave 1 restarts, and has another key, which no contract accepts. Press m to mend it.');
          enclave?.restartWithNewKey();
          await enclave?.listening();
          log('Enclave 1 has restarted.');
        },
      })
      .set('c', {
        purpose: 'move the clock of the chain',
        run: () => {
          this.#clockAheadMs += CLOCK_STEP_MS;
          const ahead = quantity(this.#clockAheadMs / HOUR_MS, 'hour');
          log(
            `\nThe clock of the chain is ${ahead} ahead: contracts refuse answers as too old. Press m to mend it.`,
          );
        },
      })
      .set('u', {
        purpose: 'update the config',
        run: () =>
          this.#inTurn(async () => {
            await contract.allowOtherImage();
            log(
              '\nThe config allows another image: contracts refuse what both enclaves sign. Press m to mend it.',
            );
          }),
      })
      .set('m', {
        purpose: 'mend all',
        run: () =>
          this.#inTurn(async () => {
            this.#clockAheadMs = 0;
            await Promise.all(enclaves.map((server) => server.listening()));
            await contract.mend();
            log(
              '\nMended: the clock is right, the config allows the image, and both enclaves are registered.',
            );
          }),
      });
  }

  /** Runs the admin's commands in turn. A failure is printed, and does not end the process. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const { log } = this.#options;
    const turn = this.#latestTurn.then(work).catch((error: unknown) => log(`\n${describeError(error)}`));
    this.#latestTurn = turn;
    return turn;
  }

  #pcrsName(): string {
    return DevelopmentTrust.pcrsName(this.application.name, 1);
  }

  #outUrl(): URL {
    return pathToFileURL(`${this.out}/`);
  }
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
