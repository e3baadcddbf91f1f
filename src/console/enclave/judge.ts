/** Puts the verdict on a document into words. */
import type { AttestationCode } from 'sui-enclave/attestation';
import { duration } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import type { Tone } from '../parts/verdict.tsx';
import type { Examination } from './examine.ts';

export interface Judgement {
  readonly tone: Tone;
  readonly title: string;
  readonly text: string;
  readonly code?: string;
}

export function judge({ explanation, expectation, subject, now }: Examination): Judgement {
  const { verified, error, document } = explanation;
  if (error) {
    return {
      tone: 'danger',
      ...refusal(error.code),
      code: `${error.code}: ${readFirstLine(error.message)}`,
    };
  }
  const { images, roots } = expectation;
  const isDevelopment = roots.length > 0;
  const isOld = subject.nonce === undefined;
  const doubts = [
    ...(images.length === 0
      ? ['You gave no registers to compare with. This is an enclave, but it may run anything.']
      : []),
    ...(isDevelopment
      ? [
          'You gave the root: anyone who has its key can attest anything. Only AWS’s root proves that the enclave runs on Nitro hardware.',
        ]
      : []),
    ...(isOld
      ? [
          `The document was not requested just now: it is ${duration(Math.max(0, now - (document?.timestamp ?? now)))} old, and anyone who has a copy can show it.`,
        ]
      : []),
  ];
  if (doubts.length === 0) {
    return {
      tone: 'success',
      title: 'Trusted: it runs the image that you expect',
      text: `Every rule passed, under AWS’s root, for a nonce that this page made. Until ${formatTime(verified.validUntil)} UTC the same document would verify again.`,
    };
  }
  const title =
    images.length === 0
      ? 'Genuine, but compared with nothing'
      : isDevelopment
        ? 'Trusted, under a development root'
        : 'Genuine and expected, but not fresh';
  return { tone: 'warning', title, text: doubts.join(' ') };
}

/**
 * Returns the first line of a message. A comparison of registers follows this line, but the page shows the
 * comparison in its own way.
 */
function readFirstLine(message: string): string {
  return visibleText(message.replace(/:?\n.*$/s, ''), 500);
}

/** Returns whether the NSM made the document: all rules before the rules of the policy passed. */
export function isGenuine({ explanation }: Pick<Examination, 'explanation'>): boolean {
  return explanation.rules.find(({ id }) => id === 'signature')?.state === 'passed';
}

const formatTime = (date: Date) => date.toISOString().slice(11, 16);

export type Words = Pick<Judgement, 'title' | 'text'>;

const REFUSALS: Readonly<Partial<Record<AttestationCode, Words>>> = {
  POLICY_PCRS: {
    title: 'Wrong registers: it runs another image',
    text: 'The document is genuine, but its registers are not those that you expect. Both are shown below, register by register.',
  },
  POLICY_DEBUG: {
    title: 'Debug mode: its host can read everything in it',
    text: 'Its registers are all zero, so nothing is known about the code that it runs. Never trust it with anything.',
  },
  POLICY_NONCE: {
    title: 'Replayed: it answers another request',
    text: 'The document is genuine, but does not contain the nonce that this page sent: somebody sent an older document.',
  },
  CERTIFICATE_EXPIRED: {
    title: 'Expired: a certificate is no longer valid',
    text: 'An enclave’s own certificate lasts three hours. Ask the enclave again for a fresh document.',
  },
  CERTIFICATE_NOT_YET_VALID: {
    title: 'Not valid yet',
    text: 'A certificate begins in the future: is the clock of this machine right?',
  },
  CHAIN_ROOT: {
    title: 'Unknown root: AWS did not attest this',
    text: 'The chain begins with a certificate that is not trusted here. If you expect an emulated enclave, add its root above: the file dev-root.pem.',
  },
  CHAIN_SIGNATURE: {
    title: 'Forged: a certificate is not signed by the one above it',
    text: 'Somebody made or changed the chain. Trust nothing in this document.',
  },
  COSE_SIGNATURE_MISMATCH: {
    title: 'Tampered with: the signature does not match',
    text: 'The document was changed after it was signed. Trust nothing in it.',
  },
};

/** Explains a refusal, by the code of the library's error. */
export function refusal(code: AttestationCode): Words {
  const words = REFUSALS[code];
  if (words) return words;
  if (/^(CERTIFICATE|CHAIN)_/.test(code)) {
    return {
      title: 'Refused: the certificates are not valid',
      text: 'AWS issues no such chain. Trust nothing in this document.',
    };
  }
  if (/^(POLICY|TIME)_/.test(code)) {
    return {
      title: 'Not verified: an expected value is invalid',
      text: 'The document was not judged.',
    };
  }
  return {
    title: 'Not an attestation document',
    text: 'The bytes do not have the form that every genuine document has.',
  };
}
