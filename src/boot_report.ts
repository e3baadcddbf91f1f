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
}

export function makeBootReport(parts: {
  version: string;
  app: string;
  pcr0: Uint8Array | undefined;
  entropy: readonly string[];
  clock: ClockState;
}): BootReport {
  const { version, app, pcr0, entropy, clock } = parts;
  return {
    event: 'boot',
    version,
    app,
    pcr0: pcr0 ? Buffer.from(pcr0).toString('hex') : null,
    debug: pcr0 ? pcr0.every((byte) => byte === 0) : null,
    entropy,
    memory_mib: Math.round(totalmem() / 1024 ** 2),
    clock,
  };
}
