/** Asks the enclave one question at a time. */
import { useEffect, useRef, useState } from 'react';
import type { EnclaveClient } from 'sui-enclave/client';
import { askWeather, type Precision, type Reading } from './weather.ts';

export type ReadingState =
  | { readonly status: 'none' }
  | { readonly status: 'asking' }
  | { readonly status: 'answered'; readonly reading: Reading }
  | { readonly status: 'failed'; readonly error: unknown };

export type UsedReading = ReadingState & {
  /** Asks a question, and cancels the previous question. Does nothing while there is no attested enclave. */
  ask(location: string, precision: Precision): void;
};

export function useReading(client: EnclaveClient | undefined): UsedReading {
  const [state, setState] = useState<ReadingState>({ status: 'none' });
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  return {
    ...state,
    ask(location, precision) {
      if (client === undefined) return;
      controller.current?.abort();
      controller.current = new AbortController();
      const { signal } = controller.current;
      setState({ status: 'asking' });
      askWeather(client, precision, location, signal)
        .then((reading): ReadingState => ({ status: 'answered', reading }))
        .catch((error: unknown): ReadingState => ({ status: 'failed', error }))
        .then((next) => {
          if (!signal.aborted) setState(next);
        });
    },
  };
}
