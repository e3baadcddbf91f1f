/** Reads files of Linux that describe the running kernel and its processes. */
import { readFileSync } from 'node:fs';

/** Returns a random id that the kernel made when it started; undefined where the system has none. */
export function readBootId(): string | undefined {
  return readKernelFile('/proc/sys/kernel/random/boot_id')?.trim();
}

/** Returns a file of Linux' proc(5), or undefined if it doesn't exist or the system hides it. */
export function readKernelFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
