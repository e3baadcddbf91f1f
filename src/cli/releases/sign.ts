/** Signs a release by an author's key, and the log with it. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { encodePreAuth, PAYLOAD_TYPE } from 'sui-enclave/release/envelope';
import { describeHead, digestEntry, type LogEntry, NO_ENTRY } from 'sui-enclave/release/log';
import { FORMAT } from 'sui-enclave/release/signed';
import { formatStatement, type Statement } from 'sui-enclave/release/statement';
import { UnreadableFileError } from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { ReleaseCommandError } from './errors.ts';

const DAY_MS = 86_400_000;

/**
 * Reads a private key that only its owner can read.
 *
 * @param file Ed25519 in PEM (PKCS #8), as `openssl genpkey -algorithm ed25519` writes it
 * @throws UnreadableFileError; ReleaseCommandError: RELEASE_KEY
 */
export function readKey(file: string): KeyObject {
  let pem: Buffer;
  try {
    pem = readRegularFile(file, ({ mode }) => {
      if ((mode & 0o077) !== 0) {
        throw new ReleaseCommandError('RELEASE_KEY', `others can read ${file}: run chmod 600 ${file}`);
      }
    });
  } catch (cause) {
    if (cause instanceof ReleaseCommandError) throw cause;
    throw new UnreadableFileError(`${file} can't be read: ${(cause as NodeJS.ErrnoException).code}`);
  }
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem);
  } catch {
    // The cause could show a part of the file.
  }
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new ReleaseCommandError('RELEASE_KEY', `${file} is not a private Ed25519 key in PEM`);
}

/** The public key, 32 bytes in hexadecimal. */
export function formatPublicKey(key: KeyObject): string {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
}

/** `release.json`. */
export function formatRelease(statements: readonly Statement[], key: KeyObject): string {
  const signed = statements.map((statement) => signStatement(statement, key));
  return `${JSON.stringify({ version: FORMAT, statements: signed }, null, 2)}\n`;
}

/** The log with a head that expires after some days. */
export function formatLog(
  entries: readonly LogEntry[],
  key: KeyObject,
  days: number,
  now = Date.now(),
): string {
  const expiresMs = now + days * DAY_MS;
  const head = describeHead({ sequence: entries.length, digest: digestLast(entries), expiresMs });
  return `${JSON.stringify({ version: FORMAT, entries, head: signStatement(head, key) }, null, 2)}\n`;
}

/** Appends an entry. */
export function append(
  entries: readonly LogEntry[],
  kind: LogEntry['kind'],
  version: string,
  subjects: string,
): readonly LogEntry[] {
  return [...entries, { kind, version, subjects, previous: digestLast(entries) }];
}

/** Digests the last entry, which the head and the next entry name. */
export function digestLast(entries: readonly LogEntry[]): string {
  const last = entries.at(-1);
  return last === undefined ? NO_ENTRY : digestEntry(last);
}

function signStatement(statement: Statement, key: KeyObject): object {
  const payload = Buffer.from(formatStatement(statement));
  const signature = sign(null, encodePreAuth(payload), key);
  return {
    payloadType: PAYLOAD_TYPE,
    payload: payload.toString('base64'),
    signatures: [{ keyid: '', sig: signature.toString('base64') }],
  };
}
