/** A struct of a published module, as `MovePackageService.GetDatatype` describes it. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { readModule } from 'sui-enclave-move-bytecode/module_bytecode';
import { Refusal } from './failures.ts';
import type { Ledger } from './ledger.ts';
import { layoutOf, type MoveType, splitList } from './vm/types.ts';

const { OpenSignatureBody, OpenSignatureBody_Type: Type } = GrpcTypes;

const PLAIN: Readonly<Record<string, GrpcTypes.OpenSignatureBody_Type>> = {
  address: Type.ADDRESS,
  bool: Type.BOOL,
  u8: Type.U8,
  u16: Type.U16,
  u32: Type.U32,
  u64: Type.U64,
  u128: Type.U128,
  u256: Type.U256,
};

/** @throws Refusal: NOT_FOUND; UNIMPLEMENTED for an enum */
export function datatypeOf(
  { packages, modules }: Ledger,
  { packageId = '', moduleName = '', name = '' }: GrpcTypes.GetDatatypeRequest,
): GrpcTypes.DatatypeDescriptor {
  const module = (modules.get(packageId) ?? [])
    .map((bytecode) => readModule(bytecode, packages.get(packageId)))
    .find((item) => item.name === moduleName);
  const found = module?.datatypes.get(name);
  if (!found) throw new Refusal('NOT_FOUND', `Datatype ${packageId}::${moduleName}::${name} not found`);
  const layout = layoutOf(found);
  if (layout.kind === 'enum') throw new Refusal('UNIMPLEMENTED', 'the model describes no enum');
  return GrpcTypes.DatatypeDescriptor.create({
    typeName: `${packageId}::${moduleName}::${name}`,
    definingId: packageId,
    module: moduleName,
    name,
    kind: GrpcTypes.DatatypeDescriptor_DatatypeKind.STRUCT,
    typeParameters: splitList(found.typeParameters).map((parameter) => ({
      constraints: [],
      isPhantom: parameter.endsWith(' phantom'),
    })),
    fields: layout.fields.map((field, position) =>
      GrpcTypes.FieldDescriptor.create({ name: field.name, position, type: bodyOf(field.type) }),
    ),
  });
}

function bodyOf(type: MoveType): GrpcTypes.OpenSignatureBody {
  switch (type.kind) {
    case 'primitive':
      return OpenSignatureBody.create({ type: PLAIN[type.name] ?? Type.TYPE_UNKNOWN });
    case 'parameter':
      return OpenSignatureBody.create({ type: Type.TYPE_PARAMETER, typeParameter: type.index });
    case 'vector':
      return OpenSignatureBody.create({
        type: Type.VECTOR,
        typeParameterInstantiation: [bodyOf(type.of)],
      });
    case 'struct':
      return OpenSignatureBody.create({
        type: Type.DATATYPE,
        typeName: `${type.address}::${type.module}::${type.name}`,
        typeParameterInstantiation: type.args.map(bodyOf),
      });
    default:
      // No field is a reference.
      return OpenSignatureBody.create({ type: Type.TYPE_UNKNOWN });
  }
}
