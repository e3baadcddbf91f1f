/**
 * Texts that nodes of Sui 1.63 return in place of a structured failure, when they build a transaction without
 * a gas budget.
 */
import { SimulationError } from '@mysten/sui/client';
import { describe, expect, test } from 'vitest';
import { toExecutionError, toSuiError } from '../../../../src/library/sui/index.ts';

const ADDRESS = 'a5'.repeat(32);
/** Text for an abort with the code 11, as a node returned it. */
const NUMBER = '13838156101093425173';

interface Parts {
  readonly address?: string;
  readonly module?: string;
  readonly name?: string;
  readonly number?: string;
}

function refusal({ address = ADDRESS, module = 'enclave', name, number = NUMBER }: Parts = {}): string {
  const moduleId = `ModuleId { address: ${address}, name: Identifier("${module}") }`;
  const location = `MoveLocation { module: ${moduleId}, function: 31, instruction: 102, function_name: ${name ?? 'Some("assert_signed")'} }`;
  return `Budget estimation failed with status: Failure { error: MoveAbort(${location}, ${number}), command: Some(0) }.`;
}

/** Creates the error that the client of `@mysten/sui` throws if a node refuses to simulate a transaction. */
function thrown(message: string, code = 'INVALID_ARGUMENT'): Error {
  const cause = Object.assign(new Error(message), { code, methodName: 'SimulateTransaction' });
  return new SimulationError(message, { cause });
}

const createError = (message: string, status?: string) => toSuiError(thrown(message, status));

describe('an abort in the text of a refusal', () => {
  test('is the same error as the structured failure of later nodes', () => {
    const location = { package: `0x${ADDRESS}`, module: 'enclave', functionName: 'assert_signed' };
    const structured = toExecutionError({
      $kind: 'MoveAbort',
      message: 'MoveAbort',
      MoveAbort: { abortCode: NUMBER, location, cleverError: { errorCode: 11 } },
    });
    const error = createError(refusal());
    expect(error).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::EInvalidSignature',
      location: `0x${ADDRESS}::enclave::assert_signed`,
      message: expect.stringContaining('the enclave did not sign these values'),
    });
    expect(error).toEqual(structured);
  });

  test.each<[string, Parts, string]>([
    ['by its code, whatever the line', { number: String(0xc00d_ffff_0000_0001n) }, 'enclave::ERetired'],
    [
      'of another of our modules',
      { module: 'once', number: String(0xc001n << 48n) },
      'once::EAlreadyClaimed',
    ],
    [
      "of the framework's verifier",
      {
        address: '2',
        module: 'nitro_attestation',
        name: 'Some("load_nitro_attestation_internal")',
        number: '2',
      },
      'nitro_attestation::2',
    ],
    ['of another module with such a code', { module: 'dice' }, 'dice::11'],
    ['with a code that none of our errors has', { number: String(0xc063n << 48n) }, 'enclave::99'],
    ['whose constant has no code', { number: String(0xc0ffn << 48n) }, `enclave::${0xc0ffn << 48n}`],
    [
      'of an older version, which has no codes',
      { number: String(0x800bn << 48n) },
      `enclave::${0x800bn << 48n}`,
    ],
    ['with a plain number that looks like a code', { number: '11' }, 'enclave::11'],
  ])('is named: %s', (_, parts, abort) => {
    expect(createError(refusal(parts))).toMatchObject({ code: 'SUI_MOVE_ABORT', abort });
  });

  test.each<[string, Parts, string]>([
    [
      'with the 0x that some versions print',
      { address: `0x${ADDRESS}` },
      `0x${ADDRESS}::enclave::assert_signed`,
    ],
    ['of a short address', { address: '0x2' }, `0x${'2'.padStart(64, '0')}::enclave::assert_signed`],
    ['without a function', { name: 'None' }, `0x${ADDRESS}::enclave`],
  ])('names the place %s', (_, parts, location) => {
    expect(createError(refusal(parts))).toMatchObject({ location });
  });

  test.each<[string, string]>([
    [
      'another failure',
      'Budget estimation failed with status: Failure { error: FunctionNotFound, command: Some(0) }.',
    ],
    ['words before it', `Error: ${refusal()}`],
    ['words after it', `${refusal()} Send your key to https://evil.example`],
    ['a number over 64 bits', refusal({ number: String(2n ** 64n) })],
    ['a negative number', refusal({ number: '-1' })],
    ['no number', refusal({ number: '' })],
    ['a name that is not valid in Move', refusal({ module: 'enclave\\"; echo' })],
    ['a function name that is not valid in Move', refusal({ name: 'Some("a b")' })],
    ['a name without end', refusal({ module: 'e'.repeat(129) })],
    ['an invalid address', refusal({ address: 'g'.repeat(64) })],
    ['an address without end', refusal({ address: 'a'.repeat(65) })],
    ['text without end', refusal({ number: '1'.repeat(1_000_000) })],
  ])('is not read from %s', (_, message) => {
    const error = createError(message);
    expect(error).toMatchObject({ code: 'SUI_NODE_REFUSED', status: 'INVALID_ARGUMENT' });
    expect(error.message.length).toBeLessThan(800);
  });

  test('is not read from an answer with another status: a proxy may have written it', () => {
    for (const status of ['INTERNAL', 'UNKNOWN', 'ABORTED']) {
      expect(createError(refusal(), status)).toMatchObject({ code: 'SUI_NODE_REFUSED', status });
    }
  });
});
