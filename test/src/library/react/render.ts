/**
 * Runs a hook in React, without a browser. Its component renders nothing, so React needs little of the page.
 */
import { act, createElement, StrictMode } from 'react';
import { onTestFinished, vi } from 'vitest';

export interface Rendered<Result> {
  /** Results of the hook in each render, the latest last. */
  readonly results: readonly Result[];
  latest(): Result;
  /** Renders the component again, with another hook if the caller passes one. */
  rerender(hook?: () => Result): Promise<void>;
  unmount(): Promise<void>;
}

// These fakes have only the properties that React reads.
const LISTENER_METHODS = { addEventListener() {}, removeEventListener() {} };
const PAGE = { ...LISTENER_METHODS, nodeType: 9, activeElement: null };
const WINDOW = { ...LISTENER_METHODS, document: PAGE, HTMLIFrameElement: class {} };
const ELEMENT = { ...LISTENER_METHODS, nodeType: 1, nodeName: 'DIV', tagName: 'DIV', ownerDocument: PAGE };

function stubPage(): void {
  vi.stubGlobal('window', WINDOW);
  vi.stubGlobal('document', PAGE);
}

/**
 * Does work, and waits until React has rendered its effects. Without this function, React renders when it
 * chooses, as on a page.
 */
export async function complete(work: () => unknown): Promise<void> {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  try {
    await act(async () => {
      await work();
    });
  } finally {
    vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', false);
  }
}

/** @param strict whether to use StrictMode, which runs each effect twice */
export async function renderHook<Result>(
  hook: () => Result,
  { strict = false } = {},
): Promise<Rendered<Result>> {
  stubPage();
  const { createRoot } = await import('react-dom/client');
  const container: object = { ...ELEMENT };
  const root = createRoot(container as Element);
  const unmount = async () => await complete(() => root.unmount());
  onTestFinished(async () => {
    // Another hook of the same test may have removed the page.
    stubPage();
    await unmount();
    vi.unstubAllGlobals();
  });
  const results: Result[] = [];
  const Component = ({ use }: { readonly use: () => Result }) => {
    results.push(use());
    return null;
  };
  let currentHook = hook;
  const render = async () => {
    const element = createElement(Component, { use: currentHook });
    await complete(() => root.render(strict ? createElement(StrictMode, null, element) : element));
  };
  await render();
  return {
    results,
    latest() {
      const latest = results.at(-1);
      if (latest === undefined) throw new Error('the hook has not rendered');
      return latest;
    },
    async rerender(nextHook = currentHook) {
      currentHook = nextHook;
      await render();
    },
    unmount,
  };
}
