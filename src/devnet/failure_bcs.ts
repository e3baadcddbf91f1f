/**
 * Encodes the reason for a transaction's failure in BCS (`ExecutionFailureStatus` of sui-types), from its
 * description in gRPC.
 */
import type { GrpcTypes } from '@mysten/sui/grpc';
import { fromBase58 } from '@mysten/sui/utils';

/**
 * Encodes `Failure` of `ExecutionStatus`. The model's descriptions begin with the name of the variant in
 * Rust.
 */
export function encodeFailure({ description = '', command, errorDetails }: GrpcTypes.ExecutionError) {
  const name = /^\w+/.exec(description)?.[0] ?? '';
  // The pattern finds the `kind` of an argument's error, and `upgrade_error`.
  const problem = /\b(?:kind|upgrade_error): (\w+)/.exec(description)?.[1] ?? '';
  return { error: { [name]: encodeDetails(name, problem, errorDetails) }, command: command ?? null };
}

/** Encodes the details of a failure. Variants without fields ignore them. */
function encodeDetails(
  name: string,
  problem: string,
  details: GrpcTypes.ExecutionError['errorDetails'],
): unknown {
  switch (details.oneofKind) {
    case 'abort': {
      const { abortCode, location } = details.abort;
      return name === 'MoveAbort' ? [toLocation(location), abortCode] : toLocation(location);
    }
    case 'commandArgumentError': {
      const { argument, indexError } = details.commandArgumentError;
      return { argIdx: argument, kind: { [problem]: toIndices(indexError) } };
    }
    case 'typeArgumentError':
      return { argumentIdx: details.typeArgumentError.typeArgument, kind: { [problem]: true } };
    case 'indexError':
      return toIndices(details.indexError);
    case 'packageUpgradeError': {
      const { packageId, ticketId, policy, digest = '' } = details.packageUpgradeError;
      return { upgradeError: { [problem]: { packageId, ticketId, policy, digest: fromBase58(digest) } } };
    }
    default:
      return true;
  }
}

/** Returns the indices under all the names that variants use for them. */
function toIndices({ index, subresult }: GrpcTypes.IndexError = {}) {
  return { idx: index, resultIdx: index, secondaryIdx: subresult };
}

function toLocation(location: GrpcTypes.MoveLocation | undefined) {
  if (location === undefined) return null;
  const { package: address, module: name, function: index, instruction, functionName } = location;
  return { module: { address, name }, function: index, instruction, functionName: functionName ?? null };
}
