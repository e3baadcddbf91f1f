/** Puts the verdict on a call into words. */
import { AttestationError } from 'sui-enclave/attestation';
import { type ClientCode, ClientError, EnclaveRefusedError } from 'sui-enclave/client';
import { type Judgement, refusal, type Words } from '../enclave/judge.ts';
import { RequestError } from '../lib/request.ts';
import { visibleText } from '../lib/visible_text.ts';
import type { CallOutcome } from './call.ts';

const REFUSALS: Readonly<Partial<Record<ClientCode, Words>>> = {
  CLIENT_SIGNATURE: {
    title: 'Tampered with: no attested key signed these bytes',
    text: 'The signature does not fit the answer and the schema: somebody on the way changed one of them.',
  },
  CLIENT_MALFORMED_ANSWER: {
    title: 'Not a signed answer of this type',
    text: 'The answer does not have the type that the schema names.',
  },
  CLIENT_INTENT: {
    title: 'Another type: the answer has another intent',
    text: 'The enclave signed an answer of a type other than the one that the schema names.',
  },
  CLIENT_UNREACHABLE: { title: 'No answer', text: 'The enclave did not answer.' },
  CLIENT_SEALED_ANSWER: {
    title: 'Tampered with: the answer was not sealed for this request',
    text: 'Somebody on the way changed the answer, or answered in place of the enclave.',
  },
  CLIENT_UNAUTHENTICATED: {
    title: 'Not sealed: anybody on the way may have answered',
    text: 'The answer to a sealed request was not encrypted.',
  },
};

/**
 * Returns the verdict on a call.
 *
 * @param difference between the struct on chain and the signed type; undefined if they are equal or were
 *   not compared
 */
export function judgeCall({ verification, request }: CallOutcome, difference: string | undefined): Judgement {
  if ('error' in verification) return judgeError(verification.error, verification.otherKey);
  if (difference !== undefined) {
    return {
      tone: 'danger',
      title: 'The schema differs from the contract',
      text: `The contract would not accept this answer as shown here: ${visibleText(difference, 300)}.`,
    };
  }
  const { images, roots } = request.expectation;
  const doubts = [
    ...(images.length === 0
      ? ['You gave no registers to compare with. An enclave signed the answer, but it may run anything.']
      : []),
    ...(roots.length > 0 ? ['You gave the root: anyone who has its key can attest anything.'] : []),
  ];
  if (doubts.length > 0) {
    const title =
      images.length === 0
        ? 'Signed by an attested key, compared with nothing'
        : 'Signed, under a development root';
    return { tone: 'warning', title, text: doubts.join(' ') };
  }
  return {
    tone: 'success',
    title: 'Signed by the enclave that you expect',
    text: 'The key is attested under AWS’s root, for the registers that you gave, and it signed exactly the bytes below.',
  };
}

function judgeError(error: unknown, otherKey: string | undefined): Judgement {
  const tone = 'danger';
  if (error instanceof AttestationError) {
    return { tone, ...refusal(error.code), code: formatCode(error) };
  }
  if (error instanceof EnclaveRefusedError) {
    const reason = [error.serverCode, error.serverMessage].filter((text) => text !== null).join(': ');
    return {
      tone: 'warning',
      title: `The enclave refused the request with status ${error.status}`,
      text:
        reason === '' ? 'It gave no reason.' : `Its reason, which is not signed: ${visibleText(reason, 400)}`,
    };
  }
  if (error instanceof ClientError) {
    if (error.code === 'CLIENT_SIGNATURE' && otherKey !== undefined) {
      return {
        tone,
        title: 'Another key: the answer is signed, but not by an attested key',
        text: `The key ${otherKey} signed the answer, but no enclave at this address attests that key.`,
        code: formatCode(error),
      };
    }
    const words = REFUSALS[error.code] ?? { title: 'Refused', text: 'The answer can’t be trusted.' };
    return { tone, ...words, code: formatCode(error) };
  }
  if (error instanceof RequestError)
    return { tone, title: 'No answer', text: visibleText(error.message, 400) };
  const message = error instanceof Error ? error.message : 'It failed for an unknown reason.';
  return { tone, title: 'The call failed in this page', text: visibleText(message, 400) };
}

function formatCode({ code, message }: { readonly code: string; readonly message: string }): string {
  return `${code}: ${visibleText(message.replace(/:?\n.*$/s, ''), 500)}`;
}
