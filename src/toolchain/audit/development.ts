/**
 * Audits configs of a development network that allow an emulated enclave. There is no image to build, so such
 * an audit takes seconds. It compares everything else, and never reports agreement.
 */
import { createHash } from 'node:crypto';
import { toHex } from '@mysten/sui/utils';
import type { Image } from 'sui-enclave/attestation';
import type { Source } from 'sui-enclave/sui/structs';
import { isSameImage } from 'sui-enclave-cli/sui/image_to_allow';
import { developmentRegisters } from 'sui-enclave-testing/emulated_nsm';
import { createDevelopmentMeasurements } from '../image/measurements.ts';
import { AuditError } from './errors.ts';
import type { AuditedSource } from './source.ts';

/** Number of images of an application that can be emulated. */
const IMAGES = 9;

function emulatedImage(application: string, image: number): Image {
  const [pcr0 = '', pcr1 = '', pcr2 = ''] = developmentRegisters(application, image).map(toHex);
  return { pcr0, pcr1, pcr2 };
}

/** Returns whether an emulated enclave has these registers, which no image can have. */
export function isDevelopmentImage({ pcr0, pcr1 }: Image): boolean {
  const emulated = emulatedImage('', 1);
  return pcr0 === emulated.pcr0 && pcr1 === emulated.pcr1;
}

/**
 * Compares the registers and the record that `sui-enclave dev` writes for the commit with those on chain.
 *
 * @throws AuditError: REGISTERS_DIFFER, MEASUREMENTS_DIFFER; DEVELOPMENT_IMAGE, if nothing differs
 */
export function compareDevelopment(source: AuditedSource, image: Image, namedSource: Source): never {
  const { commit, folder, measurementsSha256 } = namedSource;
  const emulatedImages = Array.from({ length: IMAGES }, (_, index) => emulatedImage(source.name, index + 1));
  if (!emulatedImages.some((emulated) => isSameImage(emulated, image))) {
    throw new AuditError(
      'REGISTERS_DIFFER',
      `the registers on chain are not those of an emulated enclave of ${source.name}, but of another application`,
    );
  }
  const record = createDevelopmentMeasurements(source, image, { folder, commit, isUnchanged: true });
  const text = `${JSON.stringify(record, null, 2)}\n`;
  if (createHash('sha256').update(text).digest('hex') !== measurementsSha256) {
    throw new AuditError(
      'MEASUREMENTS_DIFFER',
      `the development image of ${commit} has a record that differs from the one that the config names (SHA-256 ${measurementsSha256})`,
    );
  }
  throw new AuditError(
    'DEVELOPMENT_IMAGE',
    'a DEVELOPMENT image: the registers on chain are those of an emulated enclave, which runs no image and proves nothing',
  );
}
