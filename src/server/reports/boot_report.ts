import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import type { ClockState } from '../nsm/clock.ts';

/**
 * The report of a start, which `GET /boot`, the console and the parent's log port show. It has fixed fields,
 * and nothing in it comes from a request.
 */
export interface BootReport {
  readonly event: 'boot';
  readonly version: string;
  readonly app: string;
  /** PCR0 from the NSM, in hexadecimal; null without an NSM. */
  readonly pcr0: string | null;
  /** True if the registers are zero, as in an enclave that runs with --debug-mode; null without an NSM. */
  readonly debug: boolean | null;
  readonly entropy: readonly string[];
  readonly memory_mib: number;
  readonly clock: ClockState;
  /** The result of `readLastEnd`. */
  readonly last_end: string | null;
}

export function makeBootReport(parts: {
  version: string;
  app: string;
  pcr0: Uint8Array | undefined;
  entropy: readonly string[];
  clock: ClockState;
  lastEnd: string | null;
}): BootReport {
  const { version, app, pcr0, entropy, clock, lastEnd } = parts;
  return {
    event: 'boot',
    version,
    app,
    pcr0: pcr0 ? Buffer.from(pcr0).toString('hex') : null,
    debug: pcr0 ? pcr0.every((byte) => byte === 0) : null,
    entropy,
    memory_mib: Math.round(totalmem() / 1024 ** 2),
    clock,
    last_end: lastEnd,
  };
}

/**
 * Reads the reason why a part of this enclave (a bridge, the console, the clock) last ended, such as `the
 * inbound bridge was ended by signal 9`. init has restarted that part. Returns null if no part has ended, or
 * outside an image, where nothing records it. The parent's log port reports why an enclave as a whole ended:
 * an enclave can't know its predecessor.
 */
export function readLastEnd(path: string | undefined): string | null {
  if (path === undefined) return null;
  try {
    return readFileSync(path, 'utf8').trimEnd();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : "unknown: its file can't be read";
  }
}
