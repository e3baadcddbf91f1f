/** Structs of Move whose fields can be listed. Browser-safe. */
import { type BcsStruct, bcs } from '@mysten/bcs';
import { type Field, type InMove, inMove, type MoveType, requireMoveType } from './bcs.ts';

/** A struct whose fields are known, in the order of their bytes. */
export type Struct<Fields extends Record<string, MoveType>> = BcsStruct<Fields> &
  InMove & { readonly fields: readonly Field[] };

const MAX_NAME_LENGTH = 128;

/**
 * Returns a struct with the name and the fields that it has in Move, in the same order.
 *
 * @throws TypeError if a name is invalid in Move, or if a field has a type of `@mysten/bcs`, which doesn't
 *   name its type in Move
 */
export function struct<Fields extends Record<string, MoveType>>(
  name: string,
  fields: Fields,
): Struct<Fields> {
  if (!/^[A-Z][A-Za-z0-9_]*$/.test(name) || name.length > MAX_NAME_LENGTH) {
    throw new TypeError(`${name} can't be the name of a struct in Move: it must be like PriceOfPair`);
  }
  const fieldList = Object.entries(fields).map(([field, type]): Field => {
    if (!/^[a-z][A-Za-z0-9_]*$/.test(field) || field.length > MAX_NAME_LENGTH) {
      throw new TypeError(
        `${name}.${field} can't be the name of a field in Move: it must be like price_in_cents`,
      );
    }
    requireMoveType(type, `${name}.${field}`);
    return Object.freeze({ name: field, type, move: type.move });
  });
  if (fieldList.length === 0) {
    throw new TypeError(
      `${name} needs a field: the Move compiler adds a hidden field of one byte to a struct without fields`,
    );
  }
  return Object.assign(inMove(name, bcs.struct(name, fields)), { fields: Object.freeze(fieldList) });
}
