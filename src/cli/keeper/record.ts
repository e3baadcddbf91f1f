/**
 * The file with what a keeper signed in the last 24 hours. The file contains no secret, and no node can
 * change it.
 */
import { replaceFile } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { readRegularFile } from '../read_file.ts';
import type { SigningRecord } from './budget.ts';
import { KeeperFileError } from './file.ts';

const RecordFile = v.strictObject({
  signed: v.array(
    v.strictObject({
      /** Time of the signature, in milliseconds since 1970. */
      at: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
      mist: v.pipe(
        v.string(),
        v.regex(/^[1-9]\d{0,18}$/),
        v.transform((mist) => BigInt(mist)),
      ),
    }),
  ),
});

/**
 * Opens the file, or makes an empty one. The file must be writable, since a transaction that can't be
 * recorded is not signed.
 *
 * @throws KeeperFileError if it can't be read or written, or is of another kind
 */
export function openRecord(path: string): SigningRecord {
  const now = Date.now();
  // If the clock was set back, a recorded time may be ahead of it. It then counts as now.
  const signed = read(path).map(({ at, mist }) => ({ ageMs: Math.max(0, now - at), mist }));
  const record: SigningRecord = {
    signed,
    replace(signed) {
      const now = Date.now();
      const entries = signed.map(({ ageMs, mist }) => ({
        at: Math.max(0, Math.floor(now - ageMs)),
        mist: `${mist}`,
      }));
      try {
        replaceFile(path, `${JSON.stringify({ signed: entries })}\n`, 0o600);
      } catch (cause) {
        const { code } = cause as NodeJS.ErrnoException;
        throw new KeeperFileError(
          `${path} can't be written (${code}), so nothing is signed: correct that, or name another file by --record`,
          { cause },
        );
      }
    },
  };
  record.replace(signed);
  return record;
}

function read(path: string): v.InferOutput<typeof RecordFile>['signed'] {
  let text: string;
  try {
    text = readRegularFile(path).toString();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new KeeperFileError(`${path} can't be read: ${code}`, { cause });
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), RecordFile), text);
  if (parsed.success) return parsed.output.signed;
  throw new KeeperFileError(
    `${path} is not a file that a keeper wrote, so what it signed in the last 24 hours is not known: wait a day and remove the file, or remove it at once and accept that up to gas_a_day may be spent again`,
  );
}
