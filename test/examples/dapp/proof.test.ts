/** Tests the example dapp's chain of proof: a refusal is red, and no other step is then green. */
import { expect, test } from 'vitest';
import {
  type Evidence,
  judgeSteps,
  PROOF_STEPS,
  type ProofState,
} from '../../../examples/dapp/src/enclave/proof.ts';
import { AttestationError } from '../../../src/library/attestation/index.ts';
import { ClientError, EnclaveUnreachableError } from '../../../src/library/client/index.ts';
import { MoveAbortError, SuiError } from '../../../src/library/sui/index.ts';

const HONEST: Evidence = {
  attestation: 'attested',
  reading: 'answered',
  registration: { state: 'registered', enclaveId: `0x${'1'.repeat(64)}` },
};

function judgeStates(evidence: Partial<Evidence>): ProofState[] {
  const verdicts = judgeSteps({ ...HONEST, ...evidence });
  return PROOF_STEPS.map((name) => verdicts[name].state);
}

/** Returns the text of the only refusal. */
function findRefusal(evidence: Partial<Evidence>): string | undefined {
  const refusals = Object.values(judgeSteps({ ...HONEST, ...evidence })).flatMap(
    ({ refusal }) => refusal ?? [],
  );
  expect(refusals).toHaveLength(1);
  return refusals[0];
}

test('an honest enclave has four green ticks, the third only with its answer', () => {
  expect(judgeStates({})).toEqual(['proven', 'proven', 'proven', 'proven']);
  expect(judgeStates({ reading: 'none' })).toEqual(['proven', 'proven', 'missing', 'proven']);
  const attesting = {
    attestation: 'attesting',
    reading: 'none',
    registration: { state: 'checking' },
  } as const;
  expect(judgeStates(attesting)).toEqual(['waiting', 'waiting', 'missing', 'missing']);
});

test('another image: the attestation is red, and no later step was reached', () => {
  const evidence = {
    attestation: 'failed',
    attestationError: new AttestationError('POLICY_PCRS', 'other registers'),
    reading: 'none',
    registration: { state: 'checking' },
  } as const;
  expect(judgeStates(evidence)).toEqual(['wrong', 'missing', 'missing', 'missing']);
  expect(findRefusal(evidence)).toContain('registers are those of another image');
});

test('an answer from a key that can’t be attested: the attestation is red', () => {
  const readingError = new AttestationError('CHAIN_ROOT', 'another root');
  expect(judgeStates({ reading: 'failed', readingError })).toEqual([
    'wrong',
    'missing',
    'missing',
    'missing',
  ]);
});

test.each([
  ['CLIENT_SIGNATURE', 'no attested key signed these values'],
  ['CLIENT_EXPECT', 'another question'],
  ['CLIENT_STALE', 'too long ago'],
] as const)('%s: the signature is red, and no tick is green', (code, words) => {
  const evidence = { reading: 'failed', readingError: new ClientError(code, 'no') } as const;
  expect(judgeStates(evidence)).toEqual(['checked', 'checked', 'wrong', 'missing']);
  expect(findRefusal(evidence)).toContain(words);
});

test.each(['unregistered', 'destroyed', 'too old', 'retired'] as const)('%s: the registry is red', (why) => {
  const evidence = { registration: { state: 'stale', why } } as const;
  expect(judgeStates(evidence)).toEqual(['checked', 'checked', 'checked', 'wrong']);
  expect(findRefusal(evidence)).toMatch(/^The registry on Sui refuses it: /);
});

test.each([
  ['enclave::ETooOld', 'signed too long ago'],
  ['enclave::EInvalidConfigVersion', 'another image'],
  ['once::EUsed', 'once::EUsed'],
])('%s at the mint: the contract is red', (abort, words) => {
  const evidence = { mintError: new MoveAbortError(abort, '0x2::m::f', 'no') };
  expect(judgeStates(evidence)).toEqual(['checked', 'checked', 'checked', 'wrong']);
  expect(findRefusal(evidence)).toMatch(/^The contract on Sui refuses it: /);
  expect(findRefusal(evidence)).toContain(words);
});

test.each([
  [
    'a silent enclave',
    { reading: 'failed', readingError: new EnclaveUnreachableError('x', 'timeout', null, {}) },
  ],
  ['a silent node', { registration: { state: 'failed', error: new Error('no') } }],
  ['too little gas', { mintError: new SuiError('SUI_GAS', 'no') }],
] satisfies [string, Partial<Evidence>][])('%s is not a refusal', (_, evidence) => {
  expect(judgeStates(evidence)).not.toContain('wrong');
  expect(judgeStates(evidence)).toContain('proven');
});
