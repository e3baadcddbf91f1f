/** The errors that stop the build of an image: one `code` for each cause. The message says what to do. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of an ImageError, and what it means. */
export const IMAGE_CODES = {
  LOCK_INVALID: 'A lock file differs from what `npx --offline sui-enclave update_lock` writes.',
  NO_BUILDER: 'No program that builds containers is installed, or it has no way to build without a network.',
  NO_MIRROR: "No mirror of Debian's packages is known, or its address is invalid.",
  INPUTS_GONE: 'No reachable source has these locked packages any more: the message lists them.',
  PACKAGE_CHANGED: "A file's content differs from the lock.",
  ARCHIVE_INVALID: "A package or archive can't be read, or contains what an image must not contain.",
  COMMAND_FAILED: 'A program that the build runs ended with an error.',
  EIF_INVALID: "A file isn't a complete enclave image of two ramdisks or more, or the parts can't make one.",
} as const;

export type ImageCode = keyof typeof IMAGE_CODES;

/** An error that the build of an image, or the reader of images, throws on purpose. */
export class ImageError extends CodedError<ImageCode> {}
