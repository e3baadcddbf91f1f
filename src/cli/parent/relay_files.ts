/**
 * Reads the files that the relay writes. The relay is reachable from the network. If it was taken over, its
 * files may be links, FIFOs or endless. Such files must not delay or mislead a command, or keep an enclave
 * from being stopped.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { ParentError } from './errors.ts';

/** Maximum size of a file in bytes: twice the maximum that the relay writes. */
const MAX_FILE_BYTES = 2 * 1024 * 1024;

/**
 * Returns the size of a file in bytes; 0 if there is no file.
 *
 * @throws ParentError: PROGRAM_FAILED, if the path is not a regular file of a size that the relay writes, or
 *   can't be read
 */
export function readRelayFileSize(path: string): number {
  return withRelayFile(path, (_fd, size) => size) ?? 0;
}

/**
 * Reads a file from an offset in bytes to its end. `chooseOffset` chooses the offset by the size of the
 * file. Returns undefined if there is no file.
 *
 * @throws ParentError: PROGRAM_FAILED, as `readRelayFileSize`
 */
export function readRelayFile(
  path: string,
  chooseOffset: (size: number) => number = () => 0,
): string | undefined {
  return withRelayFile(path, (fd, size) => {
    const offset = chooseOffset(size);
    const bytes = Buffer.alloc(Math.max(0, size - offset));
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, offset));
  });
}

function withRelayFile<T>(path: string, use: (fd: number, size: number) => T): T | undefined {
  let fd: number | undefined;
  try {
    // Opening must not wait for the other end of a FIFO, or for the holder of a lease.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const status = fstatSync(fd);
    if (!status.isFile()) throw new ParentError('PROGRAM_FAILED', `${path} is not a regular file`);
    if (status.size > MAX_FILE_BYTES) {
      throw new ParentError('PROGRAM_FAILED', `${path} is larger than any file that the relay writes`);
    }
    return use(fd, status.size);
  } catch (error) {
    if (error instanceof ParentError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new ParentError('PROGRAM_FAILED', `${path} can't be read: ${code}`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
