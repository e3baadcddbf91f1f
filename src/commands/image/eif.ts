/** Enclave images: builds one, describes one, measures one. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';
import { command, type Result, runAsProcess, UsageError } from '../command.ts';
import type { Eif } from './eif/read.ts';

const USAGE = `usage: npm run eif -- build --kernel FILE --cmdline FILE --ramdisk FILE --ramdisk FILE... --name NAME
         --version VERSION --kernel-version VERSION --out FILE
       npm run eif -- describe FILE
       npm run eif -- pcrs FILE`;

const BUILD_OPTIONS = ['kernel', 'cmdline', 'name', 'version', 'kernel-version', 'out'] as const;
type BuildOption = (typeof BUILD_OPTIONS)[number];
type Values = { readonly [Name in BuildOption]?: string | undefined } & {
  readonly ramdisk?: readonly string[] | undefined;
};

const text = { type: 'string' } as const;

export const main = command({
  usage: USAGE,
  options: {
    kernel: text,
    cmdline: text,
    ramdisk: { type: 'string', multiple: true },
    name: text,
    version: text,
    'kernel-version': text,
    out: text,
  },
  positionals: ['action', 'file'],
  optional: 1,
  async run({ values, positionals: [action, file] }) {
    if (action === 'build') {
      if (file !== undefined) throw new UsageError(`unexpected argument: ${file}`, USAGE);
      return await build(values);
    }
    if (action !== 'describe' && action !== 'pcrs') {
      throw new UsageError(`unexpected argument: ${action}`, USAGE);
    }
    const [option] = Object.keys(values);
    if (option !== undefined) throw new UsageError(`--${option} belongs to build`, USAGE);
    if (file === undefined) throw new UsageError('missing: <file>', USAGE);
    const { readEif } = await import('./eif/read.ts');
    const { formatPcrs, measureImage } = await import('./eif/measure.ts');
    const eif = readEif(read(file));
    const registers = measureImage(eif);
    if (action === 'pcrs') return { json: registers, text: formatPcrs(registers).trimEnd() };
    const described = { ...describe(eif), registers };
    return { json: described, text: JSON.stringify(described, null, 2) };
  },
});

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

async function build(values: Values): Promise<Result> {
  const missing = BUILD_OPTIONS.find((name) => !values[name]);
  if (missing !== undefined) throw new UsageError(`--${missing} is missing`, USAGE);
  const given = values as Readonly<Record<BuildOption, string>>;
  const { writeEif } = await import('./eif/write.ts');
  const parts = {
    kernel: read(given.kernel),
    cmdline: read(given.cmdline).toString('latin1').replace(/\n$/, ''),
    ramdisks: (values.ramdisk ?? []).map(read),
  };
  const eif = writeEif(parts, {
    ImageName: given.name,
    ImageVersion: given.version,
    BuildMetadata: {
      // A real time would make two builds of the same source differ.
      BuildTime: '1970-01-01T00:00:00+00:00',
      BuildTool: 'sui-enclave',
      BuildToolVersion: given.version,
      OperatingSystem: 'Linux',
      KernelVersion: given['kernel-version'],
    },
    DockerInfo: null,
    CustomMetadata: null,
  });
  writeFileSync(given.out, eif);
  return { json: { file: given.out, bytes: eif.length } };
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
