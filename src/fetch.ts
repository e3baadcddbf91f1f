/** One request, bounded in time and size, in Node and browsers: what every client of this project sends. */

export interface Bounds {
  /** The platform's own unless given. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** For the whole exchange, the answer's body included. */
  readonly timeoutMs: number;
  /** Of the answer's body, in bytes. */
  readonly maxSize: number;
}

export interface TextAnswer {
  readonly status: number;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  readonly text: string;
}

/** Never leaves this project's own clients: each makes an error of its own of it, with its own code. */
export class NoAnswer extends Error {
  /** `broken`: an answer began, and its rest did not come. */
  readonly reason: 'unreachable' | 'timeout' | 'too large' | 'broken';

  constructor(reason: NoAnswer['reason'], options?: ErrorOptions) {
    super(`no answer: ${reason}`, options);
    this.reason = reason;
  }
}

/** Whether a timer can be set to it, in milliseconds (WHATWG HTML, "Timers"). */
export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= 2_147_483_647;
}

/** What isTimeout takes, for messages. */
export const TIMEOUT_RANGE = 'a number of milliseconds from 1 to 2147483647';

/**
 * Follows no redirect, sends no cookie and takes nothing from a cache.
 *
 * @throws NoAnswer
 */
export async function fetchText(url: URL, init: RequestInit, bounds: Bounds): Promise<TextAnswer> {
  // Called as a method of an object, such as these bounds, a browser's fetch would refuse to work.
  const { fetch = globalThis.fetch } = bounds;
  const signal = AbortSignal.timeout(Math.ceil(bounds.timeoutMs));
  let began = false;
  try {
    const options = { redirect: 'error', credentials: 'omit', cache: 'no-store' } as const;
    const response = await fetch(url, { ...init, ...options, signal });
    began = true;
    const text = await readText(response, bounds.maxSize);
    return { status: response.status, ok: response.ok, text };
  } catch (cause) {
    if (cause instanceof NoAnswer) throw cause;
    throw new NoAnswer(signal.aborted ? 'timeout' : began ? 'broken' : 'unreachable', { cause });
  }
}

async function readText(response: Response, maxSize: number): Promise<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let text = '';
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) return text + decoder.decode();
    size += chunk.value.length;
    if (size > maxSize) {
      await reader?.cancel();
      throw new NoAnswer('too large');
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}

/** The `code` of an error's JSON, if it looks like one: nothing else of a foreign text is passed on. */
export function serverCode(text: string): string | null {
  try {
    const code: unknown = JSON.parse(text)?.code;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : null;
  } catch {
    return null;
  }
}
