/** How a call of the loopback node fails: the call itself, or the execution of its transaction. */
import { type GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';

/** Where in a package's code something fails. */
export interface Location {
  /** The package's id. */
  readonly package: string;
  readonly module: string;
  readonly functionName: string;
  /** The index of the instruction. */
  readonly instruction: number;
}

/** A Move function aborts. */
export class MoveAbort extends Error {
  readonly location: Location;
  readonly #code: bigint;
  /** The text of a constant of the module, by its index. */
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

  /** That of an `#[error]` constant is made of bits. */
  get code(): bigint {
    return this.#code;
  }
}

/** An instruction has no result: an overflow, or an index outside of a vector. */
export class PrimitiveError extends Error {
  readonly location: Location;

  constructor(location: Location, what: string) {
    super(`MovePrimitiveRuntimeError in ${location.module}::${location.functionName}: ${what}`);
    this.location = location;
  }
}

/** A transaction takes more than a node lets it. */
export class OutOfGas extends Error {}

/** A call of the node ends with this gRPC status. */
export class Refusal extends Error {
  readonly status: keyof typeof GrpcStatusCode;

  constructor(status: Refusal['status'], message: string) {
    super(message);
    this.status = status;
  }
}

export type Status = GrpcTypes.ExecutionStatus;

const { MOVE_ABORT, INSUFFICIENT_GAS: NO_GAS } = GrpcTypes.ExecutionError_ExecutionErrorKind;

function failed(error: Parameters<typeof GrpcTypes.ExecutionError.create>[0]): Status {
  return { success: false, error: GrpcTypes.ExecutionError.create(error) };
}

export const INSUFFICIENT_GAS = failed({ description: 'InsufficientGas', kind: NO_GAS });

const Kind = GrpcTypes.ExecutionError_ExecutionErrorKind;

/** A command can't be executed, by a kind and a description of Sui's. */
export class CommandFailure extends Error {
  /** Undefined: the transaction as a whole. */
  readonly command: number | undefined;
  readonly kind: keyof typeof Kind;

  constructor(command: number | undefined, kind: keyof typeof Kind, description: string) {
    super(description);
    this.command = command;
    this.kind = kind;
  }

  get status(): Status {
    const command = this.command === undefined ? undefined : BigInt(this.command);
    return failed({
      description: this.message,
      kind: Kind[this.kind],
      ...(command !== undefined && { command }),
    });
  }
}

/** How a command fails. Throws on whatever is not of the transaction. */
export function failure(error: unknown, command: bigint): Status {
  if (error instanceof CommandFailure) return error.status;
  if (error instanceof OutOfGas) return INSUFFICIENT_GAS;
  if (error instanceof PrimitiveError) {
    return failed({ description: error.message, command, kind: Kind.MOVE_PRIMITIVE_RUNTIME_ERROR });
  }
  if (!(error instanceof MoveAbort)) throw error;
  const { location, code } = error;
  const abort = GrpcTypes.MoveAbort.create({ abortCode: code, location, ...cleverOf(error) });
  const name = abort.cleverError?.constantName ?? code;
  return failed({
    description: `MoveAbort(${name})`,
    command,
    kind: MOVE_ABORT,
    errorDetails: { oneofKind: 'abort', abort },
  });
}

const CLEVER = 1n << 63n;
const HAS_CODE = 1n << 62n;
/** An index that stands for none. */
const NONE = 0xffff;

/** What a code of `assert!` without one, or of an `#[error]` constant, says: bits of a code, a line and two indices. */
function cleverOf({ code, constant }: MoveAbort) {
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

/** How Sui 1.63 refuses to build a transaction that would fail, where it has to estimate the budget. */
export function budgetRefusal({ error }: Status): Refusal {
  const { description, command, errorDetails } = error ?? {};
  const cause = errorDetails?.oneofKind === 'abort' ? abortText(errorDetails.abort) : description;
  const at = command === undefined ? 'None' : `Some(${command})`;
  const status = `Failure { error: ${cause}, command: ${at} }`;
  return new Refusal('INVALID_ARGUMENT', `Budget estimation failed with status: ${status}.`);
}

function abortText({ abortCode, location }: GrpcTypes.MoveAbort): string {
  const { package: id = '', module, functionName } = location ?? {};
  const moduleId = `ModuleId { address: ${id.replace('0x', '')}, name: Identifier("${module}") }`;
  return `MoveAbort(MoveLocation { module: ${moduleId}, function: 3, instruction: 27, function_name: Some("${functionName}") }, ${abortCode})`;
}
