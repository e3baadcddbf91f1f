/** Sends sealed requests to an enclave, and returns its sealed answers. */
import { fetchBytes, serverCode } from '../fetch.ts';
import { SealingError } from '../sealing/errors.ts';
import { SEALED_PATH, SEALED_TYPE, type SealedCall, sealRequest } from '../sealing/request.ts';
import { ClientError, UnauthenticatedError } from './errors.ts';
import { type Http, MAX_ENCLAVE_ANSWER_SIZE, refusedError, throwNoAnswer } from './http.ts';

/** Media type of a sealed answer, with any parameters (RFC 9110, section 8.3.1). */
const TYPE = /^application\/vnd\.sui-enclave\.sealed[ \t]*(;|$)/i;

/**
 * Seals a request, sends it, and opens the answer.
 *
 * @param sealingKey the attested enclave's key, 32 bytes
 * @param padding the sealed content is padded to a multiple of this number of bytes
 * @returns the JSON body of the answer that the enclave sealed
 * @throws ClientError: EnclaveRefusedError only if the enclave sealed its refusal
 */
export async function requestSealed(
  http: Http,
  sealingKey: Uint8Array,
  call: SealedCall,
  padding: number,
): Promise<unknown> {
  const [name = call.path] = call.path.slice(1).split('?');
  const { message, openAnswer } = await sealRequest(sealingKey, call, { padding }).catch(asClientError);
  const url = new URL(SEALED_PATH, http.base);
  const init = {
    method: 'POST',
    headers: { 'content-type': SEALED_TYPE },
    body: message as Uint8Array<ArrayBuffer>,
  };
  const bounds = { ...http, maxSize: MAX_ENCLAVE_ANSWER_SIZE };
  const received = await fetchBytes(url, init, bounds).catch((error) => throwNoAnswer(http, name, error));
  if (received.status !== 200 || !TYPE.test(received.type ?? '')) {
    const text = new TextDecoder().decode(received.bytes);
    throw new UnauthenticatedError(received.status, serverCode(text));
  }
  const { status, body, retryAfterSeconds } = await openAnswer(received.bytes).catch(asClientError);
  if (status >= 200 && status <= 299) return body;
  throw refusedError(name, { status, text: JSON.stringify(body), retryAfterSeconds });
}

function asClientError(error: unknown): never {
  if (!(error instanceof SealingError)) throw error;
  if (error.code === 'SEALING_UNSUPPORTED') {
    throw new ClientError('CLIENT_SEALING_UNSUPPORTED', error.message, { cause: error });
  }
  const message = `the answer is not one that the enclave sealed for this request: ${error.message}`;
  throw new ClientError('CLIENT_SEALED_ANSWER', message, { cause: error });
}
