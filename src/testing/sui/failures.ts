/** How a call of the loopback node fails: the call itself, or the execution of its transaction. */
import { type GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';
import { MoveAbort, TypeMismatch } from './call.ts';

/** A call of the node ends with this gRPC status. */
export class Refusal extends Error {
  readonly status: keyof typeof GrpcStatusCode;

  constructor(status: Refusal['status'], message: string) {
    super(message);
    this.status = status;
  }
}

export type Status = GrpcTypes.ExecutionStatus;

const {
  MOVE_ABORT,
  COMMAND_ARGUMENT_ERROR,
  PACKAGE_UPGRADE_ERROR,
  UNUSED_VALUE_WITHOUT_DROP,
  INSUFFICIENT_GAS: NO_GAS,
} = GrpcTypes.ExecutionError_ExecutionErrorKind;

function failed(error: Parameters<typeof GrpcTypes.ExecutionError.create>[0]): Status {
  return { success: false, error: GrpcTypes.ExecutionError.create(error) };
}

/** A transaction leaves a value that can't be dropped: the first result of a command. */
export function unusedValue(command: number): Status {
  return failed({
    description: `UnusedValueWithoutDrop { result_idx: ${command}, secondary_idx: 0 }`,
    kind: UNUSED_VALUE_WITHOUT_DROP,
  });
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

/** An upgrade is of other modules than its ticket. */
export class DigestMismatch extends Error {}

/** How a command fails. Throws on whatever is not of the transaction. */
export function failure(error: unknown, command: bigint): Status {
  if (error instanceof CommandFailure) return error.status;
  if (error instanceof DigestMismatch) {
    const description = 'PackageUpgradeError { upgrade_error: DigestDoesNotMatch }';
    return failed({ description, command, kind: PACKAGE_UPGRADE_ERROR });
  }
  if (error instanceof TypeMismatch) {
    const description = `CommandArgumentError { arg_idx: ${error.argument}, kind: TypeMismatch }`;
    return failed({ description, command, kind: COMMAND_ARGUMENT_ERROR });
  }
  if (!(error instanceof MoveAbort)) throw error;
  const { location, constant, code, text } = error;
  const named = typeof constant === 'string';
  const abort = GrpcTypes.MoveAbort.create({
    abortCode: named ? cleverNumber(code) : BigInt(constant),
    location,
    ...(named && {
      cleverError: GrpcTypes.CleverError.create({
        ...(code !== undefined && { errorCode: BigInt(code) }),
        constantName: constant,
        constantType: 'vector<u8>',
        value: { oneofKind: 'rendered', rendered: text ?? `the text of ${constant}` },
      }),
    }),
  });
  const details = { oneofKind: 'abort', abort } as const;
  const description = `MoveAbort(${constant})`;
  return failed({ description, command, kind: MOVE_ABORT, errorDetails: details });
}

/** What a function with an `#[error]` constant aborts with: a version, the constant's code, a line, and indices. */
function cleverNumber(code = 0xff): bigint {
  return (0xc0n << 56n) | (BigInt(code) << 48n) | 0x001b_ffff_0001n;
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
