/**
 * The question that the wallet asks before it signs, between the wallet, which knows no React, and the
 * dialog.
 */
import { useSyncExternalStore } from 'react';
import type { ConfirmRequest } from 'sui-enclave/wallet';

export interface Question {
  /** Id of this question alone. */
  readonly id: number;
  readonly request: ConfirmRequest;
  /** The first answer counts. */
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
  /** Resolves to true only if the user has clicked "Sign". The wallet asks one question at a time. */
  ask: (request: ConfirmRequest): Promise<boolean> =>
    new Promise((resolve) => {
      open?.answer(false);
      count += 1;
      const question: Question = {
        id: count,
        request,
        answer(yes) {
          // The second click of a double click must not take the next question away.
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
