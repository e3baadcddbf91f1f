/**
 * Names the types in a package's bytecode as the chain does: by the ids of the versions that introduced them.
 */
import { normalizeStructTag, parseStructTag } from '@mysten/sui/utils';
import { type PackageVersion, readTypeOrigin } from 'sui-enclave/sui/packages';
import type { Chain } from './chain.ts';

type StructTag = ReturnType<typeof parseStructTag>;
type TypeTag = StructTag | string;

/** A version of a package whose bytecode names the types. */
export interface NamingPackage extends Pick<PackageVersion, 'typeOrigins' | 'linkage'> {
  readonly originalId: string;
}

/**
 * @param type a type as `readModule` gives it, without a reference. Bytecode names packages by the ids of
 *   their first versions
 * @throws SuiError
 */
export async function definedType(chain: Chain, naming: NamingPackage, type: string): Promise<string> {
  if (!type.includes('::') || type.startsWith('vector<')) return type;
  return normalizeStructTag(await defined(chain, naming, parseStructTag(type)));
}

async function defined(chain: Chain, naming: NamingPackage, tag: StructTag): Promise<StructTag> {
  const { address: first, module, name } = tag;
  const typeParams: TypeTag[] = [];
  for (const inner of tag.typeParams) {
    typeParams.push(typeof inner === 'string' ? inner : await defined(chain, naming, inner));
  }
  return { ...tag, address: await findOrigin(chain, naming, first, `${module}::${name}`), typeParams };
}

async function findOrigin(
  chain: Chain,
  { originalId, typeOrigins, linkage }: NamingPackage,
  first: string,
  datatype: string,
): Promise<string> {
  if (first === originalId) return typeOrigins.get(datatype) ?? first;
  const linked = linkage.get(first) ?? first;
  // The first version introduced all of its types. Packages of the framework have no other.
  return linked === first ? first : await readTypeOrigin(chain.client, linked, datatype);
}
