/**
 * Writes the file of closed events, and the cursor: the place in the journal up to which the file has them.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs';
import { EnclaveError } from 'sui-enclave/errors';
import { replaceFile } from 'sui-enclave-service/replace_file';
import { EXIT } from '../command.ts';
import { readRegularFile } from '../read_file.ts';

/** The file of events or the file of the cursor can't be used. */
export class EventsFileError extends EnclaveError {
  readonly code = 'EVENTS_FILE';
  readonly exit = EXIT.notTried;
}

/** Size in bytes at which the file is renamed and a new file is begun. */
const MAX_BYTES = 10_000_000;

/** Paths of the events, and of the cursor. */
export interface Paths {
  readonly events: string;
  readonly cursor: string;
}

/**
 * Returns the cursor after which the journal is read next; undefined if there is no cursor yet.
 *
 * @throws EventsFileError
 */
export function readCursor({ cursor: path }: Paths): string | undefined {
  let cursor: string;
  try {
    cursor = readRegularFile(path).toString().trim();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new EventsFileError(`${path} can't be read: ${code}`, { cause });
  }
  if (/^[\x21-\x7e]{1,1000}$/.test(cursor)) return cursor;
  throw new EventsFileError(
    `${path} is not a cursor that this command wrote: remove the file to write the events of the whole journal again`,
  );
}

/**
 * Checks that the file can be written, so that a fault does not appear only at the first event. Creates the
 * file if it is missing.
 *
 * @throws EventsFileError
 */
export function checkEventsFile(paths: Paths): void {
  attempt(paths, () => append(paths.events, ''));
}

/**
 * Appends all lines or none, and then writes the cursor. After a crash in between, some lines are written
 * twice, and none is lost. At 10 MB, the file gets the suffix `.1`, and replaces the previous file of that
 * name.
 *
 * @throws EventsFileError
 */
export function appendEvents(paths: Paths, lines: readonly string[], cursor: string): void {
  attempt(paths, () => {
    if (lines.length > 0) append(paths.events, `${lines.join('\n')}\n`);
    replaceFile(paths.cursor, `${cursor}\n`, 0o600);
  });
}

function attempt({ events, cursor }: Paths, write: () => void): void {
  try {
    write();
  } catch (cause) {
    if (cause instanceof EventsFileError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    throw new EventsFileError(`${events} or ${cursor} can't be written: ${code}`, { cause });
  }
}

function append(path: string, text: string): void {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  // A link or a FIFO at this path is refused. Other users may read the file, which has no secret.
  const file = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
  try {
    const status = fstatSync(file);
    if (!status.isFile()) throw new EventsFileError(`${path} is not a regular file`);
    const bytes = Buffer.from(text);
    if (writeSync(file, bytes) < bytes.length) {
      // The disk is full: half a line would be joined with the next.
      ftruncateSync(file, status.size);
      throw new EventsFileError(`${path} can't be written: the disk is full`);
    }
    if (status.size + bytes.length >= MAX_BYTES) renameSync(path, `${path}.1`);
  } finally {
    closeSync(file);
  }
}
