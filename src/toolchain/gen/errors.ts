/** Errors of `sui-enclave gen`, with one `code` for each cause. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a GenError, and what it means. */
export const GEN_CODES = {
  GEN_NOTHING: 'The application signs nothing.',
  GEN_TYPE: 'A field has a type that Move or the client does not have.',
  GEN_NAME: 'A name is a keyword of Move, is used by the generated code, or is not a valid name in Move.',
  GEN_CONFLICT: 'The generated code would have the same name twice.',
  GEN_PACKAGE: 'The folder of the Move package has no Move.toml that names it.',
  GEN_FOREIGN_FILE: 'A file at the path of a generated file was not written by sui-enclave gen.',
  GEN_EDITED: 'A generated file was edited since it was written.',
  GEN_OUTDATED: 'A generated file is out of date.',
} as const;

export class GenError extends CodedError<keyof typeof GEN_CODES> {}
