/** Reads `schema.json` of an application. `GET /schema` returns the file unchanged. */
import { isUtf8 } from 'node:buffer';
import { existsSync, readFileSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';
import { isTooDeep, MAX_SCHEMA_DEPTH, MAX_SCHEMA_SIZE } from 'sui-enclave/wire/schema_bounds';

/**
 * @returns undefined if there is no such file
 *
 * @throws ConfigError if the file is not JSON, is too large, or nests too deep
 */
export function readSchemaFile(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readFileSync(path);
  if (bytes.length > MAX_SCHEMA_SIZE) {
    throw new ConfigError(`schema.json has ${bytes.length} bytes, over ${MAX_SCHEMA_SIZE}`);
  }
  const json = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new ConfigError('schema.json is not JSON', { cause });
  }
  if (!isUtf8(bytes)) throw new ConfigError('schema.json is not UTF-8');
  if (isTooDeep(value)) {
    throw new ConfigError(`schema.json has objects or lists that nest deeper than ${MAX_SCHEMA_DEPTH}`);
  }
  return json;
}
