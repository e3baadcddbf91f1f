/**
 * Records what an emulated enclave runs, as a build records an image, so that a config can name its source.
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
 * @param out ends in a slash
 * @param pcrsName the file of the registers in it, beside which the record is
 * @param pcrs its content
 */
export function writeDevelopmentRecord(
  { root, isClone }: Project,
  { name, folder }: ApplicationFolder,
  out: URL,
  pcrsName: string,
  pcrs: string,
): void {
  // Without a lock file, an audit has nothing to compare.
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
