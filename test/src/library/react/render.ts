/** A hook in a component that shows nothing, by React's own renderer: in Node, over the least of a page that it asks for. */
import { createElement, StrictMode } from 'react';
import { onTestFinished, vi } from 'vitest';

export interface Rendered<Result> {
  /** What the hook has returned, the newest last. */
  readonly results: readonly Result[];
  /** The newest. */
  readonly now: Result;
  unmount(): void;
}

/** In StrictMode, where effects run, end and run again, as in pages under development. */
export async function renderHook<Result>(hook: () => Result): Promise<Rendered<Result>> {
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('HTMLIFrameElement', class {});
  const { createRoot } = await import('react-dom/client');
  const root = createRoot(emptyElement());
  const results: Result[] = [];
  const Component = () => {
    results.push(hook());
    return null;
  };
  root.render(createElement(StrictMode, null, createElement(Component)));
  await vi.waitUntil(() => results.length > 0);
  onTestFinished(async () => {
    root.unmount();
    // React has a look at the window once more.
    await new Promise((resolve) => setTimeout(resolve));
    vi.unstubAllGlobals();
  });
  return {
    results,
    get now() {
      return results.at(-1) as Result;
    },
    unmount: () => root.unmount(),
  };
}

function emptyElement(): HTMLElement {
  const ownerDocument = { nodeType: 9, addEventListener() {} };
  const element = { nodeType: 1, nodeName: 'DIV', tagName: 'DIV', textContent: '', addEventListener() {} };
  return { ...element, ownerDocument } as unknown as HTMLElement;
}
