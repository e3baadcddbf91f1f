/** The errors that the backend answers with. No message contains a value of an input, a witness or a proof. */
import { type ErrorTable, errorClass } from 'sui-enclave-service/errors';

export const BACKEND_ERRORS = {
  BACKEND_INPUT: {
    status: 400,
    meaning:
      "the input does not have exactly the circuit's signals, as lists and decimal strings of their sizes",
  },
  BACKEND_INPUT_REFUSED: { status: 400, meaning: 'the input does not satisfy the circuit' },
  BACKEND_WITNESS: { status: 500, meaning: 'the witness generator crashed, timed out or could not be run' },
  BACKEND_ENGINE: {
    status: 500,
    meaning: 'the engine crashed, timed out or returned no proof of this input: try again',
  },
  BACKEND_AT_CAPACITY: { status: 503, meaning: 'QUEUE requests are waiting already: see Retry-After' },
  BACKEND_WAITED: { status: 503, meaning: 'the proof did not begin within PROVER_TIMEOUT: see Retry-After' },
  BACKEND_STOPPING: { status: 503, meaning: 'the service is stopping: see Retry-After' },
} as const satisfies ErrorTable;

export class BackendError extends errorClass(BACKEND_ERRORS) {}
