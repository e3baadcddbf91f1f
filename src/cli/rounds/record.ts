/**
 * The file with the transactions that a program signed in the last 24 hours. It contains no secret, and no
 * node can change it.
 */
import { uptime } from 'node:os';
import type { EnclaveError } from 'sui-enclave/errors';
import { replaceFileDurably } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { readBootId } from '../kernel_files.ts';
import { readRegularFile } from '../read_file.ts';
import type { Signed, SigningRecord } from './budget.ts';

/** A number of milliseconds: since 1970, or since the boot for `uptime`. */
const time = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const RecordFile = v.strictObject({
  /**
   * Time at which the file was written. It is missing in files of earlier versions, and if the kernel hides
   * the id of its boot.
   */
  written: v.optional(
    v.strictObject({
      /** Time by the wall clock. */
      at: time,
      /** Id of the kernel's boot. */
      boot: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,100}$/)),
      /** Time since this boot, in milliseconds. Setting the wall clock doesn't change it. */
      uptime: time,
    }),
  ),
  signed: v.array(
    v.strictObject({
      /** Time of the signature by the wall clock. */
      at: time,
      mist: v.pipe(
        v.string(),
        v.regex(/^[1-9]\d{0,18}$/),
        v.transform((mist) => BigInt(mist)),
      ),
    }),
  ),
});

type Content = v.InferOutput<typeof RecordFile>;

/** Class of the errors for an unusable file, such as the record of a program. */
export type FileFault = new (message: string, options?: ErrorOptions) => EnclaveError;

/**
 * Opens the file, or makes an empty one. The file must be writable, since a transaction that can't be
 * recorded is not signed.
 *
 * @param Fault class of the error if the file can't be read or written, or is not a record
 */
export function openRecord(path: string, Fault: FileFault): SigningRecord {
  const signed = toSigned(read(path, Fault));
  const record: SigningRecord = {
    signed,
    replace(signed) {
      const now = Date.now();
      const boot = readBootId();
      const content = {
        ...(boot && { written: { at: now, boot, uptime: uptimeMs() } }),
        signed: signed.map(({ ageMs, mist }) => ({
          at: Math.max(0, Math.floor(now - ageMs)),
          mist: `${mist}`,
        })),
      };
      try {
        replaceFileDurably(path, `${JSON.stringify(content)}\n`, 0o600);
      } catch (cause) {
        const { code } = cause as NodeJS.ErrnoException;
        throw new Fault(
          `${path} can't be written (${code}), so no transaction is signed: correct that, or name another file by --record`,
          { cause },
        );
      }
    },
  };
  record.replace(signed);
  return record;
}

/**
 * Returns the transactions with their ages. Within a boot, the kernel measures the time since the record was
 * written, so a change of the wall clock between two processes changes no age.
 */
function toSigned({ written, signed }: Content): Signed[] {
  const now = Date.now();
  const isSameBoot = written !== undefined && written.boot === readBootId();
  const present = isSameBoot ? written.at + Math.max(0, uptimeMs() - written.uptime) : now;
  // A time ahead of the clock counts as now, since the clock was set back.
  return signed.map(({ at, mist }) => ({ ageMs: Math.max(0, present - at), mist }));
}

/** Returns the time since the kernel started, in milliseconds. */
function uptimeMs(): number {
  return Math.floor(uptime() * 1000);
}

function read(path: string, Fault: FileFault): Content {
  let text: string;
  try {
    text = readRegularFile(path).toString();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { signed: [] };
    throw new Fault(`${path} can't be read: ${code}`, { cause });
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), RecordFile), text);
  if (parsed.success) return parsed.output;
  throw new Fault(
    `${path} is not a record of signed transactions, so the gas of the transactions signed in the last 24 hours is not known: wait a day and remove the file, or remove it at once and accept that up to gas_a_day may be spent again`,
  );
}
