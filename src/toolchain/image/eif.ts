/** `sui-enclave eif`: builds, describes or measures an enclave image. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { ConfigError } from 'sui-enclave/errors';
import { command, type Result, runAsProcess, UsageError } from 'sui-enclave-cli/command';
import { measureImage } from 'sui-enclave-cli/image/eif/measure';
import { type Eif, readEif } from 'sui-enclave-cli/image/eif/read';
import { readRegularFile } from 'sui-enclave-cli/read_file';
import { path, text } from 'sui-enclave-cli/values';
import * as v from 'valibot';
import { writeEif } from './eif/write.ts';

const BUILD_OPTIONS = ['kernel', 'cmdline', 'name', 'version', 'kernel-version', 'out'] as const;
type BuildOption = (typeof BUILD_OPTIONS)[number];
type BuildOptions = { readonly [Name in BuildOption]: string | undefined } & {
  readonly ramdisk: readonly string[];
};

export const main = command({
  name: 'eif',
  purpose: 'Builds or describes an enclave image, or prints its registers.',
  example: 'describe out/nitro.eif',
  arguments: {
    action: { schema: v.picklist(['build', 'describe', 'pcrs'], 'must be build, describe or pcrs') },
    file: { schema: path, optional: true },
  },
  forms: [
    'build --kernel <file> --cmdline <file> --ramdisk <file> --ramdisk <file>... --name <name>\n         --version <version> --kernel-version <version> --out <file>',
    'describe <file>',
    'pcrs <file>',
  ],
  options: {
    kernel: { value: '<file>', help: 'build: the kernel', schema: path },
    cmdline: { value: '<file>', help: 'build: the command line of the kernel', schema: path },
    ramdisk: {
      value: '<file>',
      help: 'build: a ramdisk; the first must be the boot ramdisk',
      schema: path,
      repeated: true,
    },
    name: { value: '<name>', help: 'build: the name in the metadata', schema: text },
    version: { value: '<version>', help: 'build: the version in the metadata', schema: text },
    'kernel-version': {
      value: '<version>',
      help: "build: the kernel's version in the metadata",
      schema: text,
    },
    out: { value: '<file>', help: 'build: the file to write the image to', schema: path },
  },
  run({ args: { action, file }, options }) {
    if (action === 'build') {
      if (file !== undefined) throw new UsageError(`unexpected argument: ${file}`);
      return build(options);
    }
    const option =
      BUILD_OPTIONS.find((name) => options[name] !== undefined) ??
      (options.ramdisk.length > 0 ? 'ramdisk' : undefined);
    if (option !== undefined) throw new UsageError(`--${option} is an option of build only`);
    if (file === undefined) throw new UsageError('missing: <file>');
    const eif = readEif(read(file));
    const registers = measureImage(eif);
    if (action === 'pcrs') return { json: registers, text: formatPcrs(registers).trimEnd() };
    const description = { ...describe(eif), registers };
    return { json: description, text: JSON.stringify(description, null, 2) };
  },
});

function read(file: string): Buffer {
  try {
    return readRegularFile(file);
  } catch (error) {
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function build(options: BuildOptions): Result {
  const requireOption = (name: BuildOption) => {
    const value = options[name];
    if (!value) throw new UsageError(`--${name} is required`);
    return value;
  };
  const kernel = requireOption('kernel');
  const cmdline = requireOption('cmdline');
  const name = requireOption('name');
  const version = requireOption('version');
  const kernelVersion = requireOption('kernel-version');
  const out = requireOption('out');
  const parts = {
    kernel: read(kernel),
    cmdline: read(cmdline).toString('latin1').replace(/\n$/, ''),
    ramdisks: options.ramdisk.map(read),
  };
  const eif = writeEif(parts, {
    ImageName: name,
    ImageVersion: version,
    BuildMetadata: {
      // With a real time, two builds of the same source would differ.
      BuildTime: '1970-01-01T00:00:00+00:00',
      BuildTool: 'sui-enclave',
      BuildToolVersion: version,
      OperatingSystem: 'Linux',
      KernelVersion: kernelVersion,
    },
    DockerInfo: null,
    CustomMetadata: null,
  });
  writeFileSync(out, eif);
  return { json: { file: out, bytes: eif.length } };
}

function describe(eif: Eif): object {
  const section = (bytes: Uint8Array) => ({
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  });
  return {
    architecture: eif.architecture,
    default_memory: Number(eif.defaultMemory),
    default_cpus: Number(eif.defaultCpus),
    signed: eif.signature !== undefined,
    metadata: eif.metadata,
    cmdline: eif.cmdline,
    kernel: section(eif.kernel),
    ramdisks: eif.ramdisks.map(section),
  };
}

if (import.meta.main) await runAsProcess(main);
