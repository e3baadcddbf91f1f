import { ConfigError } from 'sui-enclave/errors';
import { readRegularFile } from 'sui-enclave-cli/read_file';

/** @throws ConfigError */
export function readJson(file: string): unknown {
  let text: string;
  try {
    text = readRegularFile(file).toString();
  } catch (error) {
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  return parseJson(text, file);
}

/**
 * @param label name of the text in the error
 * @throws ConfigError
 */
export function parseJson(text: string, label: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error does not include the parser's message, which quotes the input.
    throw new ConfigError(`${label} is not JSON`);
  }
}
