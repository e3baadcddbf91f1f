/** Explains errors to people: each kind of problem has its own text and remedy. */
import {
  AttestationError,
  ClientError,
  EnclaveRefusedError,
  EnclaveUnreachableError,
} from 'sui-enclave/client';
import { MoveAbortError, toSuiError } from 'sui-enclave/sui';
import type { Staleness } from './enclave/registration.ts';

export interface Trouble {
  /**
   * Kind of problem. `silent`: the server does not answer. `lying`: the server that answers is not the
   * enclave. `stale`: it is the enclave, but Sui does not know its key.
   */
  readonly kind: 'silent' | 'lying' | 'stale' | 'other';
  readonly title: string;
  readonly text: string;
  readonly advice: string;
  /** The library's code and message, for the operator of the page. */
  readonly detail?: string;
}

const STALE: Readonly<Record<Staleness, string>> = {
  unregistered: 'its key is not registered. It has probably restarted, and a restart makes a new key',
  destroyed: 'the registration of its key was destroyed by the admin',
  'too old': 'its key was registered too long ago',
  retired: 'the config that its key is registered under has been retired',
};

/** Explains that the enclave is genuine, but that no contract accepts its answers. */
export function staleTrouble(why: Staleness): Trouble {
  return {
    kind: 'stale',
    title: 'The enclave is genuine, but Sui does not accept its key',
    text: `You can read what it signs, and it is attested. It can't be minted: ${STALE[why]}.`,
    advice:
      why === 'retired'
        ? 'Nothing can be minted under this config any more. Ask the operator of this page for its successor.'
        : 'Ask the operator of the enclave to register its key, then check again. Nothing of yours is at risk.',
  };
}

/** @param error that `EnclaveClient` threw @param url of the enclave */
export function enclaveTrouble(error: unknown, url: string): Trouble {
  const detail = describeDetail(error);
  if (isSilence(error)) {
    return {
      kind: 'silent',
      title: 'The enclave does not answer',
      text: `No server answers at ${url}, or only a proxy in front of it does. Nothing was sent to Sui.`,
      advice: 'Check that you are online, and try again in a minute. If it stays silent, tell its operator.',
      ...detail,
    };
  }
  if (error instanceof EnclaveRefusedError) {
    return {
      kind: 'other',
      title: 'The enclave refused the question',
      text: error.serverMessage ?? 'It gave no reason.',
      advice: 'Change the place, and ask again.',
      ...detail,
    };
  }
  if (isLie(error)) {
    return {
      kind: 'lying',
      title: 'What answers is not the enclave',
      text: `The server at ${url} can't prove that it runs the expected code, or its answer is not a fresh, signed answer to your question. The answer is not shown.`,
      advice:
        'Sign nothing here, and tell the operator of this page. Trying again does not make it trustworthy.',
      ...detail,
    };
  }
  return otherTrouble(error);
}

/**
 * Returns whether an error means that the enclave does not answer. A status of at least 500 comes from a
 * proxy, or from an enclave that can't work.
 */
function isSilence(error: unknown): boolean {
  return (
    error instanceof EnclaveUnreachableError || (error instanceof EnclaveRefusedError && error.status >= 500)
  );
}

/** Returns whether the enclave's side caused an error, and not a mistake in this page's own settings. */
function isLie(error: unknown): boolean {
  if (error instanceof ClientError) return error.code !== 'CLIENT_OPTION';
  return error instanceof AttestationError && !/^POLICY_(INVALID|ZERO_IMAGE)$/.test(error.code);
}

/** @param error that a wallet, the node or the page itself threw */
export function otherTrouble(error: unknown): Trouble {
  const suiError = readSuiError(error);
  if (suiError instanceof MoveAbortError) {
    return {
      kind: 'stale',
      title: 'The contract refused the reading',
      text: `Nothing was minted. ${suiError.message}`,
      advice:
        'Ask the enclave again, and mint the new reading. If that is refused too, tell the operator of the enclave.',
      ...describeDetail(suiError),
    };
  }
  const code = findCode(suiError);
  const words = WORDS[code ?? ''];
  return {
    kind: 'other',
    title: words?.title ?? 'That did not work',
    text: words?.text ?? (suiError instanceof Error ? suiError.message : String(suiError)),
    advice: words?.advice ?? 'Try again.',
    ...describeDetail(suiError),
  };
}

/** Says that the session has ended while the page was open. */
export const EXPIRED: Trouble = {
  kind: 'other',
  title: 'Your session has expired',
  text: 'A login is valid for a few epochs of Sui. Your objects are still yours, at the same address.',
  advice: 'Connect again.',
};

const WORDS: Readonly<Record<string, Pick<Trouble, 'title' | 'text' | 'advice'>>> = {
  ZKLOGIN_NOT_CONFIRMED: {
    title: 'You did not sign',
    text: 'Nothing was signed and nothing was sent.',
    advice: 'Mint again when you want to.',
  },
  ZKLOGIN_EXPIRED: {
    title: 'Your session has expired',
    text: 'Nothing was signed. A login is valid for a few epochs of Sui.',
    advice: 'Connect again, then mint.',
  },
  SUI_GAS: {
    title: 'Your account has too little SUI',
    text: 'The gas of a transaction is paid in SUI. Nothing was executed.',
    advice: 'Send some SUI to your address, then mint again.',
  },
  SUI_NODE_UNREACHABLE: {
    title: 'The Sui node does not answer',
    text: 'The page asks one node of Sui, and it is silent. Nothing was sent.',
    advice: 'Check that you are online, and try again in a minute.',
  },
};

/** Returns the SuiError of an error that a Sui client threw. Only a SuiError has a code and advice. */
export function readSuiError(error: unknown): unknown {
  try {
    return toSuiError(error);
  } catch {
    return error;
  }
}

function findCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function describeDetail(error: unknown): { readonly detail?: string } {
  const code = findCode(error);
  return error instanceof Error && code !== undefined ? { detail: `${code}: ${error.message}` } : {};
}
