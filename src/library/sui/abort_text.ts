/** Reads an abort from a node's text, for nodes that report it in no other form (seen with Sui 1.63). Browser-safe. */
import type { SuiClientTypes } from '@mysten/sui/client';

/**
 * The whole refusal, with the `ExecutionStatus` as Rust prints it for debugging. Names are Move identifiers, which have
 * at most 128 characters; every part is bounded, since a node may send anything.
 */
const REFUSAL =
  /^Budget estimation failed with status: Failure \{ error: MoveAbort\(MoveLocation \{ module: ModuleId \{ address: (?:0x)?([0-9a-f]{1,64}), name: Identifier\("(\w{1,128})"\) \}, function: \d{1,5}, instruction: \d{1,5}, function_name: (?:Some\("(\w{1,128})"\)|None) \}, (\d{1,20})\), command: (?:Some\(\d{1,5}\)|None) \}\.?$/;

const MAX_U64 = 2n ** 64n - 1n;

/** The abort that the text describes; null if it is anything else, down to a character. */
export function abortIn(message: string): SuiClientTypes.ExecutionError | null {
  const [, address, module, functionName, number] = REFUSAL.exec(message) ?? [];
  if (address === undefined || module === undefined || number === undefined) return null;
  const bits = BigInt(number);
  if (bits > MAX_U64) return null;
  const errorCode = errorCodeOf(bits);
  const location = {
    package: `0x${address.padStart(64, '0')}`,
    module,
    ...(functionName && { functionName }),
  };
  const cleverError = errorCode === undefined ? {} : { cleverError: { errorCode } };
  return {
    $kind: 'MoveAbort',
    message,
    MoveAbort: { abortCode: bits.toString(), location, ...cleverError },
  };
}

/**
 * The code of an `#[error(code = …)]` constant in what a function aborted with (`ErrorBitset` of Move): four bits
 * of version, four that are 0, then the code. 255 says that the constant has none, and so does an older version.
 */
function errorCodeOf(bits: bigint): number | undefined {
  const code = Number((bits >> 48n) & 0xffn);
  return bits >> 56n === 0xc0n && code !== 0xff ? code : undefined;
}
