/** Checks the values for a transaction. Browser-safe. */
import { bcs } from '@mysten/sui/bcs';
import {
  fromHex,
  isValidSuiObjectId,
  normalizeStructTag,
  normalizeSuiAddress,
  parseStructTag,
} from '@mysten/sui/utils';
import { checkImage, type Image } from '../attestation/image.ts';
import { text, type U64Input, u64 } from '../wire/bcs.ts';
import { SuiError } from './errors.ts';
import type { Source } from './structs.ts';

export function invalidValue(message: string, options?: ErrorOptions): SuiError {
  return new SuiError('SUI_VALUE', message, options);
}

/**
 * Returns an address or id. Requires its full length, since a short one is more often an incomplete copy than
 * an address such as `0x2`.
 */
export function checkAddress(name: string, value: string): string {
  if (typeof value !== 'string' || !/^0x/i.test(value) || !isValidSuiObjectId(value)) {
    throw invalidValue(`${name} must be 0x and 64 hexadecimal digits`);
  }
  return normalizeSuiAddress(value);
}

/** Checks the Move name of a module, a struct or a function, and returns it. */
export function checkIdentifier(name: string, value: string): string {
  if (typeof value !== 'string' || !/^[a-zA-Z][a-zA-Z0-9_]{0,127}$/.test(value)) {
    throw invalidValue(`${name} must be a name in Move: a letter, then letters, digits and underscores`);
  }
  return value;
}

/**
 * Returns the type `T` for which an application registers its enclaves, which is the type of its one-time
 * witness.
 *
 * @param appPackage id of the package version that introduced the type. `readApplicationType` finds it from
 *   the id of any version
 * @example applicationType(appPackageId, 'weather', 'WEATHER')
 * @throws SuiError: SUI_VALUE
 */
export function applicationType(appPackage: string, moduleName: string, witness: string): string {
  const address = checkAddress('the package of the application', appPackage);
  return `${address}::${checkIdentifier('the module', moduleName)}::${checkIdentifier('the one-time witness', witness)}`;
}

/** Returns a struct type without parameters, with its address in full length. */
export function checkStructType(name: string, value: string): string {
  try {
    const tag = parseStructTag(value);
    if (tag.typeParams.length === 0) {
      checkIdentifier(name, tag.module);
      checkIdentifier(name, tag.name);
      checkAddress(name, tag.address);
      return normalizeStructTag(tag);
    }
  } catch {
    // The error below covers every fault.
  }
  throw invalidValue(`${name} must be a type such as 0x…::weather::WEATHER`);
}

/** Returns the bytes. @throws SuiError: SUI_VALUE unless the value is a Uint8Array of `min` to `max` bytes */
export function checkBytes(
  name: string,
  value: Uint8Array,
  { min, max }: { min: number; max: number },
): Uint8Array {
  if (!(value instanceof Uint8Array) || value.length < min || value.length > max) {
    const length = min === max ? `${min}` : `${min} to ${max}`;
    throw invalidValue(`${name} must be a Uint8Array of ${length} bytes`);
  }
  return value;
}

/** Returns a u64 as its 8 bytes in BCS. @throws SuiError: SUI_VALUE */
export function encodeU64(name: string, value: U64Input): Uint8Array {
  return serializeValue(name, () => u64.serialize(value).toBytes());
}

/** Returns a string as its bytes in BCS. @throws SuiError: SUI_VALUE when it has a lone surrogate */
export function encodeText(name: string, value: string): Uint8Array {
  return serializeValue(name, () => text.serialize(value).toBytes());
}

/** Converts the TypeError that a type of `src/library/wire/bcs.ts` throws for a value that it can't hold. */
function serializeValue(name: string, serialize: () => Uint8Array): Uint8Array {
  try {
    return serialize();
  } catch (cause) {
    const { message } = cause as TypeError;
    throw invalidValue(`${name} is invalid: ${message}`, { cause });
  }
}

/** Returns the fields of a source as bytes in BCS. @throws SuiError: SUI_VALUE */
export function encodeSource(source: Source): Uint8Array[] {
  const printable = (name: string, value: string, min: number, max: number) => {
    if (typeof value !== 'string' || !/^[ -~]*$/.test(value) || value.length < min || value.length > max) {
      throw invalidValue(`${name} must be ${min} to ${max} printable ASCII characters`);
    }
    return encodeText(name, value);
  };
  const digest = (name: string, value: string, form: RegExp, digits: string) => {
    if (typeof value !== 'string' || !form.test(value)) {
      throw invalidValue(`${name} must be ${digits} lowercase hexadecimal digits`);
    }
    return bcs.byteVector().serialize(fromHex(value)).toBytes();
  };
  return [
    printable('the URL of the source', source.url, 1, 200),
    digest('the commit of the source', source.commit, /^([0-9a-f]{40}|[0-9a-f]{64})$/, '40 or 64'),
    printable("the application's folder", source.folder, 0, 100),
    printable('the version of the framework', source.frameworkVersion, 1, 50),
    digest('the digest of measurements.json', source.measurementsSha256, /^[0-9a-f]{64}$/, '64'),
  ];
}

/** Returns PCR0 to PCR2 as bytes. @throws AttestationError: POLICY_INVALID, POLICY_ZERO_IMAGE */
export function encodeRegisters(image: Image): [Uint8Array, Uint8Array, Uint8Array] {
  const { pcr0, pcr1, pcr2 } = checkImage(image);
  return [fromHex(pcr0), fromHex(pcr1), fromHex(pcr2)];
}
