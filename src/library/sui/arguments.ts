/** The objects and values that Move calls take. Browser-safe. */
import type { Transaction, TransactionObjectInput } from '@mysten/sui/transactions';
import { checkAddress, invalidValue } from './values.ts';

/**
 * An object for a Move call: its id, which the node resolves when the transaction is built; a reference
 * (`Inputs.ObjectRef`, `Inputs.SharedObjectRef`), which needs no node; or an argument of the same
 * transaction, such as what an earlier call returned.
 */
export type ObjectInput = TransactionObjectInput;

/** The properties by which `@mysten/sui` distinguishes the forms of object arguments. */
const OBJECT_FORMS = ['GasCoin', 'Input', 'Result', 'NestedResult', 'Object', 'UnresolvedObject'];

/** Maximum size of a pure argument in bytes, by Sui's protocol. */
const MAX_PURE_SIZE = 16_384;

/** Passes an object. @throws SuiError: SUI_VALUE */
export function objectArgument(tx: Transaction, name: string, value: ObjectInput) {
  if (typeof value === 'string') return tx.object(checkAddress(`the id of the ${name}`, value));
  if (!isObjectForm(value)) {
    throw invalidValue(
      `the ${name} must be the id of an object, a reference to one, or an object of the same transaction`,
    );
  }
  return tx.object(value);
}

function isObjectForm(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (typeof value !== 'object' || value === null) return false;
  // An argument of the form `Input` may be a pure value, which is not an object.
  const { type = 'object' } = value as { type?: unknown };
  return type === 'object' && OBJECT_FORMS.some((form) => form in value);
}

/**
 * Passes a value that is serialized already. @throws SuiError: SUI_VALUE when it is too long for an argument
 */
export function pureArgument(tx: Transaction, name: string, bytes: Uint8Array) {
  if (bytes.length > MAX_PURE_SIZE) {
    throw invalidValue(`${name} has ${bytes.length} bytes in BCS: an argument has at most ${MAX_PURE_SIZE}`);
  }
  return tx.pure(bytes);
}
