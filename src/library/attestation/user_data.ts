import { decodeUserData, type UserData } from '../sealing/user_data.ts';
import type { AttestationDocument } from './decode.ts';
import { AttestationError } from './errors.ts';

/**
 * Reads the `user_data` of a document: the key to which requests are sealed, and the application's name and
 * version. Verify the document first: its user data is as trustworthy as the document.
 *
 * Exported as `sui-enclave/attestation`.
 *
 * @throws AttestationError: USER_DATA_MISSING, USER_DATA_FORMAT
 */
export function readUserData({ userData }: Pick<AttestationDocument, 'userData'>): UserData {
  if (userData === null) {
    const message = 'the document holds no user data: the enclave runs an older version, or another program';
    throw new AttestationError('USER_DATA_MISSING', message);
  }
  try {
    return decodeUserData(userData);
  } catch (cause) {
    throw new AttestationError('USER_DATA_FORMAT', (cause as Error).message, { cause });
  }
}
