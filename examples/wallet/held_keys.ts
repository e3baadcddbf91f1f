import type { KeyboardEvent } from 'react';

/**
 * Ignores the repeated events of an Enter key that is held down. They would send again as soon as the button
 * is enabled again, for example after a failure.
 */
export function ignoreHeldEnter(event: KeyboardEvent): void {
  if (event.repeat && event.key === 'Enter') event.preventDefault();
}
