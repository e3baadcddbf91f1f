/**
 * Distinguishes a runtime error of an instruction, such as an overflow, from an abort. A node gives a place
 * for both. The gRPC client of `@mysten/sui` reports both as aborts, and a runtime error with the number 0.
 * Browser-safe.
 */
import type { SuiClientTypes } from '@mysten/sui/client';

type ExecutionError = SuiClientTypes.ExecutionError;

/**
 * A `MoveLocation` as Rust prints it for debugging: address, module, function. Names have at most 128
 * characters.
 */
export const LOCATION = String.raw`MoveLocation \{ module: ModuleId \{ address: (?:0x)?([0-9a-f]{1,64}), name: Identifier\("(\w{1,128})"\) \}, function: \d{1,5}, instruction: \d{1,5}, function_name: (?:Some\("(\w{1,128})"\)|None) \}`;

/**
 * `MovePrimitiveRuntimeError` of Sui, as a node prints it. A GraphQL service prints the command before it.
 */
const RUNTIME_ERROR = /^(?:Error in \d+\w\w command, )?Move ?Primitive ?Runtime ?Error\b/;

/**
 * Match the place in the error's text, as `withRuntimeError`, a node over gRPC and a GraphQL service write
 * it. The effects in BCS contain no place.
 */
const PLACES: readonly RegExp[] = [
  /^MovePrimitiveRuntimeError\(\{"module":\{"address":"0x([0-9a-f]{1,64})","name":"(\w{1,128})"\},"function":\d{1,5},"instruction":\d{1,5},"functionName":(?:"(\w{1,128})"|null)\}\)$/,
  new RegExp(String.raw`^MovePrimitiveRuntimeError\((?:MoveLocationOpt\()?Some\(${LOCATION}\)`),
  /Move Primitive Runtime Error\. Location: (?:0x)?([0-9a-f]{1,64})::(\w{1,128})(?:::(\w{1,128}))? /,
];

/**
 * Finds the place of a runtime error, as `package::module::function`; null for other failures.
 */
export function runtimeErrorPlace({ $kind, message }: ExecutionError): string | null {
  if ($kind !== 'Unknown' || !RUNTIME_ERROR.test(message)) return null;
  for (const pattern of PLACES) {
    const [, address, ...names] = pattern.exec(message) ?? [];
    if (address === undefined) continue;
    return [fullAddress(address), ...names].filter((part) => part !== undefined).join('::');
  }
  return 'an unknown place';
}

/** @param digits 1 to 64 hexadecimal digits without `0x` */
export function fullAddress(digits: string): string {
  return `0x${digits.padStart(64, '0')}`;
}

/** Returns whether a client may have made the error from a runtime error of an instruction. */
export function isAmbiguous(error: ExecutionError): boolean {
  return error.$kind === 'MoveAbort' && error.MoveAbort.abortCode === '0' && !error.MoveAbort.cleverError;
}

/** The failure of a transaction or a simulation, in the JSON that the gRPC client gives with `protoJson`. */
interface Failed {
  readonly transaction?: Failed;
  readonly effects?: { readonly status?: { readonly error?: GrpcError } };
}

interface GrpcError {
  readonly kind?: string;
  readonly command?: string;
  readonly abort?: {
    readonly location?: {
      readonly package?: string;
      readonly module?: string;
      readonly function?: number;
      readonly instruction?: number;
      readonly functionName?: string;
    };
  };
}

/**
 * Returns the `include` for a request, extended by the node's own words for a failure, which only the gRPC
 * client has. Pass the client's answer to `withRuntimeError`.
 */
export function withNodesWords<Include extends object>(include: Include | undefined): Include {
  return { ...include, protoJson: true } as object as Include;
}

/**
 * Corrects the answer to a request with `withNodesWords`: in the result, a runtime error of an instruction is
 * not an abort.
 */
export function withRuntimeError<Answer extends object>(answer: Answer): Answer {
  const { protoJson, ...result } = answer as {
    readonly protoJson?: Failed;
    readonly FailedTransaction?: SuiClientTypes.Transaction<{ effects: true }>;
  };
  const error = (protoJson?.transaction ?? protoJson)?.effects?.status?.error;
  const { FailedTransaction: failed } = result;
  if (failed === undefined || error?.kind !== 'MOVE_PRIMITIVE_RUNTIME_ERROR') return result as Answer;
  const status = { success: false, error: runtimeError(error) } as const;
  const effects = failed.effects && { effects: { ...failed.effects, status } };
  return { ...result, FailedTransaction: { ...failed, status, ...effects } } as object as Answer;
}

/** Converts an error to the form that `runtimeErrorPlace` reads. */
function runtimeError({ command, abort }: GrpcError): ExecutionError {
  const {
    package: address,
    module: name,
    function: index,
    instruction,
    functionName,
  } = abort?.location ?? {};
  const location = {
    module: { address, name },
    function: index ?? 0,
    instruction: instruction ?? 0,
    functionName: functionName ?? null,
  };
  return {
    $kind: 'Unknown',
    message: `MovePrimitiveRuntimeError(${JSON.stringify(location)})`,
    ...(command !== undefined && { command: Number(command) }),
    Unknown: null,
  };
}
