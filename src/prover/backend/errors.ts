/** Errors that the backend answers with. No message contains a value of an input, a witness or a proof. */
import { type ErrorTable, errorClass } from 'sui-enclave-service/errors';

export const BACKEND_ERRORS = {
  BACKEND_INPUT: {
    status: 400,
    meaning: 'a signal is missing or unknown, or has the wrong size; the message names it',
  },
  BACKEND_INPUT_REFUSED: { status: 400, meaning: 'the input does not satisfy the circuit' },
  BACKEND_WITNESS: { status: 500, meaning: 'the witness generator crashed, timed out or could not be run' },
  BACKEND_ENGINE: {
    status: 500,
    meaning: 'the engine crashed, timed out, or did not return a proof for this input: try again',
  },
  // The status is not 503: HAProxy would repeat the request at one backend after another, and if the request
  // makes engines hang, all of them would hang.
  BACKEND_ENGINE_HUNG: {
    status: 500,
    meaning:
      'the engine hung (it did not answer for 3 s, or made no progress for 30 s) and is being replaced; see `Retry-After`',
  },
  BACKEND_AT_CAPACITY: {
    status: 503,
    meaning: '`Server at capacity`: `QUEUE` requests are waiting already; see `Retry-After`',
  },
  BACKEND_WAITED: {
    status: 503,
    meaning: 'the proof did not begin within `PROVER_TIMEOUT`; see `Retry-After`',
  },
  BACKEND_STOPPING: { status: 503, meaning: 'the service is stopping; see `Retry-After`' },
} as const satisfies ErrorTable;

export class BackendError extends errorClass(BACKEND_ERRORS) {}
