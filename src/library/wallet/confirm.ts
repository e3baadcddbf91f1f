/** Asks the user before each signature. */
import type { Transaction } from '@mysten/sui/transactions';
import type { IdentifierString } from '@mysten/wallet-standard';
import { abortable, pause } from '../waiting.ts';
import { ZkLoginError } from '../zklogin/errors.ts';

interface Question {
  /** The name of the wallet. */
  readonly wallet: string;
  readonly address: string;
  /** Network of the signature, such as `sui:mainnet`. */
  readonly chain: IdentifierString;
}

export interface ConfirmTransaction extends Question {
  /** Kind of the request: a transaction to sign or execute. */
  readonly kind: 'transaction';
  /** BCS of the transaction's data: exactly what is signed. */
  readonly bytes: Uint8Array;
  /** The same data, decoded: sender, gas with its owner and budget, inputs and commands. */
  readonly transaction: ReturnType<Transaction['getData']>;
}

export interface ConfirmMessage extends Question {
  /** Kind of the request: a personal message. */
  readonly kind: 'message';
  /** Exactly what is signed: often text in UTF-8. */
  readonly message: Uint8Array;
}

/** The request that the user is asked to allow. */
export type ConfirmRequest = ConfirmTransaction | ConfirmMessage;

/**
 * A function that asks the user, and resolves once the user has confirmed. It rejects with a ZkLoginError
 * (ZKLOGIN_NOT_CONFIRMED) if the user refuses, and with the signal's reason once the signal is aborted.
 */
export type Confirmation = (request: ConfirmRequest, signal?: AbortSignal) => Promise<void>;

/** Pause between an answer and the next question, in milliseconds: longer than a double click. */
const SPACING_MS = 500;

/**
 * Asks one question at a time, so that dialogs don't stack: each question waits for the answer to the
 * previous question, and then for SPACING_MS. Otherwise, a double click could answer a question that the user
 * has not read.
 *
 * @param wait replaces the pause in tests
 */
export function confirmInTurn(
  confirm: (request: ConfirmRequest) => Promise<boolean>,
  wait: (ms: number) => Promise<void> = (ms) => pause(ms, undefined),
): Confirmation {
  let last: Promise<unknown> = Promise.resolve();
  return async (request, signal) => {
    let wasAsked = false;
    const turn = last.then(async () => {
      signal?.throwIfAborted();
      wasAsked = true;
      await ask(confirm, request);
    });
    last = turn.catch(() => {}).then(() => (wasAsked ? wait(SPACING_MS) : undefined));
    await abortable(turn, signal);
  };
}

async function ask(
  confirm: (request: ConfirmRequest) => Promise<boolean>,
  request: ConfirmRequest,
): Promise<void> {
  let answer: unknown;
  try {
    answer = await confirm(request);
  } catch (cause) {
    throw new ZkLoginError('ZKLOGIN_NOT_CONFIRMED', 'confirm failed, so nothing was signed', { cause });
  }
  if (answer !== true) {
    throw new ZkLoginError('ZKLOGIN_NOT_CONFIRMED', 'the user did not confirm, so nothing was signed');
  }
}
