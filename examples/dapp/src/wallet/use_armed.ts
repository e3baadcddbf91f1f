import { useEffect, useState } from 'react';

/** Time for which a question must be shown before it can be answered with yes, in milliseconds. */
export const ARMING_MS = 500;

/**
 * Returns whether the component has been shown for ARMING_MS: a question may open under a click that was
 * meant for something else, such as the second one of a double click.
 */
export function useArmed(): boolean {
  const [isArmed, setArmed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(setArmed, ARMING_MS, true);
    return () => clearTimeout(timer);
  }, []);
  return isArmed;
}
