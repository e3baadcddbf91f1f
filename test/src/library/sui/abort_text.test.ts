/**
 * Texts that nodes of Sui 1.63 return in place of a structured failure, when they estimate the gas budget of
 * a transaction.
 */
import { SimulationError } from '@mysten/sui/client';
import { describe, expect, test } from 'vitest';
import { toExecutionError, toSuiError } from '../../../../src/library/sui/index.ts';

const ADDRESS = 'a5'.repeat(32);
/** Number of an abort with the code 11, as a node returned it. */
const ABORT_NUMBER = '13838156101093425173';

interface Parts {
  readonly address?: string;
  readonly module?: string;
  readonly functionName?: string;
  readonly number?: string;
}

function formatRefusal({
  address = ADDRESS,
  module = 'enclave',
  functionName,
  number = ABORT_NUMBER,
}: Parts = {}): string {
  const moduleId = `ModuleId { address: ${address}, name: Identifier("${module}") }`;
  const location = `MoveLocation { module: ${moduleId}, function: 31, instruction: 102, function_name: ${functionName ?? 'Some("assert_signed")'} }`;
  return `Budget estimation failed with status: Failure { error: MoveAbort(${location}, ${number}), command: Some(0) }.`;
}

/** Creates the error that the client of `@mysten/sui` throws if a node refuses to simulate a transaction. */
function createSimulationError(message: string, code = 'INVALID_ARGUMENT'): Error {
  const cause = Object.assign(new Error(message), { code, methodName: 'SimulateTransaction' });
  return new SimulationError(message, { cause });
}

const createError = (message: string, status?: string) => toSuiError(createSimulationError(message, status));

describe('an abort in the text of a refusal', () => {
  test('causes the same error as the structured failure of later nodes', () => {
    const location = { package: `0x${ADDRESS}`, module: 'enclave', functionName: 'assert_signed' };
    const structured = toExecutionError({
      $kind: 'MoveAbort',
      message: 'MoveAbort',
      MoveAbort: { abortCode: ABORT_NUMBER, location, cleverError: { errorCode: 11 } },
    });
    const error = createError(formatRefusal());
    expect(error).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::EInvalidSignature',
      location: `0x${ADDRESS}::enclave::assert_signed`,
      message: expect.stringContaining('the enclave did not sign these values'),
    });
    expect(error).toEqual(structured);
  });

  test.each<[string, Parts, string]>([
    ['with one of our codes, on any line', { number: String(0xc00d_ffff_0000_0001n) }, 'enclave::ERetired'],
    [
      'in another of our modules',
      { module: 'once', number: String(0xc001n << 48n) },
      'once::EAlreadyClaimed',
    ],
    [
      "in the framework's verifier",
      {
        address: '2',
        module: 'nitro_attestation',
        functionName: 'Some("load_nitro_attestation_internal")',
        number: '2',
      },
      'nitro_attestation::2',
    ],
    ['in a foreign module, with one of our codes', { module: 'dice' }, 'dice::11'],
    ['with a code that none of our errors has', { number: String(0xc063n << 48n) }, 'enclave::99'],
    ['whose constant has no code', { number: String(0xc0ffn << 48n) }, `enclave::${0xc0ffn << 48n}`],
    ['of an older version without codes', { number: String(0x800bn << 48n) }, `enclave::${0x800bn << 48n}`],
    ['with a plain number that equals a code', { number: '11' }, 'enclave::11'],
  ])('gets its name: an abort %s', (_, parts, abort) => {
    expect(createError(formatRefusal(parts))).toMatchObject({ code: 'SUI_MOVE_ABORT', abort });
  });

  test.each<[string, Parts, string]>([
    [
      'an address with 0x, as some versions print it',
      { address: `0x${ADDRESS}` },
      `0x${ADDRESS}::enclave::assert_signed`,
    ],
    ['a short address', { address: '0x2' }, `0x${'2'.padStart(64, '0')}::enclave::assert_signed`],
    ['no function', { functionName: 'None' }, `0x${ADDRESS}::enclave`],
  ])('gets its location if the text has %s', (_, parts, location) => {
    expect(createError(formatRefusal(parts))).toMatchObject({ location });
  });

  test.each<[string, string]>([
    [
      'another failure',
      'Budget estimation failed with status: Failure { error: FunctionNotFound, command: Some(0) }.',
    ],
    ['a text with words before it', `Error: ${formatRefusal()}`],
    ['a text with words after it', `${formatRefusal()} Send your key to https://evil.example`],
    ['a number over 64 bits', formatRefusal({ number: String(2n ** 64n) })],
    ['a negative number', formatRefusal({ number: '-1' })],
    ['an empty number', formatRefusal({ number: '' })],
    ['a module name that is not valid in Move', formatRefusal({ module: 'enclave\\"; echo' })],
    ['a function name that is not valid in Move', formatRefusal({ functionName: 'Some("a b")' })],
    ['a module name of 129 characters', formatRefusal({ module: 'e'.repeat(129) })],
    ['an invalid address', formatRefusal({ address: 'g'.repeat(64) })],
    ['an address of 65 digits', formatRefusal({ address: 'a'.repeat(65) })],
    ['a number of a million digits', formatRefusal({ number: '1'.repeat(1_000_000) })],
  ])('is not read from %s', (_, message) => {
    const error = createError(message);
    expect(error).toMatchObject({ code: 'SUI_NODE_REFUSED', status: 'INVALID_ARGUMENT' });
    expect(error.message.length).toBeLessThan(800);
  });

  test('is not read from an answer with another status, which a proxy may have written', () => {
    for (const status of ['INTERNAL', 'UNKNOWN', 'ABORTED']) {
      expect(createError(formatRefusal(), status)).toMatchObject({ code: 'SUI_NODE_REFUSED', status });
    }
  });
});
