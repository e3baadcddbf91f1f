/**
 * Reads the list of the emulated enclaves that this page's server has started. Only the servers of
 * `sui-enclave dev`, `dev-sui` and `play` write the name of such a list into the page.
 */
import { requestJson } from './request.ts';

export interface Development {
  /** Name of the command that serves this page. */
  readonly command: string;
  /** Addresses of the enclaves that the command has started, in the form of `URL`. */
  readonly started: readonly string[];
  /** Texts of the root and the registers, by file name. */
  readonly files: Readonly<Record<string, string>>;
}

const FILE = document.querySelector<HTMLMetaElement>('meta[name="development"]')?.content;

/** Reads the list from the page's own origin; returns undefined if the server has none. */
export async function readDevelopment(): Promise<Development | undefined> {
  if (FILE === undefined) return undefined;
  try {
    const json = await requestJson(new URL(FILE, location.href), { signal: new AbortController().signal });
    return json as Development;
  } catch {
    // The command has ended, so there is no list.
    return undefined;
  }
}
