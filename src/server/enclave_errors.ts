/** The errors of an enclave's server, besides those of every HTTP service. */
import { type ErrorTable, errorClass } from 'sui-enclave-service/errors';

export const ENCLAVE_ERRORS = {
  SEALED_MALFORMED: { status: 400, meaning: 'the body is not a sealed message of a known version' },
  SEALED_ALTERED: {
    status: 400,
    meaning: 'the message was changed in transit, or is not sealed as specified',
  },
  SEALED_CONTENT: {
    status: 400,
    meaning: 'the content of the message is neither a request nor a set of secrets',
  },
  SEALED_REQUIRED: { status: 403, meaning: '`REQUESTS=sealed` is set, and the request is not sealed' },
  SEALED_NOT_IDEMPOTENT: {
    status: 403,
    meaning:
      'the endpoint refuses sealed requests, since a host could repeat them: send the request unsealed',
  },
  SECRETS_NO_PROVISIONERS: {
    status: 403,
    meaning: '`app.yaml` names no provisioners: the server accepts secrets through the hand-off only',
  },
  SECRETS_PROVISIONER: {
    status: 403,
    meaning: 'the secrets are not signed, or their signer is not a provisioner that `app.yaml` names',
  },
  SECRETS_SIGNATURE: {
    status: 403,
    meaning: "the provisioner's signature does not match these secrets as they are sealed for this enclave",
  },
  SCHEMA_NOT_FOUND: { status: 404, meaning: 'the image has no `schema.json` of its application' },
  SECRETS_FINAL: { status: 409, meaning: 'the enclave has its secrets: the first valid set is final' },
  SEALED_TOO_LARGE: { status: 413, meaning: 'the sealed secrets are over 48,000 bytes' },
  SEALED_KEY_UNKNOWN: {
    status: 422,
    meaning: 'the message is sealed to a key other than the current one: attest the enclave again',
  },
  SECRETS_REFUSED: {
    status: 422,
    meaning: 'the application does not accept the secrets; only the provisioner reads this answer',
  },
  SECRETS_MISSING: {
    status: 503,
    meaning:
      'the secrets have not been provided yet: `missing` lists their names; `refused` says why the last hand-off was not accepted',
  },
  CLOCK_UNCONFIRMED: {
    status: 503,
    meaning: '`CLOCK_REQUIRED` is set, and the NSM does not confirm the clock',
  },
  TASK_NO_VALUE: {
    status: 503,
    meaning:
      'the endpoint answers with the value of a task, and the task has not published a value yet: see `Retry-After`',
  },
} as const satisfies ErrorTable;

export class EnclaveServerError extends errorClass(ENCLAVE_ERRORS) {}
