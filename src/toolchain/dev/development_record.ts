/**
 * Records the sources of an emulated enclave, as a build records those of an image, so that a config can name
 * them.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parsePcrs } from 'sui-enclave/attestation';
import { replaceFile } from 'sui-enclave-service/replace_file';
import { makeDevelopmentMeasurements } from '../image/measurements.ts';
import { FRAMEWORK } from '../places.ts';
import type { ApplicationFolder, Project } from '../project.ts';

/**
 * @param out folder that ends in a slash
 * @param pcrsName name of the file with the registers in this folder; the record is written beside this file
 * @param pcrs content of the file with the registers
 */
export function writeDevelopmentRecord(
  { root, isClone }: Project,
  { name, folder }: ApplicationFolder,
  out: URL,
  pcrsName: string,
  pcrs: string,
): void {
  // Without a lock file, an audit would have nothing to compare.
  if (!isClone && !existsSync(join(folder, 'package-lock.json'))) return;
  const source = {
    framework: FRAMEWORK,
    root,
    app: folder,
    appDir: join('src/apps', name),
    isApart: !isClone,
    name,
  };
  const record = makeDevelopmentMeasurements(source, parsePcrs(pcrs));
  const file = fileURLToPath(new URL(pcrsName.replace(/pcrs$/, 'measurements.json'), out));
  replaceFile(file, `${JSON.stringify(record, null, 2)}\n`);
}
