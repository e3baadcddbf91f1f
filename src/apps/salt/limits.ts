/** How often one caller may ask, and how much is done at once. */
import { isIPv4, isIPv6 } from 'node:net';
import { SaltError } from './errors.ts';

/** More callers than this within a minute: those that were quiet longest are forgotten first. */
const MAX_KEYS = 100_000;
const MINUTE_MS = 60_000;

/** At most `perMinute` for each key: all at once, or spread. */
export class RateLimit {
  readonly #perMinute: number;
  readonly #now: () => number;
  /** The time at which a key's allowance is whole again; in the order of their last use. */
  readonly #wholeAt = new Map<string, number>();

  /** @param now a clock in milliseconds that only goes forward */
  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /** @throws SALT_RATE_LIMITED */
  take(key: string): void {
    const now = this.#now();
    const each = MINUTE_MS / this.#perMinute;
    const wholeAt = Math.max(this.#wholeAt.get(key) ?? now, now) + each;
    const wait = wholeAt - now - MINUTE_MS;
    // A thousandth of a millisecond is the rounding of sums, not a request.
    if (wait > 0.001) {
      const retryAfterSeconds = Math.ceil(wait / 1000);
      throw new SaltError('SALT_RATE_LIMITED', 'too many requests: try again later', { retryAfterSeconds });
    }
    this.#wholeAt.delete(key);
    this.#wholeAt.set(key, wholeAt);
    if (this.#wholeAt.size > MAX_KEYS) {
      const [quietest] = this.#wholeAt.keys();
      this.#wholeAt.delete(quietest as string);
    }
  }
}

/** So many at once and no queue: who waits for a signature check waits for an attacker's. */
export class Slots {
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** @throws SALT_BUSY */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free === 0)
      throw new SaltError('SALT_BUSY', 'too many tokens are being verified: try again', {
        retryAfterSeconds: 1,
      });
    this.#free--;
    try {
      return await work();
    } finally {
      this.#free++;
    }
  }
}

/**
 * What an address counts as: of IPv6 the first 64 bits, since a subscriber has all the rest, but for an IPv4
 * address in IPv6 (RFC 4291, section 2.5.5.2). All texts that are no address count as one.
 */
export function addressKey(address: string): string {
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || address.includes('%')) return 'unknown';
  // The URL parser writes every form of an address in one way, in hex groups.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after];
  if (groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff') {
    const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
    return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  }
  return groups.slice(0, 4).join(':');
}
