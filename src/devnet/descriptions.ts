/** Describes objects, packages, datatypes and functions in the same way as a node. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { toGrpcOwner } from './effects.ts';
import { Refusal } from './failures.ts';
import { computeDigest, type Ledger, type LedgerObject } from './ledger.ts';
import { ChainCode } from './move/code.ts';
import { frameworkPackage } from './move/framework.ts';
import { type GrpcJson, toGrpcJson } from './move/json.ts';
import { ABILITY, type MoveType, parseLayout, parseType, splitList } from './move/types.ts';
import {
  encodePackage,
  findLinkage,
  findTypeOrigins,
  listVersions,
  loadModules,
  originalOf,
  versionOf,
} from './packages.ts';

const {
  Ability,
  DatatypeDescriptor_DatatypeKind: Kind,
  FunctionDescriptor_Visibility: Visibility,
  OpenSignature_Reference: Reference,
  OpenSignatureBody_Type: Type,
} = GrpcTypes;

const PRIMITIVES: Readonly<Record<string, GrpcTypes.OpenSignatureBody_Type>> = {
  address: Type.ADDRESS,
  bool: Type.BOOL,
  u8: Type.U8,
  u16: Type.U16,
  u32: Type.U32,
  u64: Type.U64,
  u128: Type.U128,
  u256: Type.U256,
};

export function toGrpcObject(object: LedgerObject): GrpcTypes.Object {
  const { id, type, owner, version, content } = object;
  return GrpcTypes.Object.create({
    objectId: id,
    version,
    digest: computeDigest(object),
    objectType: type,
    owner: toGrpcOwner(owner),
    contents: { name: type, value: content },
  });
}

/**
 * Returns an object's fields in JSON. Returns undefined if the content does not fit the object's type, or if
 * the model's framework lacks the type.
 */
export function formatObjectJson(
  { packages }: Ledger,
  { type, content }: LedgerObject,
): GrpcJson | undefined {
  const code = new ChainCode(packages, frameworkPackage());
  try {
    const moveType = code.parse(type);
    return toGrpcJson(code.codec.decode(content, moveType), moveType, code.datatypes);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Describes a package as an object. Its digest is always 1, since this model computes none for packages. */
export function describePackageObject({ packages }: Ledger, objectId: string): GrpcTypes.Object {
  return GrpcTypes.Object.create({
    objectId,
    version: BigInt(versionOf(packages, objectId)),
    digest: '1',
    objectType: 'package',
    owner: toGrpcOwner({ kind: 'immutable' }),
    bcs: GrpcTypes.Bcs.create({ name: 'Object', value: encodePackage(packages, objectId) }),
  });
}

/**
 * Describes a package. Full nodes describe the modules here too, but give their bytecode only with the
 * object.
 *
 * @throws Refusal: NOT_FOUND
 */
export function describePackage({ packages }: Ledger, id: string): GrpcTypes.Package {
  const storageId = normalizeSuiAddress(id);
  // Full nodes give no error text here.
  if (!packages.has(storageId)) throw new Refusal('NOT_FOUND', '');
  return GrpcTypes.Package.create({
    storageId,
    originalId: originalOf(packages, storageId),
    version: BigInt(versionOf(packages, storageId)),
    typeOrigins: [...findTypeOrigins(packages, storageId)].map(([type, packageId]) => {
      const [moduleName = '', datatypeName = ''] = type.split('::');
      return { moduleName, datatypeName, packageId };
    }),
    linkage: [...findLinkage(packages, storageId)].map(([originalId, { id: upgradedId, version }]) => ({
      originalId,
      upgradedId,
      upgradedVersion: BigInt(version),
    })),
  });
}

/** Lists the versions of a package, the oldest first. @throws Refusal: NOT_FOUND */
export function listPackageVersions({ packages }: Ledger, id: string) {
  const original = packages.get(normalizeSuiAddress(id))?.original;
  if (original === undefined) throw new Refusal('NOT_FOUND', '');
  const versions = listVersions(packages, original);
  return versions.map((packageId, index) => ({ packageId, version: BigInt(index + 1) }));
}

/** Finds and describes a function. @throws Refusal: NOT_FOUND */
export function findFunction(
  { packages }: Ledger,
  { packageId = '', moduleName = '', name = '' }: GrpcTypes.GetFunctionRequest,
): GrpcTypes.FunctionDescriptor {
  const code = new ChainCode(packages, frameworkPackage());
  const functionInterface = code
    .module(normalizeSuiAddress(packageId), moduleName)
    ?.moduleInterface.declared.get(name);
  if (functionInterface === undefined) {
    throw new Refusal('NOT_FOUND', `Function ${packageId}::${moduleName}::${name} not found`);
  }
  const { visibility, isEntry, constraints, parameters, returns } = functionInterface;
  const toSignature = (text: string): GrpcTypes.OpenSignature => {
    const type = parseType(text);
    const isReference = type.kind === 'reference';
    return GrpcTypes.OpenSignature.create({
      ...(isReference && { reference: type.isMutable ? Reference.MUTABLE : Reference.IMMUTABLE }),
      body: toSignatureBody(isReference ? type.of : type),
    });
  };
  return GrpcTypes.FunctionDescriptor.create({
    name,
    visibility: { private: Visibility.PRIVATE, public: Visibility.PUBLIC, friend: Visibility.FRIEND }[
      visibility
    ],
    isEntry,
    typeParameters: constraints.map((bits) => ({ constraints: listAbilities(bits) })),
    parameters: splitList(parameters).map(toSignature),
    returns: splitList(returns).map(toSignature),
  });
}

function listAbilities(bits: number): GrpcTypes.Ability[] {
  const abilityBits = [
    [ABILITY.copy, Ability.COPY],
    [ABILITY.drop, Ability.DROP],
    [ABILITY.store, Ability.STORE],
    [ABILITY.key, Ability.KEY],
  ] as const;
  return abilityBits.flatMap(([bit, ability]) => ((bits & bit) === 0 ? [] : ability));
}

/** Finds and describes a struct. @throws Refusal: NOT_FOUND; UNIMPLEMENTED for an enum */
export function findDatatype(
  { packages }: Ledger,
  { packageId: id = '', moduleName = '', name = '' }: GrpcTypes.GetDatatypeRequest,
): GrpcTypes.DatatypeDescriptor {
  const packageId = normalizeSuiAddress(id);
  const movePackage = packages.get(packageId);
  const moduleInterface =
    movePackage && loadModules(movePackage).get(`${movePackage.original}::${moduleName}`)?.moduleInterface;
  const datatype = moduleInterface?.datatypes.get(name);
  if (!datatype) throw new Refusal('NOT_FOUND', `Datatype ${packageId}::${moduleName}::${name} not found`);
  const layout = parseLayout(datatype);
  if (layout.kind === 'enum') throw new Refusal('UNIMPLEMENTED', 'the model does not describe enums');
  const definingId = findTypeOrigins(packages, packageId).get(`${moduleName}::${name}`) ?? packageId;
  return GrpcTypes.DatatypeDescriptor.create({
    typeName: `${definingId}::${moduleName}::${name}`,
    definingId,
    module: moduleName,
    name,
    abilities: listAbilities(datatype.abilities),
    kind: Kind.STRUCT,
    typeParameters: splitList(datatype.typeParameters).map((parameter) => ({
      constraints: listAbilities(Number.parseInt(parameter, 10)),
      isPhantom: parameter.endsWith(' phantom'),
    })),
    fields: layout.fields.map(({ name: field, type }, position) =>
      GrpcTypes.FieldDescriptor.create({ name: field, position, type: toSignatureBody(type) }),
    ),
  });
}

function toSignatureBody(type: MoveType): GrpcTypes.OpenSignatureBody {
  switch (type.kind) {
    case 'primitive':
      return GrpcTypes.OpenSignatureBody.create({ type: PRIMITIVES[type.name] ?? Type.TYPE_UNKNOWN });
    case 'parameter':
      return GrpcTypes.OpenSignatureBody.create({ type: Type.TYPE_PARAMETER, typeParameter: type.index });
    case 'struct': {
      const { address, module, name, args } = type;
      return GrpcTypes.OpenSignatureBody.create({
        type: Type.DATATYPE,
        typeName: `${address}::${module}::${name}`,
        typeParameterInstantiation: args.map(toSignatureBody),
      });
    }
    default:
      return GrpcTypes.OpenSignatureBody.create({
        type: Type.VECTOR,
        typeParameterInstantiation: [toSignatureBody(type.of)],
      });
  }
}
