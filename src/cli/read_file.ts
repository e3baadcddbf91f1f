/** Reads files that a command line, the environment or another file names. */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';

/**
 * Returns the content of a regular file; links are followed. Anything else is refused immediately, since the
 * reader of a FIFO waits for a writer, and a device may have no end.
 *
 * @param check may refuse the file by its status, before its content is read
 * @throws Error with a `code`: one of open(2) or read(2), such as `EISDIR`, or `NOT_A_REGULAR_FILE`
 */
export function readRegularFile(path: string, check?: (status: Stats) => void): Buffer {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const status = fstatSync(fd);
    if (!status.isFile() && !status.isDirectory()) {
      const error = new Error(`${path} is not a regular file`);
      throw Object.assign(error, { code: 'NOT_A_REGULAR_FILE', syscall: 'open' });
    }
    check?.(status);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}
