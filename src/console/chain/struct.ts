/** Compares a signed type with the struct on chain, which a node gives. */
import type { SchemaField, SchemaType } from 'sui-enclave/client';
import { type OnChainStruct, structDifference } from 'sui-enclave/sui';
import { nodeAt } from './read.ts';

export interface ModuleName {
  readonly packageId: string;
  readonly moduleName: string;
}

/** Maximum number of structs to read, more than a signed type of any contract has. */
const MAX_STRUCTS = 16;

/** @returns undefined if they are equal. @throws Error of the client; the signal's reason */
export async function differenceOnChain(
  node: URL,
  module: ModuleName,
  type: SchemaType,
  signal: AbortSignal,
): Promise<string | undefined> {
  const names = [type.name, ...structsIn(type.fields)].slice(0, MAX_STRUCTS);
  const [outer, ...nested] = await Promise.all(
    names.map((name) => structAt(node, { ...module, name }, signal)),
  );
  if (outer === undefined) return `${type.name} is not in that module`;
  return structDifference(
    type,
    outer,
    nested.filter((inner) => inner !== undefined),
  );
}

/** Returns the names of the structs within these fields, each once. */
function structsIn(fields: readonly SchemaField[]): string[] {
  const names = fields.flatMap(({ type, fields: inner }) =>
    inner === undefined ? [] : [type.replace(/^(?:(?:vector|Option)<)+|>+$/g, ''), ...structsIn(inner)],
  );
  return [...new Set(names)];
}

async function structAt(
  node: URL,
  named: ModuleName & { readonly name: string },
  signal: AbortSignal,
): Promise<OnChainStruct | undefined> {
  const { response } = await nodeAt(node).movePackageService.getDatatype(named, { abort: signal });
  return response.datatype;
}
