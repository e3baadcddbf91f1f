/** Errors of the tools for the operator of the proving service, with one `code` for each cause. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a ProverToolError, and what it means. */
export const PROVER_TOOL_CODES = {
  ARCHIVE_INVALID: 'The file is not an OCI archive, or a part of it is missing or changed.',
  ARCHIVE_UNSAFE: 'The archive has a path outside of its folder, or a link in place of a file or a folder.',
  ARCHIVE_TOO_LARGE: 'The archive, or what it unpacks to, is larger than any image with a witness generator.',
  GENERATOR_MISSING: 'The image has no witness generator.',
  FOLDER_EXISTS: 'The folder to write exists already.',
} as const;

export type ProverToolCode = keyof typeof PROVER_TOOL_CODES;

export class ProverToolError extends CodedError<ProverToolCode> {}
