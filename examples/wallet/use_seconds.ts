import { useEffect, useState } from 'react';

/** Returns the number of whole seconds since `isRunning` became true, or 0 while it is false. */
export function useSeconds(isRunning: boolean): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!isRunning) return;
    const start = performance.now();
    const timer = setInterval(() => setSeconds(Math.floor((performance.now() - start) / 1000)), 250);
    return () => {
      clearInterval(timer);
      setSeconds(0);
    };
  }, [isRunning]);
  return seconds;
}
