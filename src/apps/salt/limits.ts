/** Limits on the request rate of a caller, and on concurrent work. */
import { isIPv4, isIPv6 } from 'node:net';
import { RateLimit } from 'sui-enclave-server';
import { SaltError } from './errors.ts';

/** Limit on the requests a minute of each key, which identifies a user or an address. */
export class SaltRateLimit {
  readonly #limit: RateLimit;

  /** @param now a monotonic clock in milliseconds */
  constructor(perMinute: number, now?: () => number) {
    this.#limit = new RateLimit(perMinute, now);
  }

  /** Counts a request, or refuses it. @throws SALT_RATE_LIMITED */
  take(key: string): void {
    const retryAfterSeconds = this.#limit.take(key);
    if (retryAfterSeconds > 0) {
      throw new SaltError('SALT_RATE_LIMITED', 'too many requests: try again later', { retryAfterSeconds });
    }
  }
}

/** Limits concurrent work. It has no queue: in a queue, callers would wait behind attackers. */
export class Semaphore {
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Does the work, or refuses it if all permits are in use. @throws SALT_BUSY */
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
 * Returns the key for limits per address. For IPv6, it is the first 64 bits, since one subscriber owns all
 * addresses that begin with them. An IPv4-mapped address (RFC 4291, section 2.5.5.2) has the key of its IPv4
 * address. All invalid addresses share one key.
 */
export function addressKey(address: string): string {
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || address.includes('%')) return 'unknown';
  // The URL parser normalises an address to hex groups.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const leadingGroups = head === '' ? [] : head.split(':');
  const trailingGroups = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : 8 - leadingGroups.length - trailingGroups.length;
  const groups = [...leadingGroups, ...Array<string>(zeros).fill('0'), ...trailingGroups];
  if (groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff') {
    const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
    return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  }
  return groups.slice(0, 4).join(':');
}
