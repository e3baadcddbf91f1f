/** Reads the image that a config will allow: its registers, source, signer and secrets. */
import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Image, parsePcrs } from 'sui-enclave/attestation';
import type { Source } from 'sui-enclave/sui/structs';
import * as v from 'valibot';
import { readFileArgument, UsageError } from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { DEV_EMULATED, PCRS_HINT } from '../places.ts';
import {
  type RELEASE_OPTIONS,
  readRelease,
  type SignerRecord,
  type VouchedRelease,
} from '../releases/read_release.ts';
import type { Chain } from './chain.ts';
import type { Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import { type EXPERIMENTAL_FLAG, PCRS_OPTION, type SOURCE_OPTION } from './options.ts';

const REGISTERS = ['pcr0', 'pcr1', 'pcr2'] as const;

/**
 * PCR0 and PCR1 of the emulated NSM (src/testing), which are the same for every application. Anyone can
 * attest them, under a root of their own.
 */
const [pcr0, pcr1] = [0, 1].map((index) => {
  const content = sha384(Buffer.from(`sui-enclave development PCR${index}`));
  return sha384(Buffer.concat([Buffer.alloc(48), content])).toString('hex');
}) as [string, string];

function sha384(bytes: Uint8Array): Buffer {
  return createHash('sha384').update(bytes).digest();
}

/** A text without control characters: commands print it, and the file may come from anyone. */
const plain = v.pipe(v.string(), v.regex(/^[\w.-]{1,100}$/));
const Measurements = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    application: plain,
    commit: v.nullable(plain),
    unchanged_tree: v.nullable(v.boolean()),
    channel: plain,
    folder: v.optional(v.pipe(v.string(), v.regex(/^[\w./-]{0,100}$/))),
    framework_version: v.optional(v.pipe(plain, v.maxLength(50))),
    node_version: v.optional(plain),
    secrets: v.optional(v.array(v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9_]{0,63}$/)))),
    registers: v.object({ pcr0: v.string(), pcr1: v.string(), pcr2: v.string() }),
  }),
);

/**
 * Returns the image of the PCR file. Adds a note that names the image's sources, as its build recorded them.
 *
 * @throws UnreadableFileError, AttestationError; SuiCommandError: DEVELOPMENT_TRUST
 */
export async function readImage(chain: Chain, pcrs: string): Promise<Image> {
  return (await readBuild(chain, pcrs)).image;
}

/** An image, and its source if `--source-url` or `--release` was given. */
export interface ImageToAllow {
  readonly image: Image;
  readonly source: Source | undefined;
  /** Signer of the release, in the form of the deployment file; undefined without `--release`. */
  readonly signer: SignerRecord | undefined;
  readonly secrets: SecretNames;
}

/**
 * Names of the secrets that an image needs, as its build recorded them, or the reason why they are unknown.
 */
type SecretNames = readonly string[] | string;

/**
 * Refuses an image for an open config, unless the record of its build says that it needs no secrets:
 * strangers run the image too.
 *
 * @throws SuiCommandError: OPEN_SECRETS, SECRETS_UNKNOWN
 */
export function checkNeedsNoSecrets({ secrets }: ImageToAllow): void {
  if (typeof secrets === 'string') {
    throw new SuiCommandError(
      'SECRETS_UNKNOWN',
      `an open config is for an image that needs no secrets, but ${secrets}: build the image, or copy the measurements file of its build to that path. Nothing was sent`,
    );
  }
  if (secrets.length > 0) {
    throw new SuiCommandError(
      'OPEN_SECRETS',
      `the image needs the secrets ${secrets.join(', ')}, and anyone may run the image of an open config: use a config that is not open, or remove the secrets from app.yaml. Nothing was sent`,
    );
  }
}

/**
 * Returns the image of the PCR file or of the release, for a config that will allow it. On a real network,
 * the image must belong to a tagged release, or `--experimental` must be given.
 *
 * @throws as `readImage`; UsageError; SuiCommandError: EXPERIMENTAL_IMAGE, SOURCE_UNKNOWN
 */
export async function imageToAllow(
  chain: Chain,
  {
    pcrs,
    experimental,
    'source-url': url,
    ...releaseOptions
  }: OptionValues<
    typeof PCRS_OPTION & typeof EXPERIMENTAL_FLAG & typeof SOURCE_OPTION & typeof RELEASE_OPTIONS
  >,
): Promise<ImageToAllow> {
  const vouched = await readRelease(releaseOptions);
  if (vouched !== undefined) {
    if (url !== undefined) throw new UsageError('a release names its source: leave --source-url out');
    if (pcrs !== PCRS_OPTION.pcrs.default) throw new UsageError('give either --pcrs or --release');
    return await releasedImage(chain, vouched, releaseOptions.release ?? '');
  }
  const { image, doubt, origin, secrets } = await readBuild(chain, pcrs);
  if (doubt !== null && chain.isOnRealNetwork && !experimental) {
    throw new SuiCommandError(
      'EXPERIMENTAL_IMAGE',
      `${pcrs} ${doubt}, and ${chain.description} is a real network: build a tagged release with CHANNEL=stable, or give --experimental. Nothing was sent`,
    );
  }
  if (url === undefined) return { image, source: undefined, signer: undefined, secrets };
  if (typeof origin === 'string') {
    throw new SuiCommandError(
      'SOURCE_UNKNOWN',
      `--source-url names the repository of ${pcrs}, but ${origin}: leave out --source-url, or build the image from a commit. Nothing was sent`,
    );
  }
  return { image, source: { url, ...origin }, signer: undefined, secrets };
}

/** @param file `release.json` */
async function releasedImage(
  chain: Chain,
  { release, signer }: VouchedRelease,
  file: string,
): Promise<ImageToAllow> {
  const { image, source: signedSource, version, subjects } = release;
  // Every release has a measurements.json.
  const source = { ...signedSource, measurementsSha256: subjects.get('measurements.json') ?? '' };
  checkNotDevelopment(chain, image, file);
  chain.notes.push(
    `The signer of the release ${version} states that its image was built from the commit ${source.commit}.`,
  );
  const secrets = await readReleasedSecrets(
    join(dirname(file), 'measurements.json'),
    source.measurementsSha256,
  );
  return { image, source, signer, secrets };
}

async function readReleasedSecrets(path: string, digest: string): Promise<SecretNames> {
  const text = await readFileArgument(path).then(String, () => null);
  if (text === null) return `there is no ${path}`;
  if (createHash('sha256').update(text).digest('hex') !== digest)
    return `${path} is not the file of the release`;
  const parsed = v.safeParse(Measurements, text);
  return parsed.success ? namesIn(path, parsed.output) : `${path} can't be read`;
}

function namesIn(path: string, { secrets }: v.InferOutput<typeof Measurements>): SecretNames {
  return secrets ?? `${path} is of an older build, which did not record the secrets`;
}

/**
 * Refuses a release whose signer is not the one that the deployment file has for the config.
 *
 * @throws SuiCommandError: RELEASE_SIGNER
 */
export function checkSameSigner(
  deployments: Deployments | undefined,
  configId: string | undefined,
  signer: SignerRecord | undefined,
): void {
  const recordedSigner = [...(deployments?.read()?.applications.values() ?? [])].find(
    ({ config }) => config !== undefined && config.id === configId,
  )?.signer;
  if (recordedSigner === undefined || signer === undefined || isDeepStrictEqual(recordedSigner, signer))
    return;
  throw new SuiCommandError(
    'RELEASE_SIGNER',
    `${deployments?.path} has another signer of releases for this config: name that signer by --signer, or change the file if the author has changed the signer. Nothing was sent`,
  );
}

/** An image, and what the record of its build says about it. */
interface Build {
  readonly image: Image;
  /** Reason to doubt that a tagged release has the image: a predicate whose subject is the PCR file. */
  readonly doubt: string | null;
  /** Source of the image, or the reason why it is unknown. */
  readonly origin: Omit<Source, 'url'> | string;
  readonly secrets: SecretNames;
}

async function readBuild(chain: Chain, path: string): Promise<Build> {
  const image = parsePcrs((await readFileArgument(path, PCRS_HINT)).toString());
  checkNotDevelopment(chain, image, path);
  const { note, ...build } = await describeImage(path, image);
  if (note !== null) chain.notes.push(note);
  else if (chain.isOnRealNetwork) {
    chain.notes.push(
      `WARNING: the build of the registers in ${path} is unknown: the measurements file beside it is missing.`,
    );
  }
  return { image, ...build };
}

/**
 * On a real network, refuses registers that anyone can emulate.
 *
 * @param path the file that has them
 * @throws SuiCommandError: DEVELOPMENT_TRUST
 */
export function checkNotDevelopment(chain: Chain, image: Image, path: string): void {
  if (chain.isOnRealNetwork && (image.pcr0 === pcr0 || image.pcr1 === pcr1)) {
    throw new SuiCommandError(
      'DEVELOPMENT_TRUST',
      `${path} has the registers of ${DEV_EMULATED}, which anyone can emulate, and ${chain.description} is a real network: build the image, and use out/nitro.pcrs. Nothing was sent`,
    );
  }
}

/**
 * Describes an image by the file beside its PCR file: `measurements.json` beside `nitro.pcrs`, and
 * `x.measurements.json` beside any other `x.pcrs`.
 */
async function describeImage(
  path: string,
  image: Image,
): Promise<{ note: string | null } & Omit<Build, 'image'>> {
  const name = basename(path, '.pcrs');
  const recordPath = join(
    dirname(path),
    name === 'nitro' ? 'measurements.json' : `${name}.measurements.json`,
  );
  const text = await readFileArgument(recordPath).then(String, () => null);
  // Registers that were copied from a release have no such file beside them.
  if (text === null) {
    const origin = `there is no ${basename(recordPath)} beside it`;
    return { note: null, doubt: null, origin, secrets: `there is no ${recordPath}` };
  }
  const parsed = v.safeParse(Measurements, text);
  if (!parsed.success) {
    return {
      note: `WARNING: ${recordPath} is not a file that a build wrote, so the build of the registers in ${path} is unknown.`,
      doubt: `is of an unknown build, since ${recordPath} can't be read`,
      origin: `${recordPath} can't be read`,
      secrets: `${recordPath} can't be read`,
    };
  }
  const { application, commit, unchanged_tree, channel, registers } = parsed.output;
  if (!isSameImage(registers, image)) {
    return {
      note: `WARNING: ${recordPath} and ${path} have different registers: they come from different builds.`,
      doubt: `is of an unknown build, since ${recordPath} has other registers`,
      origin: `${recordPath} has other registers`,
      secrets: `${recordPath} has other registers`,
    };
  }
  const tree = unchanged_tree === false ? ', with changes that were not committed' : '';
  const note = `The image in ${path}: ${application}, built from ${commit ?? 'no git repository'}${tree} (${channel}).`;
  const origin = describeOrigin(recordPath, text, parsed.output);
  const secrets = namesIn(recordPath, parsed.output);
  if (channel === 'stable' && unchanged_tree === true) return { note, doubt: null, origin, secrets };
  return { note, doubt: `is of an experimental image${tree}`, origin, secrets };
}

function describeOrigin(
  path: string,
  text: string,
  { commit, unchanged_tree, folder, framework_version, node_version }: v.InferOutput<typeof Measurements>,
): Build['origin'] {
  if (commit === null || !/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(commit)) return `${path} names no commit`;
  if (unchanged_tree !== true) return 'it was built with changes that were not committed';
  if (node_version !== undefined)
    return `it was built with Node ${node_version}, which its commit does not name`;
  if (folder === undefined || framework_version === undefined)
    return `${path} is of an older build, which did not record the folder and the version`;
  const measurementsSha256 = createHash('sha256').update(text).digest('hex');
  return { commit, folder, frameworkVersion: framework_version, measurementsSha256 };
}

export function isSameImage(first: Image, second: Image): boolean {
  return REGISTERS.every((register) => first[register] === second[register]);
}
