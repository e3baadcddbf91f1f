/**
 * Reads and changes the page's route. A value in a field appears in the address at once, so a reload keeps
 * it.
 */
import { useSyncExternalStore } from 'react';
import { type Field, linkTo, type Route, readRoute } from './route.ts';

export interface CurrentRoute extends Route {
  /** Number of visits by links, Back and Forward. A view starts again after each. */
  readonly visit: number;
}

let current: CurrentRoute = { ...readRoute(location.hash), visit: 0 };
const listeners = new Set<() => void>();

addEventListener('hashchange', () => show({ ...readRoute(location.hash), visit: current.visit + 1 }));

function show(route: CurrentRoute): void {
  current = route;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useRoute(): CurrentRoute {
  return useSyncExternalStore(subscribe, () => current);
}

/** Writes a field into the present entry of the history, without starting a new visit. */
export function setField(name: Field, value: string): void {
  const fields = { ...current.fields, [name]: value };
  show({ ...current, fields });
  try {
    history.replaceState(null, '', linkTo(current.view, fields));
  } catch {
    // Browsers limit how often a page may do this, for example while a key is held down. The next change then
    // writes both values.
  }
}
