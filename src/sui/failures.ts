/** From what a node, or the way to it, answers to the class of error that says what to do. Browser-safe. */
import { ObjectError, SimulationError, type SuiClientTypes } from '@mysten/sui/client';
import { explainAbort } from './aborts.ts';
import {
  EquivocationError,
  ExecutionFailedError,
  GasTooLowError,
  MoveAbortError,
  NodeRefusedError,
  NodeUnreachableError,
  ObjectChangedError,
  ObjectNotFoundError,
  SuiError,
  UnknownOutcomeError,
} from './errors.ts';

/** Statuses with which a call ends that reached no node, or none that works. */
const NO_ANSWER = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED'];
/** Statuses that the transport, a proxy or a node in trouble gives: they are no verdict on what was sent. */
const NO_VERDICT: readonly (string | null)[] = [null, 'UNKNOWN', 'INTERNAL', 'DATA_LOSS'];
/** What fetch says of a connection that failed: the transport passes it on as INTERNAL, as it does a server's own text. */
const FETCH_FAILED =
  /^(fetch failed|failed to fetch|load failed|terminated|networkerror|the operation was aborted)/i;

// Nodes tell these causes apart by their text alone.
const GAS =
  /insufficient\s*gas|gas\s*balance\s*too\s*low|insufficient SUI balance|gas\s*budget|no valid gas coin/i;
const LOCKED = /already locked by a different transaction|because of locked objects/i;
const CHANGED = /not available for consumption|unavailable for consumption|needs to be rebuilt/i;
const NOT_FOUND =
  /(0x[0-9a-f]{1,64})\b.{0,40}not found|could not find the referenced object (0x[0-9a-f]{1,64})/i;

/** Of a text from the network: what a terminal can show, and no more than a screenful. */
function printable(text: string): string {
  const limit = 600;
  const line = text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit)} …` : line;
}

/**
 * The error that stands for whatever a call of the Sui client threw.
 *
 * A `SuiError` is returned as it is; an error that has nothing to do with a node is thrown again.
 */
export function suiErrorOf(error: unknown): SuiError {
  if (error instanceof SuiError) return error;
  if (!(error instanceof Error)) throw error;
  if (error instanceof SimulationError && error.executionError) return failureOf(error.executionError);
  if (error instanceof ObjectError && error.reason !== 'unknown') {
    return new ObjectNotFoundError(error.objectId ?? '(not named)');
  }
  const cause = statusOf(error) === null && error.cause instanceof Error ? error.cause : error;
  const status = statusOf(cause);
  if (status === null && !(error instanceof ObjectError)) throw error;
  return refusalOf(status, printable(cause.message), error);
}

/**
 * The error that stands for whatever executing a transaction threw. What is not clearly a node's refusal is
 * none: the transaction may have been executed all the same. Only the errors of gRPC are clear.
 */
export function sendErrorOf(error: unknown, digest: string): SuiError {
  let known: SuiError;
  try {
    known = suiErrorOf(error);
  } catch (cause) {
    return new UnknownOutcomeError(digest, printable((cause as Error).message), { cause });
  }
  const unknown =
    known instanceof NodeUnreachableError ||
    (known instanceof NodeRefusedError && NO_VERDICT.includes(known.status));
  return unknown ? new UnknownOutcomeError(digest, known.message, { cause: known }) : known;
}

/** The name of a gRPC status: the transport's errors carry it as `code`, and its calls as `methodName`. */
function statusOf(error: Error): string | null {
  const { code, methodName } = error as { code?: unknown; methodName?: unknown };
  return typeof code === 'string' && typeof methodName === 'string' ? code : null;
}

function refusalOf(status: string | null, message: string, cause: Error): SuiError {
  const options = { cause };
  const fetchFailed = status === 'INTERNAL' && FETCH_FAILED.test(message);
  if (LOCKED.test(message)) return new EquivocationError(message, options);
  if (CHANGED.test(message)) return new ObjectChangedError(message, options);
  if (GAS.test(message)) return new GasTooLowError(message, options);
  const [, id, other] = NOT_FOUND.exec(message) ?? [];
  if (id ?? other) return new ObjectNotFoundError(id ?? other ?? '');
  if (fetchFailed || (status !== null && NO_ANSWER.includes(status))) {
    return new NodeUnreachableError(fetchFailed ? 'the connection failed' : message, options);
  }
  return new NodeRefusedError(status, message, options);
}

/** The error that stands for a transaction that failed, simulated or executed. */
export function failureOf(error: SuiClientTypes.ExecutionError): SuiError {
  const message = printable(error.message);
  if (error.$kind === 'MoveAbort') {
    const { abortCode, location, cleverError } = error.MoveAbort;
    const { abort, explanation } = explainAbort({
      module: location?.module,
      name: cleverError?.constantName,
      text: cleverError?.value === undefined ? undefined : printable(cleverError.value),
      number: abortCode,
    });
    const { package: packageId, module, functionName } = location ?? {};
    const place = [packageId, module, functionName].filter((part) => part !== undefined).join('::');
    return new MoveAbortError(abort, place || 'an unknown place', explanation);
  }
  if (GAS.test(message)) return new GasTooLowError(message);
  return new ExecutionFailedError(message);
}
