/** Enclave images: writes one, tells what is in one, measures one. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ConfigError } from '../../src/errors.ts';
import { runMain, Usage } from '../command.ts';
import { formatPcrs, measureImage } from './eif/measure.ts';
import { type Eif, readEif } from './eif/read.ts';
import { writeEif } from './eif/write.ts';

const USAGE = `usage: npm run eif -- build --kernel FILE --cmdline FILE --ramdisk FILE --ramdisk FILE... --name NAME
         --version VERSION --kernel-version VERSION --out FILE
       npm run eif -- describe FILE
       npm run eif -- pcrs FILE`;

function main(): void {
  const [command, ...rest] = process.argv.slice(2);
  if (command === 'build') build(rest);
  else if (command === 'describe') console.log(JSON.stringify(describe(readEif(only(rest))), null, 2));
  else if (command === 'pcrs') process.stdout.write(formatPcrs(measureImage(readEif(only(rest)))));
  else if (command === '--help') console.log(USAGE);
  else throw new Usage(USAGE);
}

function only(args: readonly string[]): Buffer {
  const [file, ...more] = args;
  if (file === undefined || more.length > 0) throw new Usage(USAGE);
  return read(file);
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function build(args: readonly string[]): void {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      kernel: text,
      cmdline: text,
      ramdisk: { type: 'string', multiple: true, default: [] },
      name: text,
      version: text,
      'kernel-version': text,
      out: text,
    },
  });
  const need = (name: 'kernel' | 'cmdline' | 'name' | 'version' | 'kernel-version' | 'out'): string => {
    const value = values[name];
    if (!value) throw new Usage(`--${name} is missing\n${USAGE}`);
    return value;
  };
  const parts = {
    kernel: read(need('kernel')),
    cmdline: read(need('cmdline')).toString('latin1').replace(/\n$/, ''),
    ramdisks: values.ramdisk.map(read),
  };
  const eif = writeEif(parts, {
    ImageName: need('name'),
    ImageVersion: need('version'),
    BuildMetadata: {
      // A real time would make two builds of the same source differ.
      BuildTime: '1970-01-01T00:00:00+00:00',
      BuildTool: 'sui-enclave',
      BuildToolVersion: need('version'),
      OperatingSystem: 'Linux',
      KernelVersion: need('kernel-version'),
    },
    DockerInfo: null,
    CustomMetadata: null,
  });
  writeFileSync(need('out'), eif);
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
    registers: measureImage(eif),
  };
}

await runMain(main);
