/** Converts errors of a node or of the transport into errors that say what to do. Browser-safe. */
import { ObjectError, SimulationError, type SuiClientTypes, TransactionError } from '@mysten/sui/client';
import { parseFailure } from './abort_text.ts';
import { explainAbort } from './aborts.ts';
import {
  MoveAbortError,
  MoveRuntimeError,
  NodeRefusedError,
  ObjectNotFoundError,
  SuiError,
  UnknownOutcomeError,
} from './errors.ts';
import { runtimeErrorPlace } from './runtime_errors.ts';

/** Statuses of a call that didn't reach a working node. */
const NO_ANSWER = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED'];
/** Statuses that the transport, a proxy or a failing node may give: the request may have been executed. */
const NO_VERDICT: readonly (string | null)[] = [null, 'UNKNOWN', 'INTERNAL', 'DATA_LOSS'];
/** Statuses of a send that a node may also give for an executed transaction, whatever cause it names. */
const PERHAPS_EXECUTED: readonly (string | null)[] = ['ABORTED', 'RESOURCE_EXHAUSTED'];
/** The statuses that gRPC-web reads from HTTP, for the GraphQL client, which reports the HTTP status only. */
const HTTP_STATUSES: Readonly<Record<string, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};
/**
 * Matches the messages of fetch for a failed connection. The transport reports them with the status INTERNAL,
 * like a server's own messages.
 */
const FETCH_FAILED =
  /^(fetch failed|failed to fetch|load failed|terminated|networkerror|the operation was aborted)/i;

/**
 * The message of the error that a client's `fetch` throws if an answer is too large. The transport keeps only
 * this message.
 */
export const ANSWER_TOO_LARGE = 'the answer of the node is too large';

// Nodes distinguish these causes only by the message.
const GAS =
  /insufficient\s*gas|gas\s*balance\s*too\s*low|insufficient SUI balance|gas\s*budget|no valid gas coin|unable to select sufficient gas coins/i;
const LOCKED = /already locked by a different transaction|because of locked objects/i;
const CHANGED = /not available for consumption|unavailable for consumption|needs to be rebuilt/i;
const NOT_FOUND =
  /(0x[0-9a-f]{1,64})\b.{0,40}not found|could not find the referenced object (0x[0-9a-f]{1,64})/i;

/** Returns a message from the network without characters that disturb a terminal, limited in length. */
function toPrintable(text: string): string {
  const limit = 600;
  const line = text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit)} …` : line;
}

/**
 * Returns the SuiError for an error that a call of a Sui client threw, over gRPC or GraphQL.
 *
 * Returns a SuiError unchanged, and rethrows an error that is not about a node.
 */
export function toSuiError(error: unknown): SuiError {
  if (error instanceof SuiError) return error;
  if (!(error instanceof Error)) throw error;
  if (error instanceof SimulationError && error.executionError) return toExecutionError(error.executionError);
  if (error instanceof ObjectError && error.reason !== 'unknown') {
    return new ObjectNotFoundError(error.objectId ?? '(not named)');
  }
  const cause = findStatus(error) === null && error.cause instanceof Error ? error.cause : error;
  const status = findStatus(cause);
  if (status !== null || error instanceof ObjectError) {
    return createRefusal(status, toPrintable(cause.message), error);
  }
  if (error instanceof TransactionError) return new NodeRefusedError('NOT_FOUND', toPrintable(error.message));
  const sdkError = readGraphqlError(error);
  if (sdkError === null) throw error;
  return sdkError;
}

/**
 * Returns the SuiError for an error of the GraphQL client, which distinguishes errors neither by class nor by
 * status.
 */
function readGraphqlError(error: Error): SuiError | null {
  const errors = error instanceof AggregateError ? (error.errors as readonly Error[]) : [error];
  const message = toPrintable(errors.map(({ message }) => message).join('; '));
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return unreachable(message, error);
  if (error instanceof TypeError && FETCH_FAILED.test(message)) {
    return unreachable('the connection failed', error);
  }
  const [, http] = /^GraphQL request failed: .*\((\d{3})\)$/.exec(message) ?? [];
  if (http !== undefined) return createRefusal(HTTP_STATUSES[http] ?? 'UNKNOWN', message, error);
  if (errors.length > 0 && errors.every((error) => 'locations' in error)) {
    return createRefusal(null, message, error);
  }
  if (error instanceof SyntaxError) return new NodeRefusedError(null, 'its answer is not JSON');
  if (!/^(Missing response data|simulateTransaction did not return)/.test(message)) return null;
  return new SuiError('SUI_NODE_ANSWER', "the node's answer lacks the requested data", { cause: error });
}

/**
 * Returns the SuiError for an error that was thrown while a transaction was executed. Unless a node clearly
 * refused the transaction, it may have been executed, and the SuiError is an UnknownOutcomeError. Before
 * `sendTransaction` throws such an error, it asks the node for the digest.
 */
export function toSendError(error: unknown, digest: string): SuiError {
  let sdkError: SuiError;
  try {
    sdkError = toSuiError(error);
  } catch (cause) {
    // A signal's reason, which some clients pass on, may be any value.
    const reason = cause instanceof Error ? cause.message : 'the call was ended';
    return new UnknownOutcomeError(digest, toPrintable(reason), { cause });
  }
  const status = sdkError instanceof NodeRefusedError ? sdkError.status : findStatusInCauses(error);
  const unknown =
    sdkError.code === 'SUI_NODE_UNREACHABLE' ||
    sdkError.code === 'SUI_NODE_ANSWER' ||
    PERHAPS_EXECUTED.includes(status) ||
    (sdkError.code === 'SUI_NODE_REFUSED' && NO_VERDICT.includes(status));
  return unknown ? new UnknownOutcomeError(digest, sdkError.message, { cause: sdkError }) : sdkError;
}

/**
 * Returns the name of the gRPC status of an error from the transport, which has a `code` and a `methodName`;
 * else null.
 */
function findStatus(error: Error): string | null {
  const { code, methodName } = error as { code?: unknown; methodName?: unknown };
  return typeof code === 'string' && typeof methodName === 'string' ? code : null;
}

/** Returns the gRPC status of an error, or of its cause. */
function findStatusInCauses(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  return findStatus(error) ?? findStatusInCauses(error.cause);
}

function createRefusal(status: string | null, message: string, cause: Error): SuiError {
  const options = { cause };
  const failure = status === 'INVALID_ARGUMENT' ? parseFailure(message) : null;
  if (failure !== null) return toExecutionError(failure);
  if (status === 'INTERNAL' && message === ANSWER_TOO_LARGE) {
    return new SuiError('SUI_NODE_ANSWER', `${message}: use another node`, options);
  }
  const fetchFailed = status === 'INTERNAL' && FETCH_FAILED.test(message);
  if (LOCKED.test(message)) {
    return new SuiError(
      'SUI_EQUIVOCATION',
      `another transaction holds a lock on an object or gas coin of this one: wait for it, or for the next epoch (up to a day) if neither can finish. Don't send two transactions from one address at the same time. The node's message: ${message}`,
      options,
    );
  }
  if (CHANGED.test(message)) {
    return new SuiError(
      'SUI_OBJECT_CHANGED',
      `an object of the transaction has changed in the meantime. If the same transaction was sent before and got no answer, look it up; otherwise build a new transaction and try again. The node's message: ${message}`,
      options,
    );
  }
  if (GAS.test(message)) return gasTooLow(message, options);
  const [, id, otherId] = NOT_FOUND.exec(message) ?? [];
  if (id ?? otherId) return new ObjectNotFoundError(id ?? otherId ?? '');
  if (fetchFailed || (status !== null && NO_ANSWER.includes(status))) {
    return unreachable(fetchFailed ? 'the connection failed' : message, cause);
  }
  // For an empty message, the transport gives the name of the status.
  const isSilent = message === '' || message === status;
  return new NodeRefusedError(status, isSilent ? silentReason(status) : message, options);
}

/** Explains a node's refusal without a message by its status. */
function silentReason(status: string | null): string {
  // A full node gives this status when it is asked for a package that does not exist.
  if (status === 'NOT_FOUND') return 'the requested object does not exist on this network';
  if (status === 'UNIMPLEMENTED') return 'it does not offer this method, perhaps because it is too old';
  return 'it gives no reason';
}

function unreachable(reason: string, cause: Error): SuiError {
  const message = `the Sui node did not answer (${reason}): check its address and the network`;
  return new SuiError('SUI_NODE_UNREACHABLE', message, { cause });
}

function gasTooLow(message: string, options?: ErrorOptions): SuiError {
  const advice = 'Send SUI to the sender, or raise the gas budget';
  return new SuiError('SUI_GAS', `too little gas: ${message}. ${advice}`, options);
}

/**
 * Returns the SuiError for a transaction that failed, simulated or executed. The gRPC client of `@mysten/sui`
 * describes a runtime error of an instruction as an abort with 0, and so does this function.
 * `buildTransaction`, `sendTransaction` and a wallet's result distinguish the two.
 */
export function toExecutionError(error: SuiClientTypes.ExecutionError): SuiError {
  const place = runtimeErrorPlace(error);
  if (place !== null) return new MoveRuntimeError(place);
  const message = toPrintable(error.message);
  if (error.$kind === 'MoveAbort') {
    const { abortCode, location, cleverError } = error.MoveAbort;
    const { abort, explanation } = explainAbort({
      module: location?.module,
      code: cleverError?.errorCode,
      name: cleverError?.constantName,
      text: cleverError?.value === undefined ? undefined : toPrintable(cleverError.value),
      number: abortCode,
    });
    const { package: packageId, module, functionName } = location ?? {};
    const names = [packageId, module, functionName].filter((part) => part !== undefined);
    return new MoveAbortError(abort, names.join('::') || 'an unknown place', explanation);
  }
  if (GAS.test(message)) return gasTooLow(message);
  return new SuiError('SUI_EXECUTION', `the transaction fails: ${message}`);
}
