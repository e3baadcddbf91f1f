import { useEffect, useRef, useState } from 'react';

/** Long work that a click starts, and that another click can end. */
export interface Job {
  /** Present step of the job in words; undefined between jobs. */
  readonly step: string | undefined;
  /** Starts a job, and ends the previous job if it is still running. */
  start(work: (job: { signal: AbortSignal; step: (words: string) => void }) => Promise<void>): void;
  cancel(): void;
}

/** @param onError called with the error of a job that was not cancelled */
export function useJob(onError: (error: unknown) => void): Job {
  const [step, setStep] = useState<string>();
  const runningJob = useRef<AbortController>(undefined);
  useEffect(() => () => runningJob.current?.abort(), []);
  const cancel = () => {
    runningJob.current?.abort();
    runningJob.current = undefined;
    setStep(undefined);
  };
  return {
    step,
    cancel,
    start(work) {
      cancel();
      const controller = new AbortController();
      runningJob.current = controller;
      const { signal } = controller;
      const isCurrent = () => runningJob.current === controller;
      setStep('Starting');
      work({ signal, step: (words) => isCurrent() && setStep(words) })
        .catch((error: unknown) => {
          if (isCurrent()) onError(error);
        })
        .finally(() => {
          if (isCurrent()) setStep(undefined);
        });
    },
  };
}
