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

export function refusedUpgrade(command: bigint): Status {
  const kind = GrpcTypes.ExecutionError_ExecutionErrorKind.PACKAGE_UPGRADE_ERROR;
  const description = 'PackageUpgradeError { upgrade_error: DigestDoesNotMatch }';
  return { success: false, error: GrpcTypes.ExecutionError.create({ description, command, kind }) };
}

export function failure(error: unknown, command: bigint): Status {
  const { MOVE_ABORT, COMMAND_ARGUMENT_ERROR } = GrpcTypes.ExecutionError_ExecutionErrorKind;
  if (error instanceof TypeMismatch) {
    const description = 'CommandArgumentError { arg_idx: 0, kind: TypeMismatch }';
    const kind = COMMAND_ARGUMENT_ERROR;
    return { success: false, error: GrpcTypes.ExecutionError.create({ description, command, kind }) };
  }
  if (!(error instanceof MoveAbort)) throw error;
  const { location, constant, code } = error;
  const named = typeof constant === 'string';
  const abort = GrpcTypes.MoveAbort.create({
    // The abort code of a clever error has its top bit set, and encodes a line and constants.
    abortCode: named ? 0x8000_001b_ffff_0001n : BigInt(constant),
    location,
    ...(named && {
      cleverError: GrpcTypes.CleverError.create({
        ...(code !== undefined && { errorCode: BigInt(code) }),
        constantName: constant,
        constantType: 'vector<u8>',
        value: { oneofKind: 'rendered', rendered: `the text of ${constant}` },
      }),
    }),
  });
  const details = { oneofKind: 'abort', abort } as const;
  const description = `MoveAbort(${constant})`;
  return {
    success: false,
    error: GrpcTypes.ExecutionError.create({ description, command, kind: MOVE_ABORT, errorDetails: details }),
  };
}
