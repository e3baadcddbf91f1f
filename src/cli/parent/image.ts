import { existsSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Image } from 'sui-enclave/attestation';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { type Config, readServerConfig } from 'sui-enclave-server/config';
import { type Manifest, parseManifest, parseManifestJson } from 'sui-enclave-server/manifest';
import { UsageError } from '../command.ts';
import { type CpioEntry, readCpio } from '../image/cpio.ts';
import { MAX_RAMDISK_BYTES } from '../image/eif/format.ts';
import { measureImage } from '../image/eif/measure.ts';
import { type Eif, readEif } from '../image/eif/read.ts';
import { parseEnvironment } from '../image/settings.ts';
import { readRegularFile } from '../read_file.ts';

export interface EnclaveImage {
  readonly bytes: number;
  readonly eif: Eif;
  /** The image's registers in hexadecimal. nitro-cli prints PCR0. */
  readonly registers: Image;
}

/** Reads and measures an image. @throws UsageError, if the file can't be read; ImageError: EIF_INVALID */
export function loadImage(path: string): EnclaveImage {
  let bytes: Buffer;
  try {
    bytes = readRegularFile(path);
  } catch (error) {
    throw new UsageError(
      `${path} can't be read (${(error as NodeJS.ErrnoException).code}): build it with sui-enclave build, or copy it here`,
    );
  }
  const eif = readEif(bytes);
  const { pcr0, pcr1, pcr2 } = measureImage(eif);
  return { bytes: bytes.length, eif, registers: { pcr0, pcr1, pcr2 } };
}

/**
 * Compares the image's registers with those of the file beside it, if there is one.
 *
 * @throws UsageError, if they differ
 */
export function requireRegisters(eif: string, registers: Image): void {
  const pcrs = eif.replace(/\.eif$/, '.pcrs');
  if (existsSync(pcrs) && readRegularFile(pcrs).toString().trim() !== formatPcrs(registers).trim()) {
    throw new UsageError(`${pcrs} does not have the registers of ${eif}: build both again`);
  }
}

/**
 * Returns the application's endpoints and secrets from the measured file, which in older images is app.yaml.
 *
 * @throws UsageError
 */
export function readManifest(eif: Eif): Manifest {
  const { path, text } = readRamdiskFile(eif, 'app/app.json', 'app/app.yaml');
  return path === 'app/app.json' ? parseManifestJson(text) : parseManifest(text);
}

/** Returns the settings of the image's server from the measured file. @throws UsageError */
export function readConfig(eif: Eif): Config {
  return readServerConfig(parseEnvironment(readRamdiskFile(eif, 'app/enclave.conf').text));
}

/**
 * Returns the file of the application's ramdisk that has one of these paths.
 *
 * @throws UsageError, if there is not exactly one
 */
function readRamdiskFile(
  { ramdisks }: Eif,
  ...paths: string[]
): { readonly path: string; readonly text: string } {
  let files: CpioEntry[] = [];
  try {
    const archive = gunzipSync(ramdisks[1] ?? Buffer.alloc(0), { maxOutputLength: MAX_RAMDISK_BYTES });
    files = readCpio(archive).filter(({ path }) => paths.includes(path));
  } catch {
    // This is not an image of this project, which is reported below.
  }
  const [file] = files;
  if (file === undefined || files.length > 1) {
    const fault = file === undefined ? `no /${paths[0]}` : `${files.length} of /${paths.join(', /')}`;
    throw new UsageError(`this image was not built by this project: it has ${fault}`);
  }
  return { path: file.path, text: Buffer.from(file.data).toString('utf8') };
}
