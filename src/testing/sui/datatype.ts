/** A struct of a published module, as `MovePackageService.GetDatatype` describes it. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { type Datatype, readModule } from 'sui-enclave-move-bytecode/module_bytecode';
import { Refusal } from './failures.ts';
import type { Ledger } from './ledger.ts';

const { OpenSignatureBody_Type: Type, DatatypeDescriptor_DatatypeKind: Kind } = GrpcTypes;

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
  return GrpcTypes.DatatypeDescriptor.create({
    typeName: `${packageId}::${moduleName}::${name}`,
    definingId: packageId,
    module: moduleName,
    name,
    kind: Kind.STRUCT,
    typeParameters: found.typeParameters
      .split(',')
      .filter((parameter) => parameter !== '')
      .map((parameter) => ({ constraints: [], isPhantom: parameter.endsWith(' phantom') })),
    fields: fieldsOf(found),
  });
}

function fieldsOf({ layout }: Datatype): GrpcTypes.FieldDescriptor[] {
  const [, content] = /^struct \{(.*)\}$/.exec(layout) ?? [];
  if (content === undefined) throw new Refusal('UNIMPLEMENTED', 'the model describes no enum');
  return partsOf(content).map((part, position) => {
    const [, name = '', type = ''] = /^(\w+): (.*)$/.exec(part) ?? [];
    return GrpcTypes.FieldDescriptor.create({ name, position, type: bodyOf(type) });
  });
}

/** The text at its commas, but for those within angle brackets. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const [at, character] of [...text].entries()) {
    if (character === '<') depth += 1;
    if (character === '>') depth -= 1;
    if (character !== ',' || depth > 0) continue;
    parts.push(text.slice(from, at));
    from = at + 1;
  }
  return [...parts, text.slice(from)].filter((part) => part !== '');
}

function bodyOf(type: string): GrpcTypes.OpenSignatureBody {
  const plain = PLAIN[type];
  if (plain !== undefined) return GrpcTypes.OpenSignatureBody.create({ type: plain });
  const [, parameter] = /^T([0-9]+)$/.exec(type) ?? [];
  if (parameter !== undefined) {
    return GrpcTypes.OpenSignatureBody.create({
      type: Type.TYPE_PARAMETER,
      typeParameter: Number(parameter),
    });
  }
  const [, name = type, items = ''] = /^([^<]*)<(.*)>$/.exec(type) ?? [];
  const typeParameterInstantiation = partsOf(items).map(bodyOf);
  return GrpcTypes.OpenSignatureBody.create(
    name === 'vector'
      ? { type: Type.VECTOR, typeParameterInstantiation }
      : { type: Type.DATATYPE, typeName: name, typeParameterInstantiation },
  );
}
