/**
 * Reads the failure of a Move function from a node's text, for nodes that report it only as text (seen with
 * Sui 1.63). Browser-safe.
 */
import type { SuiClientTypes } from '@mysten/sui/client';
import { fullAddress, LOCATION } from './runtime_errors.ts';

/**
 * Matches the complete text of a refusal, with the `ExecutionStatus` as Rust prints it for debugging. Every
 * part is bounded, since a node may send anything.
 */
const ABORT = createPattern(String.raw`MoveAbort\(${LOCATION}, (\d{1,20})\)`);
const RUNTIME_ERROR = createPattern(
  String.raw`(MovePrimitiveRuntimeError\((?:MoveLocationOpt\((?:Some\(${LOCATION}\)|None)\)|(?:Some\(${LOCATION}\)|None))\))`,
);

function createPattern(error: string): RegExp {
  const status = String.raw`Failure \{ error: ${error}, command: (?:Some\(\d{1,5}\)|None) \}`;
  return new RegExp(String.raw`^Budget estimation failed with status: ${status}\.?$`);
}

const MAX_U64 = 2n ** 64n - 1n;

/** Returns the failure that the text describes, or null unless every character of the text matches. */
export function parseFailure(message: string): SuiClientTypes.ExecutionError | null {
  const [, runtimeError] = RUNTIME_ERROR.exec(message) ?? [];
  if (runtimeError !== undefined) return { $kind: 'Unknown', message: runtimeError, Unknown: null };
  const [, address, module, functionName, number] = ABORT.exec(message) ?? [];
  if (address === undefined || module === undefined || number === undefined) return null;
  const bits = BigInt(number);
  if (bits > MAX_U64) return null;
  const location = { package: fullAddress(address), module, ...(functionName && { functionName }) };
  return {
    $kind: 'MoveAbort',
    message,
    MoveAbort: { abortCode: bits.toString(), location },
  };
}
