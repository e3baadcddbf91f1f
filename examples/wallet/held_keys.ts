import type { KeyboardEvent } from 'react';

/**
 * Ignores Enter if it is held down. It would send again whenever its button is enabled again, for example
 * after a failure.
 */
export function ignoreHeldEnter(event: KeyboardEvent): void {
  if (event.repeat && event.key === 'Enter') event.preventDefault();
}
