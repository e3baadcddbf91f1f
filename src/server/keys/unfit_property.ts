/**
 * Finds the property of a value that a BCS type can't hold, for an application's author. Never reveals
 * values.
 */
import { isDeepStrictEqual } from 'node:util';

/**
 * The path, such as `readings.2.cents`, of the property at which `serialize` fails: it reads properties one
 * after another, so the last one that it read is the one. An empty string where it read none.
 */
export function propertyThatFails(serialize: (value: object) => void, value: object): string {
  let last = '';
  try {
    serialize(recordReads(value, '', (path) => (last = path)));
  } catch {
    // It failed in the same way before.
  }
  return last;
}

function recordReads<T extends object>(value: T, prefix: string, record: (path: string) => void): T {
  return new Proxy(value, {
    get(target, key, receiver) {
      const read: unknown = Reflect.get(target, key, receiver);
      if (typeof key === 'symbol' || (Array.isArray(target) && !/^\d+$/.test(key))) return read;
      const path = prefix + key;
      record(path);
      return isPlain(read) ? recordReads(read, `${path}.`, record) : read;
    },
  });
}

/**
 * The path of the first property that two values don't have in common. An empty string: the values
 * themselves.
 */
export function propertyThatDiffers(original: unknown, read: unknown): string {
  if (!isPlain(original) || !isPlain(read)) return '';
  const keys = new Set([...Object.keys(original), ...Object.keys(read)]);
  for (const key of keys) {
    const [mine, theirs] = [original, read].map((value) => (value as Record<string, unknown>)[key]);
    const isInBoth = Object.hasOwn(original, key) && Object.hasOwn(read, key);
    if (isInBoth && isDeepStrictEqual(mine, theirs)) continue;
    const innerPath = propertyThatDiffers(mine, theirs);
    return innerPath === '' ? key : `${key}.${innerPath}`;
  }
  return '';
}

function isPlain(value: unknown): value is object {
  if (Array.isArray(value)) return true;
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
