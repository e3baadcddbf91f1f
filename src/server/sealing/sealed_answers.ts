/** Seals the answers to sealed requests, and converts the errors about sealed messages. */
import type { ServerResponse } from 'node:http';
import { SealingError } from 'sui-enclave/sealing/errors';
import { SEALED_TYPE } from 'sui-enclave/sealing/request';
import { type AnswerSecret, sealAnswer } from 'sui-enclave/sealing/response';
import { wrapAnswers } from 'sui-enclave-service/http/respond';
import { EnclaveServerError } from '../enclave_errors.ts';
import { sealAesGcm } from './sealing_key.ts';

/**
 * Makes every further answer to this request sealed, errors too.
 *
 * @param padding see `SEALED_PADDING_BYTES`
 */
export function sealAnswers(response: ServerResponse, secret: AnswerSecret, padding: number): void {
  wrapAnswers(response, {
    mediaType: SEALED_TYPE,
    wrap: (answer) => sealAnswer(secret, answer, padding, sealAesGcm),
  });
}

/**
 * Throws the error that callers see in place of an error about a sealed message.
 *
 * @throws EnclaveServerError. Throws any other error unchanged
 */
export function throwAsServerError(error: unknown): never {
  if (!(error instanceof SealingError)) throw error;
  const { code, message } = error;
  if (code === 'SEALING_USER_DATA' || code === 'SEALING_UNSUPPORTED') throw error;
  throw new EnclaveServerError(code, message);
}
