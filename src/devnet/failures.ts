/**
 * Declares the failures of calls to the loopback node: either the call itself fails, or the execution of its
 * transaction fails.
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

/** Error that ends a call to the node with a gRPC status. */
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
 * Creates the status of a failed transaction.
 *
 * @param cause error in the form in which Rust prints it (`ExecutionFailureStatus` of sui-types); nodes use
 *   it as the description
 */
function createFailedStatus(
  kind: GrpcTypes.ExecutionError_ExecutionErrorKind,
  cause: string,
  command?: bigint,
  errorDetails: Details = { oneofKind: undefined },
): Status {
  const commandField = command === undefined ? {} : { command };
  const description = command === undefined ? cause : `${cause}${inCommand(command)}`;
  return {
    success: false,
    error: GrpcTypes.ExecutionError.create({ description, kind, errorDetails, ...commandField }),
  };
}

function inCommand(command: bigint): string {
  return ` in command ${command}`;
}

export const INSUFFICIENT_GAS = createFailedStatus(Kind.INSUFFICIENT_GAS, 'InsufficientGas');

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
    return createFailedStatus(Kind[this.kind], this.message, command, this.details);
  }
}

/** Problems of arguments in gRPC, by their names in Sui's Rust code. */
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

/**
 * Creates the failure of a command whose argument is invalid.
 *
 * @param indexError index of an input or a result that does not exist; `text` is the index as Rust prints it
 */
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
export function toFailureStatus(error: unknown, command: bigint): Status {
  if (error instanceof CommandFailure) return error.status;
  if (error instanceof OutOfGas) return INSUFFICIENT_GAS;
  if (error instanceof PrimitiveError) {
    const { location } = error;
    const cause = `MovePrimitiveRuntimeError(MoveLocationOpt(Some(${formatLocation(location)})))`;
    // The error has a location, but no abort code.
    const abort = GrpcTypes.MoveAbort.create({ location });
    return createFailedStatus(Kind.MOVE_PRIMITIVE_RUNTIME_ERROR, cause, command, {
      oneofKind: 'abort',
      abort,
    });
  }
  if (!(error instanceof MoveAbort)) throw error;
  const { location, code } = error;
  const abort = GrpcTypes.MoveAbort.create({ abortCode: code, location, ...decodeCleverError(error) });
  const cause = `MoveAbort(${formatLocation(location)}, ${code})`;
  return createFailedStatus(Kind.MOVE_ABORT, cause, command, { oneofKind: 'abort', abort });
}

function formatLocation({
  package: id,
  module,
  function: index,
  functionName,
  instruction,
}: Location): string {
  const moduleId = `ModuleId { address: ${id.replace('0x', '')}, name: Identifier("${module}") }`;
  return `MoveLocation { module: ${moduleId}, function: ${index}, instruction: ${instruction}, function_name: Some("${functionName}") }`;
}

const CLEVER = 1n << 63n;
const HAS_CODE = 1n << 62n;
/** Index in place of a constant that does not exist. */
const NONE = 0xffff;

/**
 * Decodes an abort code that comes from an `#[error]` constant, or from `assert!` without a code. It consists
 * of a code, a line number, and the indices of the constant's name and value.
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
  const commandText = command === undefined ? 'None' : `Some(${command})`;
  const status = `Failure { error: ${cause}, command: ${commandText} }`;
  return new Refusal('INVALID_ARGUMENT', `Budget estimation failed with status: ${status}.`);
}
