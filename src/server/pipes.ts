/**
 * The descriptors that the server is started with: secrets come in through one, and the boot report goes out
 * through another.
 */
import { fstatSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { ConfigError } from 'sui-enclave/errors';
import type { Logger } from 'sui-enclave-service/log';
import type { BootReport } from './reports/boot_report.ts';

/** Opens the pipe of the hand-off. @throws ConfigError */
export function openHandOff(fd: number): Socket {
  requirePipe(fd, 'SECRETS_FD');
  return new Socket({ fd, readable: true, writable: false });
}

/** @throws ConfigError */
export function requirePipe(fd: number, name: string): void {
  try {
    const stat = fstatSync(fd);
    if (stat.isFIFO() || stat.isSocket()) return;
  } catch {
    // A descriptor that is not open is the same mistake.
  }
  throw new ConfigError(`${name} must be a pipe or a socket that the server was started with`);
}

/** Sends the boot report. A missing reader is not an error, since the server works without one. */
export function sendReport(fd: number, report: BootReport, log: Logger): void {
  try {
    writeSync(fd, `${JSON.stringify(report)}\n`);
  } catch (error) {
    log.warn({ err: error }, 'could not write the boot report');
  }
}
