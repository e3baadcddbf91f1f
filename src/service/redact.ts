/**
 * Redacts properties of a log line whose names suggest a secret. This is a safety net: code must never pass
 * secrets, tokens, salts or proofs to the log in the first place.
 */
import { quantity } from 'sui-enclave/wording';
import { isInstance } from './thrown.ts';

const SECRET_NAMES = [
  'accessToken',
  'apiKey',
  'authorization',
  'clientSecret',
  'cookie',
  'idToken',
  'jwt',
  'key',
  'passphrase',
  'password',
  'privateKey',
  'proof',
  'proxyAuthorization',
  'rawHeaders',
  'refreshToken',
  'salt',
  'secret',
  'secretKey',
  'secrets',
  'seed',
  'setCookie',
  'token',
  'xApiKey',
];

/** Maximum depth of printed values. This limit also ends cycles. */
const MAX_DEPTH = 6;
/** The maximum number of values in one line. */
const MAX_VALUES = 1000;

const REDACTED = '[Redacted]';
const TOO_DEEP = '[Too deep]';
const TOO_MANY = '[Too many values]';
const UNREADABLE = '[Unreadable]';

/**
 * Copies values for the log and redacts properties that are named like secrets. Never throws, whatever
 * it gets.
 */
export class Redactor {
  readonly #names = new Set(SECRET_NAMES.map(normalizeName));
  readonly #describeError: (error: unknown) => unknown;

  /** @param describeError returns the part of an error that may be logged */
  constructor(describeError: (error: unknown) => unknown) {
    this.#describeError = describeError;
  }

  /** Adds names of secrets. `API_KEY` also matches `apiKey`, `api-key` and so on. */
  add(names: readonly string[]): void {
    for (const name of names) this.#names.add(normalizeName(name));
  }

  /**
   * Returns the redacted properties of a line, or bindings of a child log. Their `err` may be any thrown
   * value.
   */
  redactLine(line: object): object {
    const quota = { values: MAX_VALUES };
    try {
      if (isInstance(line, Error)) return { err: this.#describeError(line) };
      const printed: unknown = 'toJSON' in line && typeof line.toJSON === 'function' ? line.toJSON() : line;
      return this.#copyProperties(Object(printed), quota, 0);
    } catch {
      return { unreadable: true };
    }
  }

  /** Returns a redacted value, for interpolation into the message of a line. */
  redactValue(value: unknown): unknown {
    try {
      return this.#copy(value, { values: MAX_VALUES }, 1);
    } catch {
      return UNREADABLE;
    }
  }

  #copyProperties(owner: object, quota: { values: number }, depth: number): object {
    const copies: [name: string, copy: unknown][] = [];
    for (const name of Object.keys(owner)) {
      if (quota.values <= 0) {
        copies.push(['more', TOO_MANY]);
        break;
      }
      copies.push([name, this.#copyProperty(owner, name, quota, depth)]);
    }
    // Don't assign properties one by one, since a property may be named __proto__.
    return Object.fromEntries(copies);
  }

  #copyProperty(owner: object, name: string, quota: { values: number }, depth: number): unknown {
    quota.values -= 1;
    if (this.#names.has(normalizeName(name))) return REDACTED;
    try {
      const value = owner[name as keyof typeof owner] as unknown;
      return name === 'err' && depth === 0 ? this.#describeError(value) : this.#copy(value, quota, depth + 1);
    } catch {
      // The value has a getter, a proxy or a toJSON that throws.
      return UNREADABLE;
    }
  }

  #copy(value: unknown, quota: { values: number }, depth: number): unknown {
    if (typeof value === 'function') return undefined;
    if (typeof value === 'symbol') return '[Symbol]';
    if (typeof value !== 'object' || value === null) return value;
    if (isInstance(value, Error)) return this.#describeError(value);
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
      return `[${quantity(value.byteLength, 'byte')}]`;
    if (depth >= MAX_DEPTH) return TOO_DEEP;
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      return this.#copy(value.toJSON(), quota, depth + 1);
    }
    return Array.isArray(value)
      ? this.#copyElements(value, quota, depth)
      : this.#copyProperties(value, quota, depth);
  }

  #copyElements(list: readonly unknown[], quota: { values: number }, depth: number): unknown[] {
    const copies: unknown[] = [];
    for (let at = 0; at < list.length; at++) {
      if (quota.values <= 0) return [...copies, TOO_MANY];
      copies.push(this.#copyProperty(list, String(at), quota, depth));
    }
    return copies;
  }
}

/** Returns the same name for `API_KEY`, `apiKey` and `api-key`. */
function normalizeName(name: string): string {
  return name.replace(/[^a-z0-9]/gi, '').toLowerCase();
}
