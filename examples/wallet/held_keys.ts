import type { KeyboardEvent } from 'react';

/** Enter that is held down would send again whenever its button is enabled again, as after a failure. */
export function ignoreHeldEnter(event: KeyboardEvent): void {
  if (event.repeat && event.key === 'Enter') event.preventDefault();
}
