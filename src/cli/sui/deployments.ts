/**
 * `deployments/<network>.json` records what the commands created on a network. Commands take from it the
 * ids that the command line lacks. It contains only public ids. Published.toml repeats the ids of packages
 * for the Move compiler and the Sui CLI, which read only that file.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { baseUrl } from 'sui-enclave/client/http';
import { namedEntries } from 'sui-enclave-service/named_entries';
import { replaceFileDurably } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { deploymentsFolder } from '../places.ts';
import { printable } from '../printable.ts';
import { readRegularFile } from '../read_file.ts';
import { SignerRecord } from '../releases/read_release.ts';
import type { Chain } from './chain.ts';
import { SuiCommandError } from './errors.ts';
import { ID_NAMES, type IdName, type Ids, optionFor } from './ids.ts';
import type { Outcome } from './outcome.ts';

const Id = v.pipe(
  v.string('must be an id'),
  v.regex(/^0x[0-9a-f]{64}$/, 'must be 0x and 64 hexadecimal digits in lower case'),
);
const Identifier = v.pipe(v.string(), v.regex(/^[a-zA-Z][a-zA-Z0-9_]{0,127}$/, 'must be a name in Move'));
const Version = v.pipe(
  v.number('must be an integer'),
  v.safeInteger('must be an integer'),
  v.minValue(0, 'must be 0 or more'),
);

const ApplicationEntry = v.strictObject({
  /** The latest version of the package. */
  package: Id,
  /** The first version of the package, by whose id types are named. */
  original: Id,
  version: v.optional(Version),
  /** Id of the UpgradeCap; null for a package that can't be upgraded. */
  upgradeCap: v.optional(v.nullable(Id)),
  /** The latest version of the package that holds `enclave::enclave`. */
  enclavePackage: v.optional(Id),
  module: v.optional(Identifier),
  witness: v.optional(Identifier),
  /** Id of the EnclaveCap. */
  capability: v.optional(Id),
  /** Shared objects that the package's `init` or `call` created. Functions of the contract may take them. */
  objects: v.optional(v.array(v.strictObject({ id: Id, type: v.pipe(v.string(), v.maxLength(1000)) }))),
  /** Signer of the application's releases: a key in hexadecimal, or a workflow. */
  signer: v.optional(SignerRecord),
  config: v.optional(
    v.strictObject({
      id: Id,
      name: v.string(),
      version: Version,
      /** Whether anyone may register enclaves under it. */
      isOpen: v.optional(v.boolean()),
    }),
  ),
  registrars: v.array(v.strictObject({ id: Id, holder: Id })),
  enclaves: v.array(
    v.strictObject({
      id: Id,
      configVersion: Version,
      url: v.pipe(v.string(), v.url('must be a URL')),
    }),
  ),
});

const DeploymentFile = v.strictObject({
  network: v.string(),
  /** The first 4 bytes of the digest of the chain's first checkpoint, in hexadecimal. */
  chain: v.pipe(v.string(), v.regex(/^[0-9a-f]{8}$/, 'must be 8 hexadecimal digits')),
  applications: namedEntries(
    v.pipe(v.string(), v.regex(/^[a-zA-Z][\w-]{0,63}$/, 'must be named by letters, digits, _ and -')),
    ApplicationEntry,
  ),
});

export type Application = v.InferOutput<typeof ApplicationEntry>;
export type Deployment = v.InferOutput<typeof DeploymentFile>;
/** Applications by name, in the order of the file. */
export type Applications = ReadonlyMap<string, Application>;

/** Place of each id in an application's entry, and the command that writes it. */
const SOURCES: Readonly<
  Record<IdName, readonly [readId: (application: Application) => string | null | undefined, writer: string]>
> = {
  enclavePackage: [({ enclavePackage }) => enclavePackage, 'publish'],
  appPackage: [(application) => application.package, 'publish'],
  module: [({ module }) => module, 'publish'],
  witness: [({ witness }) => witness, 'publish'],
  configId: [({ config }) => config?.id, 'create_config'],
};

/** The deployment file of a network. */
export class Deployments {
  readonly network: string;
  readonly path: string;
  /** The application that `--app` names. */
  readonly app: string | undefined;

  /** @param app the application that `--app` names */
  constructor(network: string, env: Environment, app: string | undefined) {
    this.network = network;
    this.path = relative('', join(deploymentsFolder(env), `${network}.json`));
    this.app = app;
  }

  /** Reads the file; undefined if it is missing. @throws SuiCommandError: DEPLOYMENT */
  read(): Deployment | undefined {
    let text: string;
    try {
      text = readRegularFile(this.path).toString();
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (code === 'ENOENT') return undefined;
      throw this.#error(`can't be read: ${code}`);
    }
    const parsed = v.safeParse(
      v.pipe(v.string(), v.parseJson(undefined, 'is not JSON'), DeploymentFile),
      text,
    );
    if (!parsed.success) {
      const [{ message, path, type }] = parsed.issues;
      const keyPath = printable(path?.map(({ key }) => String(key)).join('.') ?? '');
      const problem = type === 'strict_object' ? strictMessage(message) : message;
      throw this.#error(`${keyPath} ${problem}: correct it, or remove the file to start over`.trim());
    }
    if (parsed.output.network !== this.network) {
      throw this.#error(
        `is of the network ${JSON.stringify(printable(parsed.output.network))}: rename the file`,
      );
    }
    return parsed.output;
  }

  /** Returns the application that `--app` names, or the only one. @throws SuiCommandError: DEPLOYMENT */
  application(): [name: string, Application] {
    const file = this.read();
    if (file === undefined) {
      throw new SuiCommandError(
        'DEPLOYMENT',
        `there is no ${this.path}: name every id by its option, or run publish and create_config first`,
      );
    }
    const entries = [...file.applications];
    const named = this.app === undefined ? entries : entries.filter(([name]) => name === this.app);
    // A library such as move/enclave is published, but has no enclaves.
    const candidates = named.length > 1 ? named.filter(([, { module }]) => module !== undefined) : named;
    const [candidate] = candidates;
    if (candidate !== undefined && candidates.length === 1) return candidate;
    const names = entries.map(([name]) => name).join(', ') || 'none';
    throw this.#error(
      this.app === undefined
        ? `has the applications ${names}: name one by --app`
        : `has no application ${JSON.stringify(this.app)}; it has ${names}`,
    );
  }

  /** Returns the applications by their names; an empty map if the file is missing or can't be used. */
  readApplications(): Applications {
    try {
      return this.read()?.applications ?? new Map();
    } catch (error) {
      if (!(error instanceof SuiCommandError)) throw error;
      return new Map();
    }
  }

  /** Returns these ids of the application. @throws SuiCommandError: DEPLOYMENT */
  fill(names: readonly IdName[]): Partial<Ids> {
    const [application, entry] = this.application();
    const values = names.map((name) => {
      const [readId, writer] = SOURCES[name];
      const value = readId(entry);
      if (!value)
        throw this.#error(`has no ${optionFor(name)} of ${application}: run ${writer}, or give the option`);
      return [name, value];
    });
    return Object.fromEntries(values);
  }

  /**
   * Returns a warning for each id of the command line that differs from the file.
   *
   * @param isFilled whether ids that the command line lacks come from the file
   */
  contradictions(ids: Partial<Ids>, isFilled: boolean): string[] {
    try {
      const file = this.read();
      const entries = isFilled
        ? [this.application()]
        : [...(file?.applications ?? [])].filter(
            ([name, app]) => this.app === name || (this.app === undefined && isNamed(app, ids)),
          );
      return entries.flatMap(([name, application]) =>
        differences(ids, application, `${this.path} (${name})`),
      );
    } catch (error) {
      if (!(error instanceof SuiCommandError)) throw error;
      return [`WARNING: ${error.message}`];
    }
  }

  /**
   * Checks that the ids of the file belong to the chain that the node serves.
   *
   * @throws SuiCommandError: DEPLOYMENT; SuiError
   */
  async checkChain(chain: Chain): Promise<void> {
    const expected = this.read()?.chain;
    const chainId = await chain.id();
    if (expected !== undefined && expected !== chainId) {
      throw this.#error(
        `is of the chain ${expected}, and the node's is ${chainId}: if the network was reset, publish with --again`,
      );
    }
  }

  /**
   * Changes entries of applications after a command. Never throws: the command's transaction has been
   * executed, and the command must still report it.
   *
   * @param change takes all entries; returns the entries to write, or the reason to write nothing
   */
  async record(
    chain: Chain,
    outcome: Pick<Outcome, 'status'>,
    change: (applications: Applications) => readonly (readonly [name: string, Application])[] | string,
  ): Promise<void> {
    if (outcome.status === 'unsigned') {
      chain.notes.push(
        `${this.path} was not written: record the ids there once the transaction has been executed.`,
      );
    }
    if (outcome.status !== 'done') return;
    try {
      const id = await chain.id();
      const file = this.read();
      // A network that was reset has none of the objects in the file.
      const applications: Applications = file?.chain === id ? file.applications : new Map();
      const changed = change(applications);
      if (typeof changed === 'string') throw new SuiCommandError('DEPLOYMENT', changed);
      this.#write({ network: this.network, chain: id, applications: new Map([...applications, ...changed]) });
      chain.notes.push(`Recorded in ${this.path}.`);
    } catch (error) {
      const reason = (error as Error).message.slice(0, 300);
      chain.notes.push(`${this.path} was not written: ${reason}. Keep the ids that are printed here.`);
    }
  }

  /** Does the same as `record`, for the application with this config. */
  async recordConfig(
    chain: Chain,
    outcome: Pick<Outcome, 'status'>,
    configId: string,
    change: (application: Application) => Application,
  ): Promise<void> {
    await this.record(chain, outcome, (applications) => {
      const application = [...applications].find(([, { config }]) => config?.id === configId);
      return application
        ? [[application[0], change(application[1])]]
        : `no application there has the config ${configId}`;
    });
  }

  /** Does the same as `record`, for enclaves that were registered under this config at this version. */
  async recordEnclaves(
    chain: Chain,
    outcome: Pick<Outcome, 'status'>,
    config: { readonly id: string; readonly configVersion: bigint },
    enclaves: readonly { readonly id: string; readonly url: string }[],
  ): Promise<void> {
    const version = Number(config.configVersion);
    const added = enclaves.map(({ id, url }) => ({ id, configVersion: version, url: baseUrl(url).href }));
    await this.recordConfig(chain, outcome, config.id, (application) => ({
      ...application,
      ...(application.config && { config: { ...application.config, version } }),
      enclaves: [...application.enclaves, ...added],
    }));
  }

  /** Returns the enclaves that the entry of their config lacks; empty if no entry has this config. */
  findUnrecorded<T extends { readonly id: string }>(configId: string, enclaves: readonly T[]): T[] {
    const application = [...this.readApplications().values()].find(({ config }) => config?.id === configId);
    if (application === undefined) return [];
    return enclaves.filter(({ id }) => !application.enclaves.some((enclave) => enclave.id === id));
  }

  /** Replaces the file in one step: a reader sees the old content or the new one. */
  #write(file: Deployment): void {
    mkdirSync(dirname(this.path), { recursive: true });
    const content = { ...file, applications: Object.fromEntries(file.applications) };
    v.parse(DeploymentFile, content);
    replaceFileDurably(this.path, `${JSON.stringify(content, null, 2)}\n`);
  }

  #error(message: string): SuiCommandError {
    return new SuiCommandError('DEPLOYMENT', `${this.path} ${message}`);
  }
}

/**
 * Returns the message for a key that is unknown, missing or of the wrong type. In its own message, valibot
 * expects `never` for an unknown key.
 */
function strictMessage(message: string): string {
  return message.includes('Expected never') ? 'is an unknown key' : 'is missing or of another type';
}

/** Returns whether the ids of the command line name this application. */
function isNamed(application: Application, { appPackage, configId, module }: Partial<Ids>): boolean {
  const isPackage = appPackage === application.package || appPackage === application.original;
  return (
    (configId !== undefined && configId === application.config?.id) ||
    (isPackage && module === application.module)
  );
}

function differences(ids: Partial<Ids>, application: Application, source: string): string[] {
  return ID_NAMES.flatMap((name) => {
    const [commandId, recordedId] = [ids[name], SOURCES[name][0](application)];
    // For an upgraded package, both the first and the latest id are right.
    const same = commandId === recordedId || (name.endsWith('Package') && commandId === application.original);
    if (commandId === undefined || !recordedId || same) return [];
    return [
      `WARNING: ${optionFor(name)} is ${commandId}, but ${recordedId} in ${source}. The command uses the id of the command line.`,
    ];
  });
}
