/** The route of the page: what a view writes into a field is in the address at once, so a reload keeps it. */
import { useSyncExternalStore } from 'react';
import { type Field, linkTo, type Route, readRoute } from './route.ts';

export interface CurrentRoute extends Route {
  /** Counts links, Back and Forward: after each, a view begins anew. */
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

/** Writes a field in place of the present entry of the history, without a new visit. */
export function setField(name: Field, value: string): void {
  const fields = { ...current.fields, [name]: value };
  show({ ...current, fields });
  try {
    history.replaceState(null, '', linkTo(current.view, fields));
  } catch {
    // Browsers limit how often a page may do so, as while a key is held down; the next change does it.
  }
}
