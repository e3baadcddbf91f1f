/**
 * Reads the list of the emulated enclaves that the server of this page has started. Only the servers of
 * `sui-enclave dev`, `dev-sui` and `play` name such a file in the page.
 */
import { requestJson } from './request.ts';

export interface Development {
  /** The command that serves this page. */
  readonly command: string;
  /** Addresses of the enclaves that it has started, as `URL` writes them. */
  readonly started: readonly string[];
  /** Texts of a root and of registers, by the name of the file. */
  readonly files: Readonly<Record<string, string>>;
}

const FILE = document.querySelector<HTMLMetaElement>('meta[name="development"]')?.content;

/** Reads it from this page's own origin; undefined where the server says nothing. */
export async function readDevelopment(): Promise<Development | undefined> {
  if (FILE === undefined) return undefined;
  try {
    const json = await requestJson(new URL(FILE, location.href), { signal: new AbortController().signal });
    return json as Development;
  } catch {
    // The command has ended: the page does without.
    return undefined;
  }
}
