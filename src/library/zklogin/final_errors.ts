/** Tells the errors that end a login from those after which another attempt may succeed. */
import { ServiceRefusedError, type ZkLoginCode, ZkLoginError } from './errors.ts';

const FINAL_CODES: readonly ZkLoginCode[] = [
  'ZKLOGIN_OPTION',
  'ZKLOGIN_STORAGE',
  'ZKLOGIN_CLAIM',
  'ZKLOGIN_PROFILE',
  'ZKLOGIN_PROOF',
];

/**
 * Returns whether another attempt with the same login would also fail. The errors of a page's own functions
 * are not known, so they do not count as final.
 */
export function isFinal(error: unknown): boolean {
  if (error instanceof ServiceRefusedError) {
    return error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;
  }
  return error instanceof ZkLoginError && FINAL_CODES.includes(error.code);
}
