/**
 * Distinguishes a runtime error of an instruction, such as an overflow, from an abort. A node names the place
 * of both in the code. The gRPC client of `@mysten/sui` reports both as aborts; a runtime error then has the
 * abort code 0.
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
 * Patterns of the place in an error's text, as `withRuntimeError`, a node over gRPC and a GraphQL service
 * write it. The effects in BCS contain no place.
 */
const PLACES: readonly RegExp[] = [
  /^MovePrimitiveRuntimeError\(\{"module":\{"address":"0x([0-9a-f]{1,64})","name":"(\w{1,128})"\},"function":\d{1,5},"instruction":\d{1,5},"functionName":(?:"(\w{1,128})"|null)\}\)$/,
  new RegExp(String.raw`^MovePrimitiveRuntimeError\((?:MoveLocationOpt\()?Some\(${LOCATION}\)`),
  /Move Primitive Runtime Error\. Location: (?:0x)?([0-9a-f]{1,64})::(\w{1,128})(?:::(\w{1,128}))? /,
];

/**
 * Returns the place of a runtime error, as `package::module::function`, or `an unknown place` if the text has
 * none. Returns null for any other failure.
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

/** Returns an address in its full length. @param digits 1 to 64 hexadecimal digits without `0x` */
export function fullAddress(digits: string): string {
  return `0x${digits.padStart(64, '0')}`;
}

/** Returns whether the error may be a runtime error of an instruction that a client reports as an abort. */
export function isAmbiguous(error: ExecutionError): boolean {
  return error.$kind === 'MoveAbort' && error.MoveAbort.abortCode === '0' && !error.MoveAbort.cleverError;
}

/**
 * The failure of a transaction or a simulation, in the JSON that the gRPC client returns with `protoJson`.
 */
interface FailureJson {
  readonly transaction?: FailureJson;
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
 * Returns the `include` for a request, extended so that the client also returns the node's answer as JSON.
 * Only the gRPC client does so. Pass the client's answer to `withRuntimeError`.
 */
export function withProtoJson<Include extends object>(include: Include | undefined): Include {
  return { ...include, protoJson: true } as object as Include;
}

/**
 * Corrects a client's answer to a request whose `include` is from `withProtoJson`. If the client reports a
 * runtime error of an instruction as an abort, the corrected answer has the runtime error.
 */
export function withRuntimeError<Answer extends object>(answer: Answer): Answer {
  const { protoJson, ...clientAnswer } = answer as {
    readonly protoJson?: FailureJson;
    readonly FailedTransaction?: SuiClientTypes.Transaction<{ effects: true }>;
  };
  const error = (protoJson?.transaction ?? protoJson)?.effects?.status?.error;
  const { FailedTransaction: transaction } = clientAnswer;
  if (transaction === undefined || error?.kind !== 'MOVE_PRIMITIVE_RUNTIME_ERROR')
    return clientAnswer as Answer;
  const status = { success: false, error: runtimeError(error) } as const;
  const effects = transaction.effects && { effects: { ...transaction.effects, status } };
  return { ...clientAnswer, FailedTransaction: { ...transaction, status, ...effects } } as object as Answer;
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
