/**
 * Reads the reports of enclaves, which the parent's relay keeps. They are the only record of why an enclave
 * ended.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { ParentError } from './errors.ts';
import { readRelayFile, readRelayFileSize } from './relay_files.ts';

/**
 * Number of bytes at the end of the file that are searched for the report of an enclave's end. Reports are
 * short, so the latest reports are among these bytes.
 */
const MAX_READ_BYTES = 64 * 1024;

/**
 * The reports that commands read. The relay keeps every line that an enclave sends; other lines are ignored
 * here.
 */
const Report = v.variant('event', [
  v.object({ event: v.literal('boot') }),
  v.object({ event: v.literal('failed'), code: v.pipe(v.string(), v.regex(/^[A-Z][A-Z_]{0,63}$/)) }),
  v.object({ event: v.literal('end'), reason: v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,200}$/)) }),
]);

export function reportsPath(dir: string): string {
  return join(dir, 'reports.jsonl');
}

/**
 * Returns the present size of the file in bytes, the offset at which later reports begin. Returns 0 if the
 * file is missing or unreadable.
 */
export function reportsSize(dir: string): number {
  return unlessUnusable(
    () => readRelayFileSize(reportsPath(dir)),
    () => 0,
  );
}

/**
 * Reads the reason why the last enclave ended, with the code of the error that stopped its server's start, if
 * any. Returns undefined if no end was reported since the last boot of an enclave. Returns a note if the file
 * can't be read.
 *
 * @param from the offset in bytes after which reports count
 */
export function lastEnd(dir: string, from = 0): string | undefined {
  // The relay begins a new file when the present one is full.
  const newest = (size: number) => Math.max(from > size ? 0 : from, size - MAX_READ_BYTES);
  return unlessUnusable(
    () => findEnd(readRelayFile(reportsPath(dir), newest) ?? ''),
    (reason) => `unknown: ${reason}`,
  );
}

/** Reads the newest report; undefined without one. Returns a note if the file can't be read. */
export function lastReport(dir: string): string | undefined {
  return unlessUnusable(
    () => {
      const text = readRelayFile(reportsPath(dir), (size) => Math.max(0, size - MAX_READ_BYTES)) ?? '';
      const report = text
        .split('\n')
        .map(parse)
        .findLast((line) => line !== undefined);
      if (report === undefined || report.event === 'boot') return report?.event;
      return `${report.event}: ${report.event === 'end' ? report.reason : report.code}`;
    },
    (reason) => `unknown: ${reason}`,
  );
}

/**
 * Reads a file of the relay. A relay that was taken over may have damaged the file, which must not stop a
 * command.
 */
function unlessUnusable<T>(read: () => T, describeFailure: (reason: string) => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ParentError)) throw error;
    return describeFailure(error.message);
  }
}

function findEnd(text: string): string | undefined {
  let code: string | undefined;
  let end: string | undefined;
  for (const line of text.split('\n')) {
    const report = parse(line);
    if (!report) continue;
    if (report.event === 'failed') code = report.code;
    else if (report.event === 'boot') code = end = undefined;
    else {
      end = code === undefined ? report.reason : `${report.reason} (${code})`;
      code = undefined;
    }
  }
  return end;
}

function parse(line: string): v.InferOutput<typeof Report> | undefined {
  try {
    const parsed = v.safeParse(Report, JSON.parse(line));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}
