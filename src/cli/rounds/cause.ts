/** Code and reason of a fault, for a report. */
import { isEnclaveError } from 'sui-enclave/errors';

/** Finds code and reason of a fault, without anything that may be secret. */
export function findCause(error: unknown): { readonly code: string; readonly reason: string } {
  // The message of any other error may contain anything.
  if (!isEnclaveError(error)) return { code: 'INTERNAL', reason: 'an internal error' };
  return { code: error.code, reason: error.message };
}
