/**
 * Manages the application's contract on the model of a Sui node, and the enclaves that are registered there.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import type { Project } from '../../project.ts';
import type { Admin } from '../sui/admin.ts';

export interface ContractIds {
  readonly packageId: string;
  readonly configId: string;
}

export interface ContractOptions {
  readonly admin: Admin;
  readonly application: string;
  /** Absolute path of the Move package's folder. */
  readonly folder: string;
  /** Files with the registers of two images: the image that the enclaves run, and another one. */
  readonly pcrs: readonly [image: string, otherImage: string];
  readonly rootFile: string;
  readonly enclaveUrls: readonly string[];
}

/**
 * Returns the Move package that `play` publishes: the one with the application's name, or the only one.
 *
 * @throws ConfigError if the project has no such package
 */
export function findContract(project: Project, application: string): string {
  const packages = project.movePackages();
  const [firstFolder, ...moreFolders] = packages.values();
  const folder = packages.get(application) ?? (moreFolders.length === 0 ? firstFolder : undefined);
  if (folder !== undefined) return folder;
  const list = [...packages.keys()].join(', ') || 'none';
  throw new ConfigError(
    `play publishes the Move package move/${application}, which does not exist; the packages are: ${list}`,
  );
}

/** Runs an admin's commands. Each method runs one command, or several in turn. */
export class Contract {
  readonly #options: ContractOptions;
  readonly #name: string;
  #ids: ContractIds | undefined;
  #digest = '';

  constructor(options: ContractOptions) {
    this.#options = options;
    this.#name = options.folder.split(/[/\\]/).at(-1) ?? '';
  }

  /** @throws Error before `publish` */
  get ids(): ContractIds {
    if (this.#ids === undefined) throw new Error('the contract is not published yet');
    return this.#ids;
  }

  /** Publishes the package, and creates a config that allows the image. @throws ConfigError */
  async publish(): Promise<void> {
    const { admin, application, pcrs } = this.#options;
    // The digest is set before the command. Sources that do not compile are then tried again only after they
    // change.
    this.#digest = this.#computeDigest();
    const { package: packageId = '' } = await admin('publish', this.#name, '--again');
    const { config: configId = '' } = await this.#run('create_config', application, '--pcrs', pcrs[0]);
    this.#ids = { packageId, configId };
  }

  /** Returns whether the sources have changed since `publish` read them. */
  hasChanged(): boolean {
    return this.#digest !== this.#computeDigest();
  }

  async register(): Promise<void> {
    const { enclaveUrls, rootFile } = this.#options;
    await this.#run('register_enclave', ...enclaveUrls, '--root', rootFile);
  }

  /**
   * Allows another image instead of the one that the enclaves run, so that contracts reject all of these
   * enclaves.
   */
  async allowOtherImage(): Promise<void> {
    await this.#run('update_pcrs', '--pcrs', this.#options.pcrs[1]);
  }

  /** Allows the image that the enclaves run, and registers the enclaves that are not registered for it. */
  async mend(): Promise<void> {
    const { enclaveUrls, pcrs, rootFile } = this.#options;
    await this.#run('rotate', ...enclaveUrls, '--pcrs', pcrs[0], '--root', rootFile);
  }

  /** Runs a command for this application, since the deployment file may have several. */
  async #run(name: string, ...args: readonly string[]): Promise<Record<string, string>> {
    return await this.#options.admin(name, ...args, '--app', this.#name);
  }

  #computeDigest(): string {
    const hash = createHash('sha256');
    const { folder } = this.#options;
    for (const file of globSync('{Move.toml,sources/**/*.move}', { cwd: folder }).sort()) {
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(folder, file)))
        .update('\0');
    }
    return hash.digest('hex');
  }
}
