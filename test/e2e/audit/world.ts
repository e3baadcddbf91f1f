/**
 * Starts what an audit needs: a model of Sui with an application, repositories behind https, and enclaves. A
 * fake of the build takes no time.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { fromHex, normalizeSuiAddress } from '@mysten/sui/utils';
import { writeCpio } from '../../../src/cli/image/cpio.ts';
import { measureImage } from '../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../src/cli/image/eif/read.ts';
import { Chain, type Executed } from '../../../src/cli/sui/chain.ts';
import { modelChainId } from '../../../src/cli/sui/network.ts';
import { packageDigest } from '../../../src/devnet/bytecode/package_digest.ts';
import { LoopbackNode } from '../../../src/devnet/node.ts';
import type { Image } from '../../../src/library/attestation/image.ts';
import { applicationType, createEnclaveConfig, registerEnclave } from '../../../src/library/sui/index.ts';
import type { Source } from '../../../src/library/sui/structs.ts';
import { publishPackage, upgradePackage } from '../../../src/library/sui/transactions.ts';
import { createRoot, type Identity, toPem } from '../../../src/testing/attestation_ca.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { auditCommand } from '../../../src/toolchain/audit/audit.ts';
import { MoveCommit } from '../../../src/toolchain/audit/commit.ts';
import { Compiler } from '../../../src/toolchain/audit/compile.ts';
import type { Rebuild, Rebuilt } from '../../../src/toolchain/audit/rebuild.ts';
import { type AuditedSource, readSource } from '../../../src/toolchain/audit/source.ts';
import { LOCK } from '../../../src/toolchain/image/build.ts';
import { hashPackages } from '../../../src/toolchain/image/context.ts';
import { writeEif } from '../../../src/toolchain/image/eif/write.ts';
import { createMeasurements } from '../../../src/toolchain/image/measurements.ts';
import { chooseFramework } from '../../../src/toolchain/move/packages.ts';
import { call } from '../../src/cli/run.ts';
import { startWeather } from '../../src/server/support.ts';
import { FRAMEWORK } from '../../src/toolchain/audit/applications.ts';
import { type Files, filesIn, GitServer, TestRepository } from '../../src/toolchain/audit/git_server.ts';
import { METADATA } from '../../src/toolchain/image/metadata.ts';

/** Creates an image that contains the application's files unchanged. */
export function quickImage(app: string, boot = 'boot'): Buffer {
  const auditedFiles = /^(?!test\/|move\/)(?:[\w/]+\.ts|app\.yaml|server\.env|schema\.json|package\.json)$/;
  const files = Object.entries(filesIn(app)).filter(([path]) => auditedFiles.test(path));
  const disk = (content: [string, { data: Uint8Array }][]) => gzipSync(writeCpio(new Map(content)));
  const parts = {
    kernel: Buffer.from('kernel'),
    cmdline: 'console=ttyS0',
    ramdisks: [
      disk([['init', { data: Buffer.from(boot) }]]),
      disk(files.map(([path, data]) => [`app/${path}`, { data }])),
    ],
  };
  return writeEif(parts, METADATA);
}

/** Content of the relay, which no register measures and no test runs. */
const RELAY = Buffer.from('relay');

const FRAMEWORK_PACKAGES = ['0x1', '0x2'].map((id) => normalizeSuiAddress(id));

/** Compiler of `enclave`, and of contracts that share its package or link to it. */
export const COMPILER = new Compiler(chooseFramework({}), { network: undefined });

/** Compiles a contract in `move/` for a package that also contains `enclave`. @returns its modules */
async function compileContract(module: string, { movePackages }: AuditedSource): Promise<Uint8Array[]> {
  const requirements = { modules: new Set<string>(), main: module, linked: new Map(), enclave: undefined };
  const compiled = await new MoveCommit('the sources', movePackages, COMPILER).compile(requirements);
  return compiled.modules.map(({ bytes }) => bytes);
}

const quickBuild: Rebuild = async ({ app }) => ({ eif: quickImage(app), relay: RELAY });

export interface Application {
  readonly files: Files;
  /** Folder of the application, from the root of the files. */
  readonly folder: string;
  /** Name of its contract's module. */
  readonly module: string;
}

/** A package on chain, with the capabilities that its publication created. */
export interface Published {
  readonly packageId: string;
  readonly upgradeCapId: string;
  readonly enclavePackage: string;
  readonly application: string;
  readonly capId: string;
}

/** False or missing claims in a config. */
export interface Lies {
  readonly source?: Partial<Source> | null;
  readonly image?: Image;
  readonly name?: string;
  /** Packages on chain. Default: the application's own. */
  readonly published?: Published;
}

export interface Deployed extends Published {
  readonly configId: string;
  readonly image: Image;
}

export interface Verdict {
  readonly exit: number | null;
  readonly out: string;
  readonly err: string;
  readonly verdict: string;
  readonly code: string | null;
  readonly line: string;
  readonly checks: { what: string; against: string; result: string; code: string | null; detail: string }[];
  readonly older: string[];
  readonly holders: { what: string; id: string | null; holder: string }[];
  readonly settings: string[];
  readonly proves: string[];
  readonly config: { name: string };
}

export class World {
  /** Folder with everything that the tests write. */
  readonly root: string;
  readonly admin = new Ed25519Keypair();
  readonly node: LoopbackNode;
  readonly git: GitServer;
  readonly #authority: Identity;
  /** Bytecode of the compiled modules, by the name of the application's module. */
  readonly #compiled = new Map<string, readonly Uint8Array[]>();
  readonly #sources = new Map<Application, AuditedSource>();
  #count = 0;

  private constructor(root: string, authority: Identity, node: LoopbackNode, git: GitServer) {
    this.root = root;
    this.#authority = authority;
    this.node = node;
    this.git = git;
    writeFileSync(join(root, 'root.pem'), toPem(authority.certificate));
    node.chainId = modelChainId(Uint8Array.of(1, 2, 3, 4));
    node.ledger.give(this.address, 1_000_000_000_000n);
  }

  static async start(): Promise<World> {
    const root = mkdtempSync(join(tmpdir(), 'audit-world-'));
    mkdirSync(join(root, 'git'));
    const authority = createRoot(new Date());
    const node = await LoopbackNode.start(authority.certificate);
    return new World(root, authority, node, await GitServer.start(join(root, 'git')));
  }

  close(): void {
    this.node.close();
    this.git.close();
    rmSync(this.root, { recursive: true });
  }

  get address(): string {
    return this.admin.toSuiAddress();
  }

  repository(): TestRepository {
    return new TestRepository(join(this.root, `git/repository-${++this.#count}.git`));
  }

  /** Writes an application's files to a folder, and reads from there the source that an audit reads. */
  loadSource(application: Application): AuditedSource {
    const cachedSource = this.#sources.get(application);
    if (cachedSource !== undefined) return cachedSource;
    const { files, folder } = application;
    const tree = join(this.root, `tree-${++this.#count}`);
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      writeFileSync(join(tree, path), content as string | Buffer);
    }
    const source = readSource({ folder: tree, files: 0, bytes: 0, omitted: [] }, folder, FRAMEWORK);
    this.#sources.set(application, source);
    return source;
  }

  async submit(tx: Transaction): Promise<Executed> {
    const chain = new Chain({ 'rpc-url': this.node.url }, { SUI_PRIVATE_KEY: this.admin.getSecretKey() });
    let execution: Executed | undefined;
    await chain.submit(tx, {
      title: '',
      fields: {},
      report(executed) {
        execution = executed;
        return {};
      },
    });
    if (execution === undefined) throw new Error('nothing was executed');
    return execution;
  }

  /**
   * Publishes the contract of an application with `enclave` in one package. Later calls publish the modules
   * of the first call.
   */
  async publish({ module }: Application, source: AuditedSource): Promise<Published> {
    const modules = this.#compiled.get(module) ?? [
      ...(await COMPILER.enclave()).values(),
      ...(await compileContract(module, source)),
    ];
    this.#compiled.set(module, modules);
    return await this.publishModules(modules, module);
  }

  /**
   * Publishes modules as they are.
   *
   * @param module the name of the module with the application's type, if there is one
   * @param enclavePackage the package that contains `enclave`, if it is another package
   */
  async publishModules(
    modules: readonly Uint8Array[],
    module: string,
    enclavePackage?: string,
    dependencies: readonly string[] = [],
  ): Promise<Published> {
    const tx = new Transaction();
    publishPackage(tx, {
      modules: modules.map((bytes) => Buffer.from(bytes).toString('base64')),
      dependencies: [...FRAMEWORK_PACKAGES, ...dependencies],
      owner: this.address,
    });
    const { packageId = '', created } = await this.submit(tx);
    const findId = (type: string) => created.find((object) => object.type.includes(type))?.id ?? '';
    return {
      packageId,
      enclavePackage: enclavePackage ?? packageId,
      application: applicationType(packageId, module, module.toUpperCase()),
      capId: findId('::enclave::EnclaveCap<'),
      upgradeCapId: findId('::package::UpgradeCap'),
    };
  }

  /** Upgrades a package. @param packageId the id of its latest version @returns the id of the next one */
  async upgrade(
    { upgradeCapId }: Published,
    packageId: string,
    modules: readonly Uint8Array[],
    dependencies: readonly string[] = [],
  ): Promise<string> {
    const allDependencies = [...FRAMEWORK_PACKAGES, ...dependencies];
    const tx = new Transaction();
    upgradePackage(tx, {
      upgradeCapId,
      packageId,
      policy: 0,
      dependencies: allDependencies,
      modules: modules.map((bytes) => Buffer.from(bytes).toString('base64')),
      digest: packageDigest([...modules], allDependencies),
    });
    const { packageId: next = '' } = await this.submit(tx);
    return next;
  }

  /** Returns the source that an honest admin would name for an image. */
  createSource(application: Application, repository: TestRepository, commit: string): Source {
    const auditedSource = this.loadSource(application);
    const outputs = { eif: quickImage(auditedSource.app), relay: RELAY };
    return {
      url: this.git.formatUrl(repository),
      commit,
      folder: application.folder,
      frameworkVersion: FRAMEWORK.version,
      measurementsSha256: hashRecord(auditedSource, outputs, commit, application.folder),
    };
  }

  /** Publishes an application at a commit, and creates a config, as an admin does. */
  async deploy(
    application: Application,
    repository: TestRepository,
    commit: string,
    { source: lies, image: otherImage, name = application.module, published: deployment }: Lies = {},
  ): Promise<Deployed> {
    const auditedSource = this.loadSource(application);
    const image = otherImage ?? measureImage(readEif(quickImage(auditedSource.app)));
    const source = this.createSource(application, repository, commit);
    const published = deployment ?? (await this.publish(application, auditedSource));
    const tx = new Transaction();
    createEnclaveConfig(tx, {
      ...published,
      name,
      image,
      ...(lies !== null && { source: { ...source, ...lies } }),
    });
    const { created } = await this.submit(tx);
    const configId = created.find(({ type }) => type.includes('::enclave::EnclaveConfig<'))?.id ?? '';
    return { ...published, configId, image };
  }

  /** Starts an emulated enclave. @returns its URL */
  async startEnclave({ pcr0, pcr1, pcr2 }: Image): Promise<string> {
    const nsm = new EmulatedNsm(Date.now, this.#authority, [pcr0, pcr1, pcr2].map(fromHex));
    const { server } = await startWeather({ nsm });
    return server.url;
  }

  async register(deployed: Deployed, url: string): Promise<void> {
    const { attestation } = (await (await fetch(`${url}/get_attestation`)).json()) as { attestation: string };
    const tx = new Transaction();
    registerEnclave(tx, { ...deployed, attestation: fromHex(attestation) });
    await this.submit(tx);
  }

  /** Starts an emulated enclave and registers it. @returns its URL */
  async serve(deployed: Deployed): Promise<string> {
    const url = await this.startEnclave(deployed.image);
    await this.register(deployed, url);
    return url;
  }

  /**
   * Runs an audit. Without `--source` in its options, it audits the repository that the config names on
   * chain.
   */
  async audit(
    configId: string,
    options: readonly string[],
    { build = quickBuild, root = true }: { readonly build?: Rebuild; readonly root?: boolean } = {},
  ): Promise<Verdict> {
    const main = auditCommand({ rebuild: build, framework: () => FRAMEWORK });
    const argv = [
      configId,
      '--rpc-url',
      this.node.url,
      '--cache',
      join(this.root, 'cache'),
      ...(root ? ['--root', join(this.root, 'root.pem')] : []),
      ...options,
    ];
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: this.root,
      GIT_SSL_CAINFO: this.git.authority,
    };
    const { status: exit, stdout: out, stderr: err } = await call(main, [...argv, '--json'], { env });
    return { ...JSON.parse(out), exit, out, err };
  }
}

/** Returns the SHA-256 of the record that a build of this commit writes. */
export function hashRecord(
  source: AuditedSource,
  { eif, relay }: Rebuilt,
  commit: string,
  folder: string,
): string {
  const packages = hashPackages(source.inputs.packages);
  const measurements = createMeasurements(
    source,
    { channel: 'experimental', lock: join(source.framework, LOCK), packages, eif, relay },
    { folder, commit, isUnchanged: true, hasCommittedLock: source.isApart ? null : true },
  );
  return createHash('sha256')
    .update(`${JSON.stringify(measurements, null, 2)}\n`)
    .digest('hex');
}
