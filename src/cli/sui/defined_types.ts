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
 * Returns a type by the name that it has on chain.
 *
 * @param type a type as `readModule` gives it, without a reference. Bytecode names packages by the ids of
 *   their first versions
 * @throws SuiError
 */
export async function resolveType(chain: Chain, naming: NamingPackage, type: string): Promise<string> {
  if (!type.includes('::') || type.startsWith('vector<')) return type;
  return normalizeStructTag(await resolveTag(chain, naming, parseStructTag(type)));
}

async function resolveTag(chain: Chain, naming: NamingPackage, tag: StructTag): Promise<StructTag> {
  const { address: firstId, module, name } = tag;
  const typeParams: TypeTag[] = [];
  for (const inner of tag.typeParams) {
    typeParams.push(typeof inner === 'string' ? inner : await resolveTag(chain, naming, inner));
  }
  return { ...tag, address: await findOrigin(chain, naming, firstId, `${module}::${name}`), typeParams };
}

async function findOrigin(
  chain: Chain,
  { originalId, typeOrigins, linkage }: NamingPackage,
  firstId: string,
  datatype: string,
): Promise<string> {
  if (firstId === originalId) return typeOrigins.get(datatype) ?? firstId;
  const linkedId = linkage.get(firstId) ?? firstId;
  // A first version introduced all of its types. Packages of the framework keep the id of their first
  // version.
  return linkedId === firstId ? firstId : await readTypeOrigin(chain.client, linkedId, datatype);
}
