/**
 * The schema of an application: what its endpoints take, and what it signs. The sender of a schema is not
 * authenticated.
 */
import { isTooDeep, MAX_SCHEMA_DEPTH, MAX_SCHEMA_SIZE } from '../wire/schema_bounds.ts';
import {
  computeWidth,
  isPlainType,
  type SchemaField,
  type SchemaType,
  unwrapType,
} from '../wire/schema_type.ts';
import { ClientError } from './errors.ts';
import { baseUrl, type Http, requestJson } from './http.ts';
import { checkDuration, readCallOptions, requireKnown } from './options.ts';

/**
 * A JSON Schema (draft 7), as `sui-enclave schema` makes it from a valibot schema. Its content is not
 * checked.
 */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** An endpoint of an application. */
export interface SchemaEndpoint {
  /** HTTP method of the endpoint. */
  readonly method: 'GET' | 'POST';
  /** Path of the endpoint, such as `/process_data`. */
  readonly path: string;
  /** Whether repeating a request has no other effect: see the endpoint's option `idempotent`. */
  readonly idempotent: boolean;
}

/** `schema.json` of an application. */
export interface AppSchema {
  /** Version of the format of `schema.json`. */
  readonly version: 1;
  /** The types that the application signs. */
  readonly signs: readonly SchemaType[];
  /** The endpoints of the application, in their order. */
  readonly endpoints: readonly SchemaEndpoint[];
  /** The body of a POST, or the query of a GET that has one, by method and path: `POST /process_data`. */
  readonly inputs: Readonly<Record<string, JsonSchema>>;
}

const TYPE_KEYS = ['intent', 'name', 'fields'];
const FIELD_KEYS = ['name', 'type', 'width', 'fields'];
const PATH = /^(\/|(\/[A-Za-z0-9_.-]+)+)$/;
const STRUCT_NAME = /^[A-Z][A-Za-z0-9_]{0,127}$/;
const FIELD_NAME = /^[a-z][A-Za-z0-9_]{0,127}$/;

/**
 * Checks a schema strictly. Refuses unknown properties, an unknown version, more than 64 KB, and objects and
 * lists that nest more than 8 levels deep. The JSON Schemas in `inputs` are bounded, but not checked.
 *
 * Exported as `sui-enclave/client`.
 *
 * @param value parsed JSON
 * @returns a copy
 * @throws ClientError: CLIENT_SCHEMA
 */
export function readSchema(value: unknown): AppSchema {
  const copy = copyBounded(value);
  const { version, signs, endpoints, inputs } = readObject(copy, 'the schema', [
    'version',
    'signs',
    'endpoints',
    'inputs',
  ]);
  if (version !== 1) throw invalidSchema('its version is not 1');
  const schema: AppSchema = {
    version,
    signs: readList(signs, 'signs').map(parseSignedType),
    endpoints: readList(endpoints, 'endpoints').map(parseEndpoint),
    inputs: parseInputs(inputs),
  };
  requireUnique(
    schema.signs.map(({ intent }) => `the intent ${intent}`),
    'signs',
  );
  const names = schema.endpoints.map(({ method, path }) => `${method} ${path}`);
  requireUnique(names, 'endpoints');
  const unknownInput = Object.keys(schema.inputs).find((name) => !names.includes(name));
  if (unknownInput !== undefined) throw invalidSchema('inputs names an endpoint that endpoints lacks');
  return schema;
}

/** Options of one request for a schema. */
export interface SchemaOptions {
  /** Time limit of the request, in milliseconds. Default: 10 seconds. */
  readonly timeoutMs?: number;
  /** Function that sends the request. Default: the platform's own. */
  readonly fetch?: typeof globalThis.fetch;
  /** Ends the request early, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * Asks an enclave for the schema of its application, by `GET /schema`. Nothing signs the answer, so the host
 * may have written it: do not trust it, and compare the signed type with the struct on chain.
 *
 * Exported as `sui-enclave/client`.
 *
 * @param url base URL of the enclave's endpoints
 * @throws ClientError: CLIENT_REFUSED, with `serverCode` SCHEMA_NOT_FOUND if the image has no schema;
 *   CLIENT_SCHEMA
 */
export async function fetchSchema(url: string | URL, options: SchemaOptions = {}): Promise<AppSchema> {
  requireKnown(options, ['timeoutMs', 'fetch', 'signal']);
  const { timeoutMs = 10_000, fetch } = options;
  const { signal } = readCallOptions({ ...('signal' in options && { signal: options.signal }) }, ['signal']);
  const http: Http = { base: baseUrl(url), fetch, timeoutMs: checkDuration('timeoutMs', timeoutMs), signal };
  return readSchema((await requestJson(http, 'schema')).json);
}

/** Copies a JSON value, unless it is too large or nests too deeply. @throws ClientError */
function copyBounded(value: unknown): unknown {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    throw invalidSchema('it is not JSON, or nests too deep', { cause });
  }
  if (json === undefined) throw invalidSchema('it is not JSON');
  if (new TextEncoder().encode(json).length > MAX_SCHEMA_SIZE) {
    throw invalidSchema(`it has more than ${MAX_SCHEMA_SIZE} bytes`);
  }
  const copy: unknown = JSON.parse(json);
  if (isTooDeep(copy)) throw invalidSchema(`it nests deeper than ${MAX_SCHEMA_DEPTH}`);
  return copy;
}

function parseSignedType(value: unknown, index: number): SchemaType {
  const position = `signs[${index}]`;
  const { intent, name, fields } = readObject(value, position, TYPE_KEYS);
  if (typeof intent !== 'number' || !Number.isInteger(intent) || intent < 0 || intent > 255) {
    throw invalidSchema(`${position}.intent is not an integer from 0 to 255`);
  }
  return {
    intent,
    name: readName(name, STRUCT_NAME, `${position}.name`),
    fields: parseFields(fields, position),
  };
}

function parseFields(value: unknown, position: string): SchemaField[] {
  const fields = readList(value, `${position}.fields`).map((field, index) =>
    parseField(field, `${position}.fields[${index}]`),
  );
  if (fields.length === 0) throw invalidSchema(`${position}.fields is empty`);
  requireUnique(
    fields.map(({ name }) => name),
    position,
  );
  return fields;
}

function parseField(value: unknown, position: string): SchemaField {
  const field = readObject(value, position, FIELD_KEYS);
  const name = readName(field['name'], FIELD_NAME, `${position}.name`);
  const { type } = field;
  if (typeof type !== 'string') throw invalidSchema(`${position}.type is not a type`);
  const { wrappers, leaf } = unwrapType(type);
  if (wrappers.length > MAX_SCHEMA_DEPTH) {
    throw invalidSchema(`${position}.type nests deeper than ${MAX_SCHEMA_DEPTH}`);
  }
  if (wrappers.some((wrapper, index) => wrapper === 'Option' && wrappers[index + 1] === 'Option')) {
    throw invalidSchema(`${position}.type is an Option of an Option`);
  }
  const isPlain = isPlainType(leaf);
  if (!isPlain) readName(leaf, STRUCT_NAME, `${position}.type`);
  if (isPlain && 'fields' in field) throw invalidSchema(`${position} has fields, but is not a struct`);
  const fields = isPlain ? undefined : parseFields(field['fields'], position);
  const width = computeWidth(type, fields);
  if (field['width'] !== width) throw invalidSchema(`${position}.width is not that of its type`);
  return { name, type, ...(width !== undefined && { width }), ...(fields && { fields }) };
}

function parseEndpoint(value: unknown, index: number): SchemaEndpoint {
  const position = `endpoints[${index}]`;
  const { method, path, idempotent } = readObject(value, position, ['method', 'path', 'idempotent']);
  if (method !== 'GET' && method !== 'POST')
    throw invalidSchema(`${position}.method is neither GET nor POST`);
  if (typeof idempotent !== 'boolean') throw invalidSchema(`${position}.idempotent is not true or false`);
  return { method, path: readName(path, PATH, `${position}.path`), idempotent };
}

function parseInputs(value: unknown): Record<string, JsonSchema> {
  if (!isObject(value)) throw invalidSchema('inputs is not an object');
  const inputs = Object.entries(value).map(([name, jsonSchema]): [string, JsonSchema] => {
    if (!isObject(jsonSchema)) throw invalidSchema('an entry of inputs is not an object');
    return [name, jsonSchema];
  });
  return Object.fromEntries(inputs);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws ClientError if the value is not an object, or has a property that is not in `keys` */
function readObject(
  value: unknown,
  position: string,
  keys: readonly string[],
): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw invalidSchema(`${position} is not an object`);
  if (Object.keys(value).some((key) => !keys.includes(key))) {
    throw invalidSchema(`${position} has a property other than ${keys.join(', ')}`);
  }
  return value;
}

function readList(value: unknown, position: string): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidSchema(`${position} is not a list`);
  return value;
}

function readName(value: unknown, form: RegExp, position: string): string {
  if (typeof value !== 'string' || !form.test(value)) throw invalidSchema(`${position} has an invalid form`);
  return value;
}

function requireUnique(names: readonly string[], position: string): void {
  if (new Set(names).size !== names.length) throw invalidSchema(`${position} has an entry twice`);
}

/** Creates an error whose message quotes only positions, since a stranger may have written the schema. */
function invalidSchema(problem: string, options?: ErrorOptions): ClientError {
  return new ClientError('CLIENT_SCHEMA', `the schema of the application can't be used: ${problem}`, options);
}
