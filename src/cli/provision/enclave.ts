/** Finds the enclave that secrets are sealed for, delivers the secrets, and checks the receipt. */
import { type Image, readUserData, verifyAttestation } from 'sui-enclave/attestation';
import { fetchAttestation, getAttestedKey } from 'sui-enclave/client/attestation';
import { type Http, MAX_ENCLAVE_ANSWER_SIZE, serverMessage, throwNoAnswer } from 'sui-enclave/client/http';
import { fetchBytes, fetchText, serverCode } from 'sui-enclave/fetch';
import { SealingError } from 'sui-enclave/sealing/errors';
import { SEALED_TYPE } from 'sui-enclave/sealing/request';
import { type EnclaveState, SECRETS_PATH, type SealedMessage } from 'sui-enclave/sealing/secrets';
import { ProvisionError } from './errors.ts';

/** The requirements that an enclave must meet before anything is sealed for it. */
export interface Requirements {
  readonly images: readonly Image[];
  /** DER of the roots to trust instead of AWS's, for development. */
  readonly roots?: readonly Uint8Array[] | undefined;
  /** Whether to accept enclaves in debug mode, which can keep no secret. Default: false. */
  readonly allowDebug?: boolean;
}

/** The enclave to which secrets are sealed. */
export interface Recipient {
  readonly sealingKey: Uint8Array;
  readonly state: EnclaveState;
}

/** Attests an enclave that meets the requirements. @throws AttestationError, ClientError */
export async function attest(
  http: Http,
  { images, roots, allowDebug = false }: Requirements,
): Promise<Recipient> {
  const { document, nonce } = await fetchAttestation(http);
  const verified = await verifyAttestation(document, {
    now: Date.now(),
    policy: { images, nonce, allowDebug },
    ...(roots && { roots }),
  });
  const { sealingKey, application, version } = readUserData(verified.document);
  const register = (index: number) => verified.document.pcrs.get(index) ?? new Uint8Array();
  const registers = [register(0), register(1), register(2)] as const;
  return { sealingKey, state: { application, version, registers, signingKey: getAttestedKey(verified) } };
}

/**
 * Returns whether the enclave waits for its secrets. Anyone on the path can forge the answer, but this only
 * causes delay, since secrets are sealed only for an attested enclave.
 *
 * @throws ClientError, ProvisionError: SECRETS_NOT_TAKEN for an answer that the server of an enclave never
 *   gives
 */
export async function needsSecrets(http: Http): Promise<boolean> {
  const bounds = { ...http, maxSize: MAX_ENCLAVE_ANSWER_SIZE };
  const { status, text } = await fetchText(new URL('readyz', http.base), {}, bounds).catch((error) =>
    throwNoAnswer(http, 'readyz', error),
  );
  if (status === 200) return false;
  const code = serverCode(text);
  if (status === 503 && code === 'SECRETS_MISSING') return true;
  throw refusedSecrets('/readyz', status, code);
}

/**
 * Sends sealed secrets and checks the receipt.
 *
 * @throws ClientError, ProvisionError
 */
export async function deliver(http: Http, { json, openAnswer, isReceipt }: SealedMessage): Promise<void> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: json };
  const bounds = { ...http, maxSize: MAX_ENCLAVE_ANSWER_SIZE };
  const url = new URL(SECRETS_PATH, http.base);
  const received = await fetchBytes(url, init, bounds).catch((error) =>
    throwNoAnswer(http, SECRETS_PATH, error),
  );
  if (received.status !== 200 || received.type !== SEALED_TYPE) {
    const code = serverCode(new TextDecoder().decode(received.bytes));
    throw refusedSecrets('the secrets', received.status, code);
  }
  const { status, body } = await openAnswer(received.bytes).catch(noReceipt);
  if (status !== 200) {
    const text = JSON.stringify(body);
    const code = serverCode(text);
    const message = `the enclave does not accept the secrets (${code}): ${serverMessage(text)}`;
    throw new ProvisionError('SECRETS_REFUSED', message, code);
  }
  if (!isReceipt(body)) {
    throw new ProvisionError('SECRETS_RECEIPT', 'the enclave does not have the secrets that were sent');
  }
}

function noReceipt(error: unknown): never {
  if (!(error instanceof SealingError)) throw error;
  const message = `the answer is not the receipt that the enclave sealed for these secrets: ${error.message}`;
  throw new ProvisionError('SECRETS_RECEIPT', message, error.code);
}

/** Advice for answers of the enclave itself. */
const REMEDIES: Readonly<Record<string, string>> = {
  SECRETS_NO_PROVISIONERS:
    'its app.yaml names no provisioners: hand the secrets over by expose_enclave --secrets',
  SECRETS_PROVISIONER: 'its app.yaml names provisioners: sign with the key of one of them, by --key',
  SECRETS_SIGNATURE: 'the message was changed on its way, or reached another enclave: try again',
  SEALED_ALTERED: 'the message was changed on its way: try again',
  SEALED_KEY_UNKNOWN: 'the message reached another start of the enclave, not the attested one: try again',
  SECRETS_FINAL: 'it has its secrets already, and the first set is final',
};

function refusedSecrets(problem: string, status: number, code: string | null): ProvisionError {
  const remedy = REMEDIES[code ?? ''];
  const message = `${problem}: status ${status}${code === null ? '' : ` (${code})`} in an answer that is not sealed, so it may not come from the enclave`;
  return new ProvisionError(
    'SECRETS_NOT_TAKEN',
    remedy === undefined ? message : `${message}: ${remedy}`,
    code,
  );
}
