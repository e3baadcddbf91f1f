/**
 * A fake of the parts of a page that Node lacks: window, document, location, history, session storage, and
 * the origin of messages.
 */
import { beforeEach, vi } from 'vitest';

export const ORIGIN = 'https://dapp.example';

/** A login window, as seen by the page that opened it. */
export class OpenedWindow {
  closed = false;
  opener: unknown = 'the page';
  /** URLs to which the page sent the window, each with the window's opener at that time. */
  readonly sentTo: { readonly url: URL; readonly opener: unknown }[] = [];
  readonly location = {
    replace: (url: string) => {
      this.sentTo.push({ url: new URL(url), opener: this.opener });
    },
  };
  close(): void {
    this.closed = true;
  }
}

class FakeDocument extends EventTarget {
  visibilityState = 'visible';
  focused = true;
  /** Text of the page, empty at first. */
  text = '';
  readonly body = {
    replaceChildren: (line: { textContent: string }) => {
      this.text = line.textContent;
    },
  };
  hasFocus(): boolean {
    return this.focused;
  }
  createElement() {
    return { setAttribute() {}, textContent: '' };
  }
}

export class FakePage {
  readonly stored = new Map<string, string>();
  readonly opened: OpenedWindow[] = [];
  readonly document = new FakeDocument();
  /** URLs to which the page went, in order. */
  readonly destinations: string[] = [];
  /** URLs in the address bar, the latest last. */
  readonly addresses = [`${ORIGIN}/app?tab=1#part`];
  readonly window = Object.assign(new EventTarget(), {
    open: () => this.#open(),
    close: () => {
      this.isClosed = true;
    },
    top: undefined as unknown,
  });
  blocksWindows = false;
  isClosed = false;
  /** Origin of the messages that arrive. */
  messageOrigin = ORIGIN;

  constructor() {
    this.window.top = this.window;
  }

  get latest(): OpenedWindow {
    return this.opened.at(-1) ?? new OpenedWindow();
  }

  /** Sets the globals of the page. */
  install(): void {
    const page = this;
    const location = {
      origin: ORIGIN,
      get href() {
        return page.addresses.at(-1) ?? '';
      },
      get pathname() {
        return new URL(this.href).pathname;
      },
      assign: (url: string) => page.destinations.push(url),
      replace: (url: string) => page.destinations.push(url),
    };
    class Channel extends BroadcastChannel {
      override addEventListener(type: string, listener: unknown): void {
        super.addEventListener(type, (event) => {
          const data = 'data' in event ? event.data : undefined;
          const received = new MessageEvent('message', { data, origin: page.messageOrigin });
          if (typeof listener === 'function') listener(received);
        });
      }
    }
    vi.stubGlobal('window', this.window);
    vi.stubGlobal('document', this.document);
    vi.stubGlobal('location', location);
    vi.stubGlobal('history', {
      replaceState: (_: unknown, __: string, url: string) => this.addresses.push(new URL(url, ORIGIN).href),
    });
    vi.stubGlobal('sessionStorage', {
      getItem: (key: string) => this.stored.get(key) ?? null,
      setItem: (key: string, value: string) => this.stored.set(key, value),
      removeItem: (key: string) => this.stored.delete(key),
    });
    vi.stubGlobal('BroadcastChannel', Channel);
  }

  /** Makes the session storage throw, as in a browser that blocks the site's data. */
  blockStorage(): void {
    const get = () => {
      throw new DOMException('Access is denied for this document.', 'SecurityError');
    };
    Object.defineProperty(globalThis, 'sessionStorage', { get, configurable: true });
  }

  #open(): OpenedWindow | null {
    if (this.blocksWindows) return null;
    this.opened.push(new OpenedWindow());
    return this.latest;
  }
}

/** Gives each test of the file a separate page. */
export function usePage(): { current: FakePage } {
  const page = { current: new FakePage() };
  beforeEach(({ onTestFinished }) => {
    page.current = new FakePage();
    page.current.install();
    onTestFinished(() => void vi.unstubAllGlobals());
  });
  return page;
}
