/** Whether the session of the page's own wallet has ended by itself, which the user did not ask for. */
import { useSyncExternalStore } from 'react';

let isExpired = false;
const listeners = new Set<() => void>();

/** For `registerZkLoginWallet`. */
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
