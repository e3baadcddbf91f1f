/** Errors of sealed messages: one stable `code` for each cause. */
import { CodedError } from '../errors.ts';

/** Every code of a SealingError, and what it means. The server answers with the first five. */
export const SEALING_CODES = {
  SEALED_MALFORMED: 'The bytes are too short, or of an unknown version.',
  SEALED_KEY_UNKNOWN:
    'The message is sealed to another key: the enclave has restarted, or another enclave received it.',
  SEALED_ALTERED:
    'The bytes were changed, truncated, put together from several messages, or sealed in another way.',
  SEALED_CONTENT: 'The sealed content is not a request, an answer or a set of secrets.',
  SEALED_TOO_LARGE: 'The secrets are larger than the format allows.',
  SEALING_USER_DATA: 'The user data is not the structure UserData in BCS, or one of its values is invalid.',
  SEALING_UNSUPPORTED: 'The platform lacks X25519, AES-GCM or HMAC in Web Crypto.',
} as const;

export type SealingCode = keyof typeof SEALING_CODES;

export class SealingError extends CodedError<SealingCode> {}
