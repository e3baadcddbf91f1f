/** Reads objects of any package, with their contents, and checks their types. */
import type { BcsType } from '@mysten/sui/bcs';
import type { ClientWithCoreApi, SuiClientTypes } from '@mysten/sui/client';
import { normalizeStructTag, parseStructTag } from '@mysten/sui/utils';
import { type AskOptions, askNode, badAnswer } from './ask.ts';
import { ObjectNotFoundError, WrongObjectTypeError } from './errors.ts';
import { toSuiError } from './failures.ts';
import { parseExactly } from './structs.ts';
import { checkAddress } from './values.ts';

export type ReadObject = SuiClientTypes.Object<{ content: true }>;

/** Reads an object. @throws SuiError; ObjectNotFoundError if it doesn't exist */
export async function readObject(
  client: ClientWithCoreApi,
  name: string,
  objectId: string,
  options: AskOptions,
): Promise<ReadObject> {
  const id = checkAddress(`the id of the ${name}`, objectId);
  const [object] = await readObjects(client, [id], options);
  if (!object) throw new ObjectNotFoundError(id);
  return object;
}

/** Reads objects in the order of the ids; undefined for an object that doesn't exist. */
export async function readObjects(
  client: ClientWithCoreApi,
  ids: string[],
  options: AskOptions,
): Promise<(ReadObject | undefined)[]> {
  if (ids.length === 0) return [];
  const { objects } = await askNode(options, (signal) =>
    client.core.getObjects({ objectIds: ids, include: { content: true }, ...signal }),
  );
  return ids.map((id, index) => {
    const object = objects[index];
    if (object instanceof Error) {
      const error = toSuiError(object);
      if (error instanceof ObjectNotFoundError) return undefined;
      throw error;
    }
    if (object?.objectId !== id) throw badAnswer(`the node answered with an object other than ${id}`);
    return object;
  });
}

/**
 * Returns the package and the application that the type of an object names.
 *
 * @throws WrongObjectTypeError unless the type is this struct of this module, with an application as its only
 *   type argument
 */
export function parseObjectType({ objectId, type }: ReadObject, moduleName: string, struct: string) {
  const expected = `${moduleName === 'enclave' ? 'an' : 'a'} ${moduleName}::${struct}<…>`;
  // A package has the type "package", which is not a struct.
  if (!type.includes('::'))
    throw new WrongObjectTypeError(objectId, expected, `a ${type || 'value without a type'}`);
  const { address, module, name, typeParams } = parseStructTag(type);
  const [application] = typeParams;
  if (
    module !== moduleName ||
    name !== struct ||
    typeParams.length !== 1 ||
    typeof application !== 'object'
  ) {
    throw new WrongObjectTypeError(objectId, expected, type);
  }
  return { packageId: address, application: normalizeStructTag(application) };
}

/** Parses the content of an object. @throws SuiError: SUI_NODE_ANSWER if it is not exactly of this type */
export function parseContent<Value extends Input, Input>(
  content: BcsType<Value, Input>,
  object: ReadObject,
): Value {
  const value = parseExactly(content, object.content);
  if (value === null)
    throw badAnswer(`the content of ${object.objectId} does not match its type in this library`);
  return value;
}
