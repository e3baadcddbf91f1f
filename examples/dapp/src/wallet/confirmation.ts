/** The question that the wallet asks before it signs, between the wallet, which knows no React, and the dialog. */
import { useSyncExternalStore } from 'react';
import type { ConfirmRequest } from 'sui-enclave/wallet';

export interface Question {
  readonly request: ConfirmRequest;
  answer(yes: boolean): void;
}

const listeners = new Set<() => void>();
let open: Question | undefined;

function show(question: Question | undefined): void {
  open = question;
  for (const listener of listeners) listener();
}

export const confirmation = {
  /** Resolves to true only if the user has clicked "Sign". The wallet asks one question at a time. */
  ask: (request: ConfirmRequest): Promise<boolean> =>
    new Promise((resolve) => {
      show({
        request,
        answer(yes) {
          show(undefined);
          resolve(yes);
        },
      });
    }),
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useQuestion(): Question | undefined {
  return useSyncExternalStore(subscribe, () => open);
}
