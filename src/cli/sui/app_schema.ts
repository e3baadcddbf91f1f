/** `schema.json` of an application, from which `submit` takes values that the command line leaves out. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type AppSchema, readSchema } from 'sui-enclave/client';
import { ClientError } from 'sui-enclave/client/errors';
import { CLONE, IS_CLONE } from '../places.ts';
import { readRegularFile } from '../read_file.ts';
import type { MoveCall } from './move_call.ts';

const FILE = 'schema.json';

/**
 * Returns the schema of the current folder, or in a clone the application's schema.
 *
 * @param application the application's name in the deployment file
 * @returns undefined if the file does not exist
 * @throws ClientError: CLIENT_SCHEMA, which names the file, if the file is not a valid schema
 */
export function findSchema(application: string | undefined): AppSchema | undefined {
  const inClone = IS_CLONE && application !== undefined;
  const file = inClone ? join(CLONE, 'src/apps', application, FILE) : FILE;
  if (!existsSync(file)) return undefined;
  try {
    return readSchema(JSON.parse(readRegularFile(file).toString()));
  } catch (cause) {
    throw new ClientError(
      'CLIENT_SCHEMA',
      `${file} can't be read: ${(cause as Error).message}. Write it again by sui-enclave schema, or name path and intent`,
      { cause },
    );
  }
}

/** Returns /process_data or else the only path for a method; undefined if the method has several paths. */
export function choosePath({ endpoints }: AppSchema, method: 'GET' | 'POST'): string | undefined {
  const paths = endpoints.filter((endpoint) => endpoint.method === method).map(({ path }) => path);
  const [singlePath, ...morePaths] = paths;
  return paths.find((path) => path === '/process_data') ?? (morePaths.length === 0 ? singlePath : undefined);
}

/**
 * Returns the signed type whose fields have the types of a function's values, in their order. If several
 * types match, returns the type whose struct the function creates. Returns undefined if no type or more than
 * one remains.
 */
export function chooseSigned(
  { signs }: AppSchema,
  { values, packed }: Pick<MoveCall, 'values' | 'packed'>,
): { readonly intent: number; readonly names: readonly string[] } | undefined {
  const types = values.map(shorten).join();
  const matchingTypes = signs.filter(({ fields }) => fields.map(({ type }) => type).join() === types);
  const createdTypes = matchingTypes.filter(({ name }) => packed.includes(name));
  const [signedType, ...moreTypes] = createdTypes.length > 0 ? createdTypes : matchingTypes;
  if (signedType === undefined || moreTypes.length > 0) return undefined;
  return { intent: signedType.intent, names: signedType.fields.map(({ name }) => name) };
}

/** Returns a type as the schema names it: `0x1::string::String` is `String`. */
function shorten(type: string): string {
  return type.replace(/0x[0-9a-f]+::(?:string|option)::(\w+)/g, '$1');
}
