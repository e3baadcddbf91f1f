import { useSyncExternalStore } from 'react';

function subscribe(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}

/** The fragment of the address, with its `#`. */
export function useHash(): string {
  return useSyncExternalStore(subscribe, () => location.hash);
}
