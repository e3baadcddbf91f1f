/** Computes the registers that an enclave with this image attests, as Nitro measures the image. */
import { createHash } from 'node:crypto';
import type { Image } from 'sui-enclave/attestation/image';
import { checkParts, type ImageParts } from './format.ts';

/** Computes PCR0 to PCR2. @throws ImageError: EIF_INVALID, for parts that no image can have */
export function measureImage(parts: ImageParts): Image {
  checkParts(parts);
  const cmdline = Buffer.from(parts.cmdline);
  const [boot, ...application] = parts.ramdisks as [Uint8Array, ...Uint8Array[]];
  return {
    pcr0: computeRegister([parts.kernel, cmdline, boot, ...application]),
    pcr1: computeRegister([parts.kernel, cmdline, boot]),
    pcr2: computeRegister(application),
  };
}

/**
 * Returns the value of a register that was zero and was extended once, by the hash of the concatenated
 * contents.
 */
function computeRegister(contents: readonly Uint8Array[]): string {
  const content = createHash('sha384');
  for (const part of contents) content.update(part);
  return createHash('sha384').update(Buffer.alloc(48)).update(content.digest()).digest('hex');
}
