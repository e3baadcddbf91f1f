/** The errors of an enclave's server, beside those of every HTTP service. */
import { type ErrorTable, errorClass } from 'sui-enclave-service/errors';

export const ENCLAVE_ERRORS = {
  SEALED_MALFORMED: { status: 400, meaning: 'the message is not a sealed request of a known version' },
  SEALED_ALTERED: { status: 400, meaning: 'the sealed request was changed, or was sealed in another way' },
  SEALED_CONTENT: { status: 400, meaning: 'the sealed content is not a request, or not a set of secrets' },
  SEALED_REQUIRED: { status: 403, meaning: 'REQUESTS=sealed is set, and the request is not sealed' },
  SEALED_NOT_IDEMPOTENT: {
    status: 403,
    meaning: 'the endpoint does not accept sealed requests, since a host could replay one',
  },
  SECRETS_NO_PROVISIONERS: {
    status: 403,
    meaning: 'app.yaml names no provisioner who may send secrets here',
  },
  SECRETS_PROVISIONER: { status: 403, meaning: 'no provisioner of app.yaml has signed the secrets' },
  SECRETS_SIGNATURE: {
    status: 403,
    meaning: "the provisioner's signature is not over these secrets, sealed for this enclave",
  },
  SECRETS_FINAL: {
    status: 409,
    meaning: 'the enclave has its secrets already: the first valid set is final',
  },
  SEALED_TOO_LARGE: { status: 413, meaning: 'the sealed secrets are larger than the format allows' },
  SEALED_KEY_UNKNOWN: { status: 422, meaning: 'the message is sealed to a key other than the current one' },
  SECRETS_REFUSED: { status: 422, meaning: 'the application does not accept the sealed secrets' },
  SECRETS_MISSING: { status: 503, meaning: 'the secrets have not been provided yet' },
  CLOCK_UNCONFIRMED: {
    status: 503,
    meaning: 'CLOCK_REQUIRED is set, and the NSM does not confirm the clock',
  },
} as const satisfies ErrorTable;

export class EnclaveServerError extends errorClass(ENCLAVE_ERRORS) {}
