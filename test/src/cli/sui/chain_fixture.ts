/** Fixture of the commands' tests: a node, an admin with SUI, an enclave, and its image as files. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bcs } from '@mysten/sui/bcs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { fromHex } from '@mysten/sui/utils';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { Changes } from '../../../../src/devnet/ledger.ts';
import { LoopbackNode } from '../../../../src/devnet/node.ts';
import type { Package } from '../../../../src/devnet/packages.ts';
import {
  applicationType,
  createEnclaveConfig,
  destroyEnclave,
  parsePcrs,
  registerEnclave,
  updatePcrs,
} from '../../../../src/library/sui/index.ts';
import { createRoot, type Identity } from '../../../../src/testing/attestation_ca.ts';
import { developmentRegisters, EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { weatherModules } from '../../devnet/weather_package.ts';
import { type Result, type Runner, script } from './run_script.ts';

/** Digest of testnet's first checkpoint. The commands take a node that reports it for a node of testnet. */
export const TESTNET_CHAIN = '69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD';
export const PACKAGE = `0x${'e'.repeat(64)}`;

/** Returns the options that name a config and the package to call. */
export function ofConfig(configId: string, enclavePackage = PACKAGE): string[] {
  return ['--enclave-package', enclavePackage, '--config', configId];
}

/** Returns the options that name an application and the package to call. */
export function ofApplication(
  enclavePackage: string,
  appPackage: string,
  module: string,
  witness: string,
): string[] {
  const application = ['--app-package', appPackage, '--module', module, '--witness', witness];
  return ['--enclave-package', enclavePackage, ...application];
}
const CALL = { enclavePackage: PACKAGE, application: applicationType(PACKAGE, 'weather', 'WEATHER') };

export class ChainFixture {
  /** The NSM of an enclave of weather. */
  readonly nsm: EmulatedNsm;
  readonly admin = new Ed25519Keypair();
  readonly node: LoopbackNode;
  readonly #dir = mkdtempSync(join(tmpdir(), 'sui-scripts-'));
  readonly #runner: Runner;
  readonly #root: Identity;
  /** The package that `publish` puts on the chain. */
  readonly weather: Package;

  private constructor(node: LoopbackNode, root: Identity, runner: Runner, modules: readonly Uint8Array[]) {
    this.node = node;
    this.weather = { original: PACKAGE, modules, dependencies: [] };
    this.#runner = runner;
    this.#root = root;
    const nsm = this.createNsm('weather');
    this.nsm = nsm;
    writeFileSync(this.file('dev.pcrs'), nsm.pcrsFile());
    writeFileSync(this.file('other.pcrs'), nsm.pcrsFile().replace(/^./gm, '7'));
    writeFileSync(this.file('root.pem'), nsm.rootPem());
  }

  /** Starts a node. @param runner runs the commands @param validFrom time from which enclaves may attest */
  static async start(runner = script, validFrom = new Date()): Promise<ChainFixture> {
    const root = createRoot(validFrom);
    const node = await LoopbackNode.start(root.certificate);
    const fixture = new ChainFixture(node, root, runner, await weatherModules());
    fixture.node.ledger.give(fixture.address, 10_000_000_000n);
    return fixture;
  }

  close(): void {
    this.node.close();
    rmSync(this.#dir, { recursive: true });
  }

  /**
   * Creates an enclave's emulated NSM.
   *
   * @param image number of the application's image
   * @param now NSM's clock
   */
  createNsm(application: string, image = 1, now = Date.now): EmulatedNsm {
    return new EmulatedNsm(now, this.#root, developmentRegisters(application, image));
  }

  /** Creates the emulated NSM of an enclave in debug mode, whose registers are zero. */
  createDebugNsm(): EmulatedNsm {
    const zero = new Uint8Array(48);
    return new EmulatedNsm(Date.now, this.#root, [zero, zero, zero]);
  }

  get address(): string {
    return this.admin.toSuiAddress();
  }

  file(name: string): string {
    return join(this.#dir, name);
  }

  /**
   * Creates a folder that the commands accept as the sources of Sui's framework. It has the tests' stub, and
   * a module that the stub lacks.
   */
  framework(): string {
    const dir = this.file('framework');
    cpSync(fileURLToPath(new URL('../../../../src/devnet/move_framework', import.meta.url)), dir, {
      recursive: true,
    });
    mkdirSync(join(dir, 'sui-framework/sources/kiosk'), { recursive: true });
    writeFileSync(join(dir, 'sui-framework/sources/kiosk/kiosk.move'), 'module sui::kiosk;');
    return dir;
  }

  /** Puts the package on the chain, and gives the owner its capability. @returns the capability's id */
  publish(owner = this.address): string {
    this.node.ledger.packages.set(PACKAGE, this.weather);
    const changes = new Changes(this.node.ledger, `publish:${owner}:${this.node.ledger.clock}`);
    const type = `${PACKAGE}::enclave::EnclaveCap<${PACKAGE}::weather::WEATHER>`;
    const id = changes.create(type, { kind: 'address', address: owner }, (objectId) =>
      bcs.Address.serialize(objectId).toBytes(),
    );
    this.node.ledger.commit('publish', changes);
    return id;
  }

  /** Runs a command with the admin's key. */
  run(name: string, ...args: string[]): Promise<Result> {
    return this.#runner(name, [...args, '--rpc-url', this.node.url, '--json'], {
      SUI_PRIVATE_KEY: this.admin.getSecretKey(),
      DEPLOYMENTS: this.file('deployments'),
    });
  }

  /** Runs a command that must succeed. @returns its JSON */
  async done(name: string, ...args: string[]): Promise<Record<string, unknown>> {
    const execution = await this.run(name, ...args);
    if (execution.exit !== 0)
      throw new Error(
        `${name} ${args.join(' ')} ended with ${execution.exit}: ${execution.out}${execution.err}`,
      );
    return execution.json();
  }

  /** Creates a config that allows the emulated NSM's image. @returns the config's id */
  async config(capId: string, { isOpen = false } = {}): Promise<string> {
    const tx = new Transaction();
    const image = parsePcrs(this.nsm.pcrsFile());
    createEnclaveConfig(tx, { ...CALL, capId, name: 'weather', image, isOpen });
    const [created] = await this.#send(tx);
    return created ?? '';
  }

  /** Allows an image that no enclave of this fixture runs. */
  async rotate(configId: string, capId: string): Promise<void> {
    const tx = new Transaction();
    const image = parsePcrs(this.nsm.pcrsFile().replace(/^./gm, '7'));
    updatePcrs(tx, { ...CALL, configId, capId, image });
    await this.#send(tx);
  }

  /** Registers the enclave at a URL. @returns its id */
  async register(configId: string, capId: string, url: string): Promise<string> {
    const { attestation } = (await (await fetch(`${url}/get_attestation`)).json()) as { attestation: string };
    const tx = new Transaction();
    registerEnclave(tx, { ...CALL, configId, capId, attestation: fromHex(attestation) });
    const [, enclave] = await this.#send(tx);
    return enclave ?? '';
  }

  /** Destroys an enclave of the latest version. */
  async destroy(enclaveId: string, configId: string, capId: string): Promise<void> {
    const tx = new Transaction();
    destroyEnclave(tx, { ...CALL, enclaveId, configId, capId });
    await this.#send(tx);
  }

  /** Returns the ids of the created objects. */
  async #send(tx: Transaction): Promise<string[]> {
    const chain = new Chain({ 'rpc-url': this.node.url }, { SUI_PRIVATE_KEY: this.admin.getSecretKey() });
    let ids: string[] = [];
    await chain.submit(tx, {
      title: '',
      fields: {},
      report({ created }) {
        ids = created.map(({ id }) => id);
        return {};
      },
    });
    return ids;
  }
}
