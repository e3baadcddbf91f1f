/** Compares a signed type with the struct on chain, which a node returns. */
import type { SchemaField, SchemaType } from 'sui-enclave/client';
import { type OnChainStruct, structDifference } from 'sui-enclave/sui';
import { createNodeClient } from './read.ts';

export interface ModuleName {
  readonly packageId: string;
  readonly moduleName: string;
}

/** Maximum number of structs to read: more than any contract's signed type has. */
const MAX_STRUCTS = 16;

/**
 * Describes the difference between a signed type and the struct on chain; undefined if they are equal.
 *
 * @throws Error of the client; the signal's reason
 */
export async function describeDifference(
  node: URL,
  module: ModuleName,
  type: SchemaType,
  signal: AbortSignal,
): Promise<string | undefined> {
  const names = [type.name, ...listStructs(type.fields)].slice(0, MAX_STRUCTS);
  const [outer, ...nested] = await Promise.all(
    names.map((name) => readStruct(node, { ...module, name }, signal)),
  );
  if (outer === undefined) return `${type.name} is not in that module`;
  return structDifference(
    type,
    outer,
    nested.filter((inner) => inner !== undefined),
  );
}

/** Returns the names of the structs within these fields, each once. */
function listStructs(fields: readonly SchemaField[]): string[] {
  const names = fields.flatMap(({ type, fields: inner }) =>
    inner === undefined ? [] : [type.replace(/^(?:(?:vector|Option)<)+|>+$/g, ''), ...listStructs(inner)],
  );
  return [...new Set(names)];
}

async function readStruct(
  node: URL,
  structName: ModuleName & { readonly name: string },
  signal: AbortSignal,
): Promise<OnChainStruct | undefined> {
  const { response } = await createNodeClient(node).movePackageService.getDatatype(structName, {
    abort: signal,
  });
  return response.datatype;
}
