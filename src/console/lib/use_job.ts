import { useEffect, useRef, useState } from 'react';

/** Long work that a click starts, and that a click can end. */
export interface Job {
  /** Present step of the job in words; undefined between jobs. */
  readonly step: string | undefined;
  /** Starts a job, and ends the previous job if it is still running. */
  start(work: (job: { signal: AbortSignal; step: (words: string) => void }) => Promise<void>): void;
  cancel(): void;
}

/** @param failed called with the error of a job that was not cancelled */
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
