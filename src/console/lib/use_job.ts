import { useEffect, useRef, useState } from 'react';

/** A long work that a click began, and a click may end. */
export interface Job {
  /** Present step of the job in words; undefined between jobs. */
  readonly step: string | undefined;
  /** Ends the job before it, if that still runs. */
  start(work: (job: { signal: AbortSignal; step: (words: string) => void }) => Promise<void>): void;
  cancel(): void;
}

/** @param failed receives the error of a job, unless it was cancelled */
export function useJob(failed: (error: unknown) => void): Job {
  const [step, setStep] = useState<string>();
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  const cancel = () => {
    current.current?.abort();
    current.current = undefined;
    setStep(undefined);
  };
  return {
    step,
    cancel,
    start(work) {
      cancel();
      const controller = new AbortController();
      current.current = controller;
      const { signal } = controller;
      const isCurrent = () => current.current === controller;
      setStep('Starting');
      work({ signal, step: (words) => isCurrent() && setStep(words) })
        .catch((error: unknown) => {
          if (isCurrent()) failed(error);
        })
        .finally(() => {
          if (isCurrent()) setStep(undefined);
        });
    },
  };
}
