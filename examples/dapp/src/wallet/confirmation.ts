/**
 * Passes the wallet's questions to the dialog: the user must agree before the wallet signs. The wallet's code
 * does not depend on React.
 */
import { useSyncExternalStore } from 'react';
import type { ConfirmRequest } from 'sui-enclave/wallet';

export interface Question {
  /** Id that no other question has. */
  readonly id: number;
  readonly request: ConfirmRequest;
  /** Answers the question. Only the first answer counts. */
  answer(yes: boolean): void;
}

const listeners = new Set<() => void>();
let open: Question | undefined;
let count = 0;

function show(question: Question | undefined): void {
  open = question;
  for (const listener of listeners) listener();
}

export const confirmation = {
  /**
   * Asks the user. Resolves to true only if the user clicks "Sign". A new question answers an open one with
   * no.
   */
  ask: (request: ConfirmRequest): Promise<boolean> =>
    new Promise((resolve) => {
      open?.answer(false);
      count += 1;
      const question: Question = {
        id: count,
        request,
        answer(yes) {
          // The second click of a double click must not answer the next question.
          if (open !== question) return;
          show(undefined);
          resolve(yes);
        },
      };
      show(question);
    }),
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useQuestion(): Question | undefined {
  return useSyncExternalStore(subscribe, () => open);
}
