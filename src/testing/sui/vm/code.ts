/** A call of the model as Move source: its arguments rebuilt, the call, and the comparison of what it left behind. */
import { bcs } from '@mysten/sui/bcs';
import type { PublicFunction } from 'sui-enclave-move-bytecode/module_bytecode';
import { type Call, Document, OptionalSource, Rotation } from '../call.ts';
import type { LedgerObject } from '../ledger.ts';
import { Config, Enclave, type Overlap, Publisher, Registrar, type SourceValue } from '../structs.ts';

/** The abort code of a test that found everything as the model has it. An abort ends values that can't be dropped. */
export const AGREED = 4242;
/** The abort code of the first comparison that fails; the others count on. */
export const DIFFERS = 5000;

/** The circumstances of a call. */
export interface Circumstances {
  readonly sender: string;
  readonly nowMs: number;
  readonly digest: Uint8Array;
  /** The number of ids that the transaction made before. */
  readonly created: bigint;
  /** Whether the key of the call's document is registered already, at the config's version. */
  readonly isClaimed: boolean;
}

/** What the model says a call did. */
export interface Effects {
  /** The objects after it, by id. */
  readonly after: (id: string) => LedgerObject | undefined;
  readonly results: readonly unknown[];
  /** Those that it shared. */
  readonly shared: readonly LedgerObject[];
}

const bytes = (value: Uint8Array | readonly number[]) => `x"${Buffer.from(value).toString('hex')}"`;
const id = (address: string) => `sui::object::id_from_address(@${address})`;
const string = (text: string) => `std::string::utf8(${bytes(Buffer.from(text))})`;
const option = (value: string | null) =>
  value === null ? 'std::option::none()' : `std::option::some(${value})`;
const overlapOf = ({ pcrs, until_ms }: typeof Overlap.$inferType) =>
  `enclave::enclave::model_overlap(${[...pcrs.map(bytes), until_ms].join(', ')})`;

const sourceOf = (source: SourceValue | null) => {
  if (source === null) return 'enclave::source::none()';
  const { url, commit, folder, framework_version, measurements_sha256 } = source;
  const fields = [string(url), bytes(commit), string(folder), string(framework_version)];
  return `enclave::source::some(${[...fields, bytes(measurements_sha256)].join(', ')})`;
};

/** Expressions that rebuild objects, by the name of the type. */
const OBJECTS: Readonly<Record<string, (content: Uint8Array, type: string) => string>> = {
  EnclaveCap: (content, type) => `enclave::enclave::model_cap<${type}>(@${bcs.Address.parse(content)})`,
  EnclaveConfig: (content, type) => {
    const config = Config.parse(content);
    const { capability_id, config_version, overlap, max_key_age_ms: age, registrars, is_retired } = config;
    const fields = [
      `@${config.id}`,
      string(config.name),
      ...config.pcrs.map(bytes),
      sourceOf(config.source),
      id(capability_id),
      config_version,
      option(overlap && overlapOf(overlap)),
      option(age),
      `vector[${registrars.map(id).join()}]`,
      is_retired,
      config.package_version,
    ];
    return `enclave::enclave::model_config<${type}>(${fields.join(', ')})`;
  },
  Enclave: (content, type) => {
    const { id: own, pk, config_id, config_version, registered_at_ms } = Enclave.parse(content);
    const fields = [`@${own}`, bytes(pk), id(config_id), config_version, registered_at_ms];
    return `enclave::enclave::model_enclave<${type}>(${fields.join(', ')})`;
  },
  RegistrarCap: (content, type) => {
    const { id: own, config_id } = Registrar.parse(content);
    return `enclave::enclave::model_registrar<${type}>(@${own}, ${id(config_id)})`;
  },
  Publisher: (content) => {
    const { id: own, package: name, module_name } = Publisher.parse(content);
    const fields = [`@${own}`, bytes(Buffer.from(name)), bytes(Buffer.from(module_name))];
    return `sui::package::model_publisher(${fields.join(', ')})`;
  },
};

/** Expressions of pure values, by their type. */
const PURE: Readonly<Record<string, (value: Uint8Array) => string>> = {
  u8: (value) => String(bcs.u8().parse(value)),
  u64: (value) => bcs.u64().parse(value),
  bool: (value) => String(bcs.bool().parse(value)),
  address: (value) => `@${bcs.Address.parse(value)}`,
  'vector<u8>': (value) => bytes(bcs.byteVector().parse(value)),
  'object::ID': (value) => id(bcs.Address.parse(value)),
  'string::String': (value) => string(bcs.string().parse(value)),
  'option::Option<u64>': (value) => option(bcs.option(bcs.u64()).parse(value)),
};

/** The call as a test module. @param signature as `readModule` reads it @param effects undefined: it aborts */
export function testOf(
  call: Call,
  signature: PublicFunction,
  { sender, nowMs, digest, created, isClaimed }: Circumstances,
  effects: Effects | undefined,
): string {
  const parameters = splitTypes(signature.parameters);
  const application = call.typeArguments[0];
  const values = parameters.map((parameter, index) =>
    expressionOf(call.args[index], parameter, application, nowMs),
  );
  const given = parameters.map((parameter, index) => argumentOf(parameter, index));
  const key = call.args.find((value) => value instanceof Document)?.publicKey;
  const result = signature.returns === '' ? '' : 'let result = ';
  const lines = [
    `let mut scenario = sui::test_scenario::begin(@${sender});`,
    ...values.flatMap((value, index) => (value === undefined ? [] : [`let mut a${index} = ${value};`])),
    ...(isClaimed && key ? [`a${call.args.indexOf(configOf(call))}.model_claim(${bytes(key)});`] : []),
    `let mut context = sui::tx_context::model_context(@${sender}, ${bytes(digest)}, ${created});`,
    `${result}${functionOf(call)}${application === undefined ? '' : `<${application}>`}(${given.join(', ')});`,
    ...(effects === undefined ? [] : comparisons(call, parameters, effects, sender)),
    `abort ${AGREED}`,
  ];
  return `#[test_only, allow(unused_variable, unused_let_mut, unused_function)]
module enclave::model_run;

#[test]
fun run() {
    ${lines.join('\n    ')}
}

fun without_id(value: vector<u8>): vector<u8> {
    let mut rest = vector[];
    let mut i = 32;
    while (i < value.length()) {
        rest.push_back(value[i]);
        i = i + 1;
    };
    rest
}
`;
}

/** The types of a signature, at the commas outside of angle brackets. */
function splitTypes(types: string): string[] {
  return types === '' ? [] : types.split(/,(?![^<]*>)/);
}

/** Comparisons of what the call left behind: its objects, its result, and what it shared. */
function comparisons(
  call: Call,
  parameters: readonly string[],
  { after, results, shared }: Effects,
  sender: string,
): string[] {
  let code = DIFFERS;
  const compare = (variable: string, object: LedgerObject) => {
    // The ids of derived objects differ in WebAssembly: see src/testing/move_framework/README.md.
    const isDerived = nameOf(object) === 'Enclave';
    const content = isDerived ? object.content.subarray(32) : object.content;
    const found = `std::bcs::to_bytes(&${variable})`;
    const line = `assert!(${isDerived ? `without_id(${found})` : found} == ${bytes(content)}, ${code});`;
    code += 1;
    return line;
  };
  const kept = parameters.flatMap((parameter, index) => {
    const object =
      isLedgerObject(call.args[index]) && parameter.startsWith('&') ? call.args[index] : undefined;
    const now = object && after(object.id);
    return now ? [compare(`a${index}`, now)] : [];
  });
  const [result] = results;
  const returned = isLedgerObject(result) ? [compare('result', result)] : [];
  const found = shared.flatMap((object, index) => [
    `let s${index} = scenario.take_shared<enclave::enclave::${nameOf(object)}<${applicationOf(object)}>>();`,
    compare(`s${index}`, object),
  ]);
  return [...kept, ...returned, ...(found.length > 0 ? [`scenario.next_tx(@${sender});`, ...found] : [])];
}

export function isLedgerObject(value: unknown): value is LedgerObject {
  return typeof value === 'object' && value !== null && 'content' in value;
}

function nameOf({ type }: LedgerObject): string {
  return type.split('<')[0]?.split('::').at(-1) ?? '';
}

/** The type argument of an object's type. */
function applicationOf({ type }: LedgerObject): string {
  return /<(.*)>$/.exec(type)?.[1] ?? '';
}

/** The config among the arguments. */
export function configOf({ args }: Call): LedgerObject | undefined {
  return args.filter(isLedgerObject).find((object) => nameOf(object) === 'EnclaveConfig');
}

function functionOf({ module, function: name }: Call): string {
  return `${module === 'weather' ? 'app' : 'enclave'}::${module}::${name}`;
}

function argumentOf(parameter: string, index: number): string {
  if (parameter.endsWith('::tx_context::TxContext')) return '&mut context';
  return `${/^&(?:mut )?/.exec(parameter)?.[0] ?? ''}a${index}`;
}

/** Undefined for the context of the transaction, which every call shares. */
function expressionOf(
  value: unknown,
  parameter: string,
  application: string | undefined,
  nowMs: number,
): string | undefined {
  if (parameter.endsWith('::tx_context::TxContext')) return undefined;
  if (parameter.endsWith('::clock::Clock')) return clockAt(nowMs);
  if (value instanceof Document) return documentOf(value);
  if (value instanceof OptionalSource) return sourceOf(value.value);
  if (value instanceof Rotation)
    return `enclave::enclave::model_rotation<${application}>(${id(value.configId)})`;
  if (value instanceof Uint8Array) {
    const type = parameter.replace(/^&(?:mut )?/, '').replace(/0x[0-9a-f]{64}::/, '');
    const literal = PURE[type]?.(value);
    if (literal !== undefined) return literal;
  }
  const object = isLedgerObject(value)
    ? OBJECTS[nameOf(value)]?.(value.content, applicationOf(value))
    : undefined;
  if (object === undefined) throw new TypeError(`no Move value of the type ${parameter}`);
  return object;
}

/** With a context of its own: the call's must not lose an id to it. */
function clockAt(nowMs: number): string {
  return `{
        let mut clock = sui::clock::create_for_testing(&mut sui::tx_context::dummy());
        clock.set_for_testing(${nowMs});
        clock
    }`;
}

function documentOf({ pcrs, publicKey, timestampMs }: Document): string {
  const values = [...pcrs.values()].map(bytes);
  const key = option(publicKey.length === 0 ? null : bytes(publicKey));
  const fields = [timestampMs, bytes([...pcrs.keys()]), `vector[${values.join()}]`, key];
  return `sui::nitro_attestation::model_document(${fields.join(', ')})`;
}
