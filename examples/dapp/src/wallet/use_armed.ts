import { useEffect, useState } from 'react';

/** Time in milliseconds for which a question must be shown before the user can answer yes. */
export const ARMING_MS = 500;

/**
 * Returns whether the component has been shown for ARMING_MS. A question may appear under a click that was
 * meant for something else, such as the second click of a double click.
 */
export function useArmed(): boolean {
  const [isArmed, setArmed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(setArmed, ARMING_MS, true);
    return () => clearTimeout(timer);
  }, []);
  return isArmed;
}
