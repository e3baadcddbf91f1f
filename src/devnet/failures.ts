/**
 * Failures of calls to the loopback node: either the call itself fails, or the execution of its transaction.
 */
import { type GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';

/** Location of a failure in a package's code. */
export interface Location {
  /** Id of the package. */
  readonly package: string;
  readonly module: string;
  /** Index of the function's definition. */
  readonly function: number;
  readonly functionName: string;
  /** Index of the instruction. */
  readonly instruction: number;
}

/** Error of a Move function that aborts. */
export class MoveAbort extends Error {
  readonly location: Location;
  readonly #code: bigint;
  /** Returns the text of a constant of the module by its index. */
  readonly constant: (index: number) => string | undefined;

  constructor(
    location: Location,
    code: bigint,
    constant: (index: number) => string | undefined = () => undefined,
  ) {
    super(`${location.module}::${location.functionName} aborts with ${code}`);
    this.location = location;
    this.#code = code;
    this.constant = constant;
  }

  /** The abort code. If it comes from an `#[error]` constant, it consists of bit fields. */
  get code(): bigint {
    return this.#code;
  }
}

/** Runtime error of an instruction, such as an overflow or an index outside a vector. */
export class PrimitiveError extends Error {
  readonly location: Location;

  constructor(location: Location, problem: string) {
    super(`MovePrimitiveRuntimeError in ${location.module}::${location.functionName}: ${problem}`);
    this.location = location;
  }
}

/** Error of a transaction that takes more resources than a node allows. */
export class OutOfGas extends Error {}

/** Error with whose gRPC status a call to the node ends. */
export class Refusal extends Error {
  readonly status: keyof typeof GrpcStatusCode;

  constructor(status: Refusal['status'], message: string) {
    super(message);
    this.status = status;
  }
}

export type Status = GrpcTypes.ExecutionStatus;

const {
  ExecutionError_ExecutionErrorKind: Kind,
  CommandArgumentError_CommandArgumentErrorKind: ArgumentKind,
  TypeArgumentError_TypeArgumentErrorKind: TypeKind,
} = GrpcTypes;

type Details = GrpcTypes.ExecutionError['errorDetails'];

/**
 * @param cause error in the form in which Rust prints it (`ExecutionFailureStatus` of sui-types); nodes use
 *   it as the description
 */
function failed(
  kind: GrpcTypes.ExecutionError_ExecutionErrorKind,
  cause: string,
  command?: bigint,
  errorDetails: Details = { oneofKind: undefined },
): Status {
  const where = command === undefined ? {} : { command };
  const description = command === undefined ? cause : `${cause}${inCommand(command)}`;
  return {
    success: false,
    error: GrpcTypes.ExecutionError.create({ description, kind, errorDetails, ...where }),
  };
}

function inCommand(command: bigint): string {
  return ` in command ${command}`;
}

export const INSUFFICIENT_GAS = failed(Kind.INSUFFICIENT_GAS, 'InsufficientGas');

/** Error of a command that can't be executed, with Sui's kind and description. */
export class CommandFailure extends Error {
  /** Index of the command; undefined for the transaction as a whole. */
  readonly command: number | undefined;
  readonly kind: keyof typeof Kind;
  readonly details: Details;

  constructor(
    command: number | undefined,
    kind: keyof typeof Kind,
    description: string,
    details: Details = { oneofKind: undefined },
  ) {
    super(description);
    this.command = command;
    this.kind = kind;
    this.details = details;
  }

  get status(): Status {
    const command = this.command === undefined ? undefined : BigInt(this.command);
    return failed(Kind[this.kind], this.message, command, this.details);
  }
}

/** Problems of arguments, by Sui's names. */
const ARGUMENT_PROBLEMS = {
  TypeMismatch: ArgumentKind.TYPE_MISMATCH,
  InvalidBCSBytes: ArgumentKind.INVALID_BCS_BYTES,
  InvalidUsageOfPureArg: ArgumentKind.INVALID_USAGE_OF_PURE_ARGUMENT,
  InvalidArgumentToPrivateEntryFunction: ArgumentKind.INVALID_ARGUMENT_TO_PRIVATE_ENTRY_FUNCTION,
  IndexOutOfBounds: ArgumentKind.INDEX_OUT_OF_BOUNDS,
  SecondaryIndexOutOfBounds: ArgumentKind.SECONDARY_INDEX_OUT_OF_BOUNDS,
  InvalidResultArity: ArgumentKind.INVALID_RESULT_ARITY,
  InvalidGasCoinUsage: ArgumentKind.INVALID_GAS_COIN_USAGE,
  InvalidObjectByValue: ArgumentKind.INVALID_OBJECT_BY_VALUE,
  InvalidObjectByMutRef: ArgumentKind.INVALID_OBJECT_BY_MUT_REF,
  InvalidTransferObject: ArgumentKind.INVALID_TRANSFER_OBJECT,
  InvalidMakeMoveVecNonObjectArgument: ArgumentKind.INVALID_MAKE_MOVE_VEC_NON_OBJECT_ARGUMENT,
  ArgumentWithoutValue: ArgumentKind.ARGUMENT_WITHOUT_VALUE,
  CannotMoveBorrowedValue: ArgumentKind.CANNOT_MOVE_BORROWED_VALUE,
  InvalidReferenceArgument: ArgumentKind.INVALID_REFERENCE_ARGUMENT,
} as const;

/** @param indexError input or result that does not exist, with the names of the fields in Rust */
export function argumentFailure(
  command: number,
  argument: number,
  problem: keyof typeof ARGUMENT_PROBLEMS,
  indexError?: { readonly index: number; readonly subresult?: number; readonly text: string },
): CommandFailure {
  const name = indexError === undefined ? problem : `${problem} { ${indexError.text} }`;
  const commandArgumentError = GrpcTypes.CommandArgumentError.create({
    argument,
    kind: ARGUMENT_PROBLEMS[problem],
    ...(indexError && { indexError: createIndexError(indexError) }),
  });
  return new CommandFailure(
    command,
    'COMMAND_ARGUMENT_ERROR',
    `CommandArgumentError { arg_idx: ${argument}, kind: ${name} }`,
    { oneofKind: 'commandArgumentError', commandArgumentError },
  );
}

function createIndexError({ index, subresult }: GrpcTypes.IndexError): GrpcTypes.IndexError {
  return GrpcTypes.IndexError.create({
    ...(index !== undefined && { index }),
    ...(subresult !== undefined && { subresult }),
  });
}

const TYPE_PROBLEMS = {
  TypeNotFound: TypeKind.TYPE_NOT_FOUND,
  ConstraintNotSatisfied: TypeKind.CONSTRAINT_NOT_SATISFIED,
} as const;

export function typeArgumentFailure(
  command: number,
  typeArgument: number,
  problem: keyof typeof TYPE_PROBLEMS,
): CommandFailure {
  const typeArgumentError = GrpcTypes.TypeArgumentError.create({
    typeArgument,
    kind: TYPE_PROBLEMS[problem],
  });
  return new CommandFailure(
    command,
    'TYPE_ARGUMENT_ERROR',
    `TypeArgumentError { argument_idx: ${typeArgument}, kind: ${problem} }`,
    { oneofKind: 'typeArgumentError', typeArgumentError },
  );
}

/** Returns the status of a failed command. Rethrows an error that the transaction did not cause. */
export function failure(error: unknown, command: bigint): Status {
  if (error instanceof CommandFailure) return error.status;
  if (error instanceof OutOfGas) return INSUFFICIENT_GAS;
  if (error instanceof PrimitiveError) {
    const { location } = error;
    const cause = `MovePrimitiveRuntimeError(MoveLocationOpt(Some(${locationText(location)})))`;
    // The error has a location, but no abort code.
    const abort = GrpcTypes.MoveAbort.create({ location });
    return failed(Kind.MOVE_PRIMITIVE_RUNTIME_ERROR, cause, command, { oneofKind: 'abort', abort });
  }
  if (!(error instanceof MoveAbort)) throw error;
  const { location, code } = error;
  const abort = GrpcTypes.MoveAbort.create({ abortCode: code, location, ...decodeCleverError(error) });
  const cause = `MoveAbort(${locationText(location)}, ${code})`;
  return failed(Kind.MOVE_ABORT, cause, command, { oneofKind: 'abort', abort });
}

function locationText({ package: id, module, function: index, functionName, instruction }: Location): string {
  const moduleId = `ModuleId { address: ${id.replace('0x', '')}, name: Identifier("${module}") }`;
  return `MoveLocation { module: ${moduleId}, function: ${index}, instruction: ${instruction}, function_name: Some("${functionName}") }`;
}

const CLEVER = 1n << 63n;
const HAS_CODE = 1n << 62n;
/** Index that means that there is none. */
const NONE = 0xffff;

/**
 * Decodes the code of an `#[error]` constant, or of `assert!` without a code. It consists of a code, a line
 * and two indices.
 */
function decodeCleverError({ code, constant }: MoveAbort) {
  if ((code & CLEVER) === 0n) return undefined;
  const part = (shift: bigint, mask: number) => Number((code >> shift) & BigInt(mask));
  const [line, name, value] = [part(32n, 0xffff), part(16n, 0xffff), part(0n, 0xffff)];
  const constantName = name === NONE ? undefined : constant(name);
  const rendered = value === NONE ? undefined : constant(value);
  return {
    cleverError: GrpcTypes.CleverError.create({
      lineNumber: BigInt(line),
      ...((code & HAS_CODE) !== 0n && { errorCode: BigInt(part(48n, 0xff)) }),
      ...(constantName !== undefined && { constantName }),
      ...(rendered !== undefined && {
        constantType: 'vector<u8>',
        value: { oneofKind: 'rendered', rendered } as const,
      }),
    }),
  };
}

/**
 * Returns the error with which Sui 1.63 refuses to build a transaction that would fail, if it must estimate
 * the budget.
 */
export function budgetRefusal({ error }: Status): Refusal {
  const { description = '', command } = error ?? {};
  const cause = command === undefined ? description : description.replace(inCommand(command), '');
  const at = command === undefined ? 'None' : `Some(${command})`;
  const status = `Failure { error: ${cause}, command: ${at} }`;
  return new Refusal('INVALID_ARGUMENT', `Budget estimation failed with status: ${status}.`);
}
