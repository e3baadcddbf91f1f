/** `sui-enclave audit`: finds and checks the sources behind a config, whose enclaves contracts trust. */
import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type EnclaveConfig, isOverlapping, readConfig } from 'sui-enclave/sui/objects';
import type { Source } from 'sui-enclave/sui/structs';
import { quantity } from 'sui-enclave/wording';
import {
  type Context,
  command,
  EXIT,
  type Failure,
  type Main,
  type Result,
  readFileArgument,
  runAsProcess,
} from 'sui-enclave-cli/command';
import type { Environment, OptionValues } from 'sui-enclave-cli/command_line';
import { printable } from 'sui-enclave-cli/printable';
import { RELEASE_OPTIONS } from 'sui-enclave-cli/releases/read_release';
import { Chain } from 'sui-enclave-cli/sui/chain';
import { readRoots } from 'sui-enclave-cli/sui/contract';
import { READING, ROOT_OPTION } from 'sui-enclave-cli/sui/options';
import { enclaveUrl, path, text } from 'sui-enclave-cli/values';
import { addsNothing, describeOther, findOtherConfigs } from './configs.ts';
import { compareContracts } from './contracts.ts';
import { compareDevelopment, isDevelopmentImage } from './development.ts';
import { askEnclaves, type Enclaves } from './enclaves.ts';
import { AuditError } from './errors.ts';
import { askNamedRepository, checkOnBranch, openSource } from './fetch.ts';
import { checkGit } from './git.ts';
import { parseOlderSource } from './older_sources.ts';
import { takeOutput } from './output.ts';
import { describeSettings, findHolders } from './people.ts';
import { compareMeasurements, compareRegisters, listDifferences, type Rebuild, rebuild } from './rebuild.ts';
import { type AuditedSource, checkVersion, type OwnFramework, ownFramework } from './source.ts';
import { readSourceApart } from './source_process.ts';
import { findStart, start } from './start.ts';
import { writeTree } from './tree.ts';
import { Checks, createResult } from './verdict.ts';
import { compareVoucher, readVoucher } from './vouchers.ts';

const OPTIONS = {
  network: READING.network,
  'rpc-url': READING['rpc-url'],
  url: { value: '<url>', help: 'the URL of an enclave to ask', schema: enclaveUrl, repeated: true },
  source: {
    value: '<source>',
    help: 'the repository to take the commit from, in place of the one on chain: an https address, or a clone on this machine',
    schema: text,
  },
  'older-source': {
    value: '<commit[:folder]>',
    help: 'a commit of the same repository from which an older version of the packages was published; add :<folder> if the application was in another folder',
    schema: text,
    repeated: true,
  },
  inputs: {
    value: '<file>',
    help: 'build from the inputs.tar of an earlier build, without a network',
    schema: path,
  },
  image: {
    value: '<file>',
    help: 'an image that you have: if the registers differ, the audit lists the files that differ from the rebuilt image',
    schema: path,
  },
  ...RELEASE_OPTIONS,
  quick: {
    help: 'do not build the image again; the audit can then find differences, but not confirm that all agrees',
  },
  cache: {
    value: '<folder>',
    help: 'the cache of downloaded packages (default: sui-enclave/packages in $XDG_CACHE_HOME or ~/.cache)',
    schema: path,
  },
  ...ROOT_OPTION,
} as const;

type Options = OptionValues<typeof OPTIONS>;

/** Parts that tests replace, since a build takes minutes, and a test's framework needs known packages. */
export interface Parts {
  readonly rebuild: Rebuild;
  readonly framework: () => OwnFramework;
}

/** Returns the `main` of the command. */
export function auditCommand(parts: Parts): Main {
  return command({
    name: 'audit',
    purpose: `Finds out which program is behind a config, and whether it is the program that the config names. To find the
config, the command also accepts a package, a transaction or an enclave. It fetches the commit, builds the image again
with this program's own framework, compares registers and packages, and asks enclaves for attestation. It runs no code
of the commit. Needs git, and buildah or podman; the first build takes about 10 minutes and 6 GB of disk.`,
    example: '0x<config> --network testnet',
    arguments: { start: { label: 'config|package|transaction|url', schema: start } },
    options: OPTIONS,
    notes: `exit codes: 0 all agrees, after a build; 1 something differs, with a code; 2 no verdict (invalid command line, or the
node did not answer); 3 nothing differs, but not everything was checked: --quick, no enclave named, or one is silent;
4 nothing differs, and everything was checked, but the image is one for development: an emulated enclave`,
    report,
    run: async ({ args, options }, context) => await audit(args.start, options, context, parts),
  });
}

/**
 * Reports every error. Only a difference ends with the exit code for differences; a fault of this program
 * never does.
 */
function report(error: unknown, failure: Failure | undefined): Failure {
  if (failure !== undefined && error instanceof AuditError) return failure;
  const { code, error: message } = failure?.json ?? {
    code: 'INTERNAL',
    error: printable(String(error), 400),
  };
  return {
    exit: EXIT.notTried,
    text: `NO VERDICT (${code}): ${message}`,
    json: { verdict: 'none', ...failure?.json, code, error: message },
  };
}

/** Parameters and state of one audit. */
interface Audit {
  readonly config: EnclaveConfig;
  readonly options: Options;
  readonly chain: Chain;
  readonly env: Environment;
  readonly parts: Parts;
  readonly checks: Checks;
  /** Folder to which the audit writes. Besides this folder, it writes only to the cache. */
  readonly work: string;
  /** Announces a step that takes time. */
  progress(line: string): void;
}

async function audit(
  startText: string,
  commandLine: Options,
  { env, io }: Context,
  parts: Parts,
): Promise<Result> {
  checkGit(env);
  const chain = new Chain(commandLine, env);
  const progress = (line: string) => io.error(line);
  const localImage = commandLine.image === undefined ? undefined : await readFileArgument(commandLine.image);
  const roots = await readRoots(chain, commandLine.root);
  const voucher = await readVoucher(commandLine);
  const { config, from, urls } = await findStart(startText, chain);
  if (from !== null) progress(`the config ${config.id} was found by ${from}`);
  const options = { ...commandLine, url: [...urls, ...commandLine.url] };
  const older = options['older-source'].map((commit) => parseOlderSource(commit, config.source));
  const work = mkdtempSync(join(tmpdir(), 'sui-enclave-audit-'));
  const mainAudit: Audit = { config, options, chain, env, parts, checks: new Checks(), work, progress };
  const restOfAudit: Audit = { ...mainAudit, checks: new Checks() };
  try {
    if (from !== null) mainAudit.checks.same(from, 'the chain', `the config ${config.id} was found by it`);
    checkConfig(mainAudit);
    const source = await fetchSource(mainAudit);
    const version = parts.framework().version;
    const contracts = await compareContracts(
      { ...restOfAudit, repository: options.source, older, version },
      source,
    );
    const enclaves = await compareEnclaves(restOfAudit, roots);
    const otherConfigsFound = await compareConfigs(restOfAudit);
    const holders = await findHolders(config, contracts.originals, chain, otherConfigsFound?.capabilities);
    // A build takes minutes, in which connections end. So this runs last, although its rows are earlier in
    // the table.
    await compareImage(mainAudit, source, localImage);
    await compareAgain(restOfAudit);
    const vouchers = compareVoucher(voucher, config, restOfAudit.checks);
    const { name, application, configVersion, isRetired, image } = config;
    return createResult({
      checks: [...mainAudit.checks.all, ...restOfAudit.checks.all],
      summary: describeSummary(config, enclaves),
      isOnlyImage: otherConfigsFound?.isOnlyImage === true && !isOverlapping(config, Date.now()),
      otherConfigs: otherConfigsFound?.configs ?? null,
      notes: mainAudit.checks.notes,
      callable: contracts.callable,
      config: { id: config.id, name: printable(name), application, configVersion, isRetired, ...image },
      source: config.source && toPrintable(config.source),
      holders,
      vouchers,
      settings: source === undefined ? [] : describeSettings(source),
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function describeSummary({ name, source }: EnclaveConfig, { asked: askedEnclaves }: Enclaves): string {
  return `the commit ${source?.commit} gives the image of the config ${JSON.stringify(printable(name, 60))}, and ${quantity(askedEnclaves.length, 'enclave')} with a registered key ${askedEnclaves.length === 1 ? 'runs' : 'run'} it`;
}

/** Makes the texts that the admin wrote printable on a terminal. */
function toPrintable({ url, folder, frameworkVersion, ...hashes }: Source): Source {
  return {
    ...hashes,
    url: printable(url),
    folder: printable(folder),
    frameworkVersion: printable(frameworkVersion),
  };
}

function checkConfig({ config, checks }: Audit): void {
  const subject = `the config ${JSON.stringify(printable(config.name, 60))} at version ${config.configVersion}`;
  if (config.isRetired) {
    checks.fault(subject, 'its state', new AuditError('CONFIG_RETIRED', `the config ${config.id} has ended`));
  } else checks.same(subject, 'its state', 'it is not retired');
  if (isOverlapping(config, Date.now())) {
    const until = new Date(Number(config.overlap?.untilMs)).toISOString();
    const why = `contracts accept it until ${until}, and the config does not name its source`;
    checks.notChecked(`the image of version ${config.configVersion - 1n}`, 'its source', why);
  }
}

const REGISTERS = 'the registers of the sources';
const ON_CHAIN = 'those on chain';

/**
 * Fetches the commit and checks that an audit can build it. @returns undefined if the sources can't be used
 */
async function fetchSource(mainAudit: Audit): Promise<AuditedSource | undefined> {
  const { config, checks, parts } = mainAudit;
  const { source: namedSource } = config;
  if (namedSource === null) {
    const missing = new AuditError(
      'SOURCE_MISSING',
      `the config ${config.id} names no source. Ask its admin, who has the EnclaveCap ${config.capabilityId}, to build a commit of a public repository, and to allow that image with --source-url <repository>: the config then names the repository, its commit and folder, the version of the framework, and the SHA-256 of out/measurements.json`,
    );
    checks.fault('the source', 'the config', missing);
    return undefined;
  }
  const framework = parts.framework();
  const subject = `the commit ${namedSource.commit}`;
  const source = await checks.compare(subject, 'what an audit can build', async () => {
    checkVersion(namedSource, framework);
    const tree = await takeTree(mainAudit, namedSource, subject);
    const auditedSource = await readSourceApart(tree, namedSource.folder, framework);
    const mb = (tree.bytes / 1e6).toFixed(1);
    checks.same(
      subject,
      'its hash, and what an audit can build',
      `${quantity(tree.files, 'file')}, ${mb} MB`,
    );
    const frameworkText = auditedSource.isApart
      ? `version ${framework.version}, by the digests of its packages`
      : "the same as this program's, byte for byte";
    checks.same('the framework in the sources', frameworkText);
    return auditedSource;
  });
  return source;
}

async function takeTree(
  { options, work, env, checks, progress }: Audit,
  { url, commit }: Source,
  subject: string,
) {
  const request = { commit, work, env };
  if (options.source !== undefined && options.source !== url) {
    checks.note(`${await askNamedRepository(url, request)}.`);
  }
  const { repository, address } = await openSource(url, options.source, request, progress);
  if (address !== undefined) {
    const against = 'the branches and tags of its repository';
    const isOn = await checks.compare(subject, against, async () => {
      await checkOnBranch(address, request);
      return true;
    });
    if (isOn) checks.same(subject, against);
  }
  return await writeTree(repository, commit, join(work, 'tree'));
}

async function compareImage(
  mainAudit: Audit,
  source: AuditedSource | undefined,
  localImage: Buffer | undefined,
): Promise<void> {
  const { config, options, chain, env, checks, parts, work, progress } = mainAudit;
  const { source: namedSource } = config;
  if (source === undefined || namedSource === null) {
    checks.notChecked(REGISTERS, ON_CHAIN, 'the sources can not be used');
    return;
  }
  if (!chain.isReal && isDevelopmentImage(config.image)) {
    await checks.compare(REGISTERS, ON_CHAIN, () => compareDevelopment(source, config.image, namedSource));
    return;
  }
  if (options.quick) {
    checks.notChecked(REGISTERS, ON_CHAIN, '--quick: the image was not built again');
    return;
  }
  const cache = resolve(options.cache ?? defaultCache(env));
  await checks.compare(REGISTERS, ON_CHAIN, async () => {
    progress(
      'Building the image: this takes a minute or two, or about 10 minutes the first time, mostly for the kernel',
    );
    const rebuilt = await parts.rebuild(source, { work, cache, inputs: options.inputs, env, log: progress });
    try {
      compareRegisters(rebuilt, config);
    } catch (error) {
      if (!(error instanceof AuditError) || localImage === undefined) throw error;
      const lines = listDifferences(rebuilt, localImage);
      const relation = lines.length === 0 ? 'is the same as' : 'differs from';
      const comparison = [`The image of the sources ${relation} ${options.image}`, ...lines];
      throw new AuditError(error.code, [error.message, ...comparison].join('\n'));
    }
    checks.same(REGISTERS, ON_CHAIN, 'PCR0, PCR1, PCR2, of an image that was built here');
    const record = 'the record of the build (measurements.json)';
    await checks.compare(record, 'its SHA-256 on chain', () => {
      const channel = compareMeasurements(rebuilt, source, namedSource);
      checks.same(record, 'its SHA-256 on chain', `of the channel ${channel}`);
    });
  });
}

function defaultCache(env: Environment): string {
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'sui-enclave/packages');
}

/** Reads the config again and compares: a build takes minutes, in which an admin may change the config. */
async function compareAgain({ config, chain, checks }: Audit): Promise<void> {
  const subject = 'the config after the build';
  const against = 'the config before the build';
  try {
    const currentConfig = await readConfig(chain.client, config.id);
    if (isDeepStrictEqual(currentConfig, config)) return;
    checks.notChecked(subject, against, 'it changed during the audit: audit it again');
  } catch (error) {
    const why = `the node did not return it again: ${printable((error as Error).message)}`;
    checks.notChecked(subject, against, why);
  }
}

const OTHER_CONFIGS = 'other configs of the application';
const LISTED = 'the registers of this config';

/**
 * Compares all configs of the application: a contract that does not pin one config accepts the enclaves of
 * all.
 *
 * @returns undefined if the configs could not be read
 */
async function compareConfigs({ config, chain, checks }: Audit) {
  const otherConfigsFound = await checks.compare(OTHER_CONFIGS, LISTED, () =>
    findOtherConfigs(config, chain),
  );
  if (otherConfigsFound === undefined) return undefined;
  const { configs, capabilities } = otherConfigsFound;
  const now = Date.now();
  if (configs.length === 0) checks.same(OTHER_CONFIGS, LISTED, 'no other config is listed');
  for (const otherConfig of configs) {
    const text = describeOther(otherConfig, now);
    if (addsNothing(otherConfig, config, now)) {
      checks.same('another config of the application', LISTED, text);
    } else {
      const why = `contracts may accept its image too: audit it as well, by sui-enclave audit ${text}`;
      checks.notChecked('another config of the application', LISTED, why);
    }
  }
  return {
    capabilities,
    isOnlyImage: configs.every((otherConfig) => addsNothing(otherConfig, config, now)),
    configs: configs.map(({ id, name, application, configVersion, isRetired, image }) => ({
      id,
      name: printable(name),
      application,
      configVersion,
      isRetired,
      ...image,
    })),
  };
}

async function compareEnclaves(
  { config, options, chain, checks, progress }: Audit,
  roots: readonly Uint8Array[] | undefined,
): Promise<Enclaves> {
  const { url: urls } = options;
  if (urls.length > 0) progress(`Asking ${quantity(new Set(urls).size, 'URL')} for attestation`);
  const against = 'the registers and the registrations on chain';
  const enclaves = await checks.compare('enclaves', against, () => askEnclaves(urls, config, chain, roots));
  if (enclaves === undefined) return { asked: [], silent: [], accepted: [] };
  for (const { url, publicKey, enclave, fault } of enclaves.asked) {
    const subject = `the enclave at ${printable(url)}`;
    if (fault !== null) checks.fault(subject, against, fault);
    else {
      const since = enclave?.registeredAt.toISOString();
      checks.same(subject, against, `key ${publicKey}, enclave ${enclave?.id}, attested ${since}`);
    }
  }
  if (urls.length === 0) {
    checks.notChecked('enclaves', against, 'no --url was given');
  } else if (enclaves.silent.length > 0) {
    const ids = enclaves.silent.map(({ id }) => id).join(', ');
    checks.notChecked('other registered enclaves', 'what they run', `no URL reached ${ids}`);
  }
  return enclaves;
}

export { takeOutput };

export const main = auditCommand({ rebuild, framework: ownFramework });

if (import.meta.main) {
  await runAsProcess(async (argv, env, io) => await main(argv, env, takeOutput(io, argv.includes('--json'))));
}
