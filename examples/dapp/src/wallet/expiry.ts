/** Tells the page when the session of its own wallet expires, even if the user does nothing. */
import { useSyncExternalStore } from 'react';

let isExpired = false;
const listeners = new Set<() => void>();

/** Reports that the session has expired: an argument of `registerZkLoginWallet`. */
export function reportExpired(): void {
  isExpired = true;
  for (const listener of listeners) listener();
}

export function useExpired(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isExpired,
  );
}
