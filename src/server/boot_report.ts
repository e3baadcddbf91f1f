import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import type { ClockState } from './clock.ts';

/** What `GET /boot`, the console and the parent's log port tell of a start: fixed fields, nothing of a request. */
export interface BootReport {
  readonly event: 'boot';
  readonly version: string;
  readonly app: string;
  /** As the NSM says it; null without an NSM. */
  readonly pcr0: string | null;
  /** Whether the registers are zero, as in an enclave that was run with --debug-mode; null without an NSM. */
  readonly debug: boolean | null;
  readonly entropy: readonly string[];
  readonly memory_mib: number;
  readonly clock: ClockState;
  /** See readLastEnd. */
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
 * Why a part of this enclave (a bridge, the console, the clock) last ended, such as `the inbound bridge was
 * ended by signal 9`: init has started it again. Null when none did, or nobody keeps it, as outside an image.
 * Why an enclave as a whole ended is told on the parent's log port: no enclave knows the one before.
 */
export function readLastEnd(path: string | undefined): string | null {
  if (path === undefined) return null;
  try {
    return readFileSync(path, 'utf8').trimEnd();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : "unknown: its file can't be read";
  }
}
