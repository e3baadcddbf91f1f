/** Files with JSON that may be private: no error quotes one. */
import { readFileSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';

/** @throws ConfigError */
export function readJson(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  return parseJson(text, file);
}

/** @param what the text is, for the error @throws ConfigError */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes its input.
    throw new ConfigError(`${what} is not JSON`);
  }
}
