/** Finds the property of a value that a BCS type can't hold. It never reveals the value. */

/**
 * Returns the path, such as `readings.2.cents`, of the property at which `serialize` fails. `serialize`
 * reads one property after the other, so it fails at the last property that it reads. Returns an empty string
 * if it reads none.
 */
export function findFailingProperty(serialize: (value: object) => void, value: object): string {
  let last = '';
  try {
    serialize(recordReads(value, '', (path) => (last = path)));
  } catch {
    // The caller already has this error.
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

/** Returns whether a value is an array or an object literal, whose properties are values of a BCS type. */
export function isPlain(value: unknown): value is object {
  if (Array.isArray(value)) return true;
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
