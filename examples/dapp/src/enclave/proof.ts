/** Judges each link of the chain of proof, from the code that runs to the object on Sui. */
import { AttestationError, ClientError } from 'sui-enclave/client';
import { MoveAbortError } from 'sui-enclave/sui';
import { readSuiError } from '../trouble.ts';
import type { Registration, Staleness } from './registration.ts';

/**
 * State of a step. `proven` has a green tick. `checked` is proven too, but another step is refused, so it
 * must not look like a reason to believe the answer. `missing` was not reached.
 */
export type ProofState = 'proven' | 'checked' | 'waiting' | 'missing' | 'wrong';

export const PROOF_STEPS = ['code', 'key', 'signature', 'registration'] as const;
export type ProofStepName = (typeof PROOF_STEPS)[number];

export interface Verdict {
  readonly state: ProofState;
  /** Sentence that says who refused the step, and why. Present only if the state is `wrong`. */
  readonly refusal?: string;
}

export interface Evidence {
  readonly attestation: 'attesting' | 'attested' | 'failed';
  readonly attestationError?: unknown;
  readonly reading: 'none' | 'asking' | 'answered' | 'failed';
  readonly readingError?: unknown;
  readonly registration: Registration;
  /** Error of the chain, if the mint of this reading failed. */
  readonly mintError?: unknown;
}

const STALE: Readonly<Record<Staleness, string>> = {
  unregistered:
    'The registry on Sui refuses it: the key is not registered under the present version of the config.',
  destroyed: 'The registry on Sui refuses it: the admin has destroyed the registration of the key.',
  'too old': 'The registry on Sui refuses it: the key was registered too long ago.',
  retired: 'The registry on Sui refuses it: its config is retired.',
};

/** Explanations of a refused answer, by the library's error code. */
const ANSWER: Readonly<Record<string, string>> = {
  CLIENT_SIGNATURE: 'The library in this page refuses it: no attested key signed these values.',
  CLIENT_INTENT: 'The library in this page refuses it: it was signed for another purpose.',
  CLIENT_EXPECT: 'The library in this page refuses it: it answers another question.',
  CLIENT_STALE: 'The library in this page refuses it: it was signed too long ago.',
  CLIENT_FUTURE: 'The library in this page refuses it: it is dated in the future.',
  CLIENT_MALFORMED_ANSWER: 'The library in this page refuses it: it does not have the form of an answer.',
};

/** Explanations of the contract's aborts, by module and name. */
const ABORTS: Readonly<Record<string, string>> = {
  'enclave::ETooOld': 'it was signed too long ago, by the clock of the chain',
  'enclave::EInFuture': 'it is dated in the future, by the clock of the chain',
  'enclave::EInvalidSignature': 'the registered key did not sign these values',
  'enclave::EInvalidConfigVersion': 'the config allows another image now',
  'enclave::EKeyTooOld': 'the key was registered too long ago',
  'enclave::ERetired': 'the config is retired',
};

export function judgeSteps(evidence: Evidence): Readonly<Record<ProofStepName, Verdict>> {
  const verdicts = {
    code: judgeCode(evidence),
    key: judgeKey(evidence),
    signature: judgeSignature(evidence),
    registration: judgeRegistration(evidence),
  };
  const isRefused = PROOF_STEPS.some((name) => verdicts[name].state === 'wrong');
  if (!isRefused) return verdicts;
  const soften = (verdict: Verdict): Verdict => (verdict.state === 'proven' ? { state: 'checked' } : verdict);
  return {
    code: soften(verdicts.code),
    key: soften(verdicts.key),
    signature: soften(verdicts.signature),
    registration: soften(verdicts.registration),
  };
}

function judgeCode({ attestation, attestationError, readingError }: Evidence): Verdict {
  // If an answer came from another key, the client attests again.
  const error = attestation === 'failed' ? attestationError : readingError;
  if (error instanceof AttestationError) return { state: 'wrong', refusal: describeAttestation(error) };
  if (attestation === 'failed') return { state: 'missing' };
  return { state: attestation === 'attested' ? 'proven' : 'waiting' };
}

function describeAttestation({ code }: AttestationError): string {
  return code === 'POLICY_PCRS'
    ? 'The library in this page refuses its attestation: the registers are those of another image.'
    : 'The library in this page refuses its attestation: the document is not valid.';
}

function judgeKey(evidence: Evidence): Verdict {
  const { state } = judgeCode(evidence);
  return { state: state === 'wrong' ? 'missing' : state };
}

function judgeSignature({ attestation, reading, readingError }: Evidence): Verdict {
  if (attestation === 'failed') return { state: 'missing' };
  if (reading === 'answered') return { state: 'proven' };
  const refusal = readingError instanceof ClientError ? ANSWER[readingError.code] : undefined;
  return refusal === undefined ? { state: 'missing' } : { state: 'wrong', refusal };
}

function judgeRegistration({ attestation, registration, reading, mintError }: Evidence): Verdict {
  if (attestation !== 'attested' || reading === 'failed') return { state: 'missing' };
  if (registration.state === 'stale') return { state: 'wrong', refusal: STALE[registration.why] };
  const abort = readSuiError(mintError);
  if (abort instanceof MoveAbortError) {
    const reason = ABORTS[abort.abort] ?? `it aborted with ${abort.abort}`;
    return { state: 'wrong', refusal: `The contract on Sui refuses it: ${reason}.` };
  }
  if (registration.state === 'failed') return { state: 'missing' };
  return { state: registration.state === 'registered' ? 'proven' : 'waiting' };
}
