/** Signs a release and the log, by an author's key or as a workflow. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { hexToBytes } from '@noble/curves/utils.js';
import type { ReleaseSigner } from 'sui-enclave/release';
import { encodePreAuth, PAYLOAD_TYPE } from 'sui-enclave/release/envelope';
import { describeHead, digestEntry, type LogEntry, NO_ENTRY } from 'sui-enclave/release/log';
import { FORMAT } from 'sui-enclave/release/signed';
import { formatStatement, type Statement } from 'sui-enclave/release/statement';
import { UnreadableFileError } from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { loadToolchain, type SigstoreUrls } from '../toolchain.ts';
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

/** Returns the public key, 32 bytes in hexadecimal. */
function formatPublicKey(key: KeyObject): string {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
}

/** A signer of releases, with the function that signs. */
export interface Signing {
  /** The signer that a reader of the release must expect. */
  readonly signer: ReleaseSigner;
  sign(statement: Statement): Promise<unknown>;
}

/** Returns a signer that signs with a private key. */
export function createKeySigner(key: KeyObject): Signing {
  return {
    signer: { publicKey: hexToBytes(formatPublicKey(key)) },
    async sign(statement) {
      const payload = Buffer.from(formatStatement(statement));
      const signature = sign(null, encodePreAuth(payload), key);
      return {
        payloadType: PAYLOAD_TYPE,
        payload: payload.toString('base64'),
        signatures: [{ keyid: '', sig: signature.toString('base64') }],
      };
    },
  };
}

/**
 * Returns a signer that signs as the workflow of this run.
 *
 * @param signer the workflow that readers expect
 * @throws ToolchainError
 */
export async function createWorkflowSigner(signer: ReleaseSigner, urls: SigstoreUrls): Promise<Signing> {
  const { signKeyless } = await (await loadToolchain()).keyless();
  return {
    signer,
    async sign(statement) {
      try {
        return await signKeyless(Buffer.from(formatStatement(statement)), PAYLOAD_TYPE, urls);
      } catch (error) {
        // Message and cause may contain the token of the run.
        throw new ReleaseCommandError('SIGSTORE', `Sigstore did not sign: ${describeFailure(error)}`);
      }
    },
  };
}

/** Describes an error of `@sigstore/sign` by its code, and by the status of the server. */
function describeFailure(error: unknown): string {
  const { code, cause } = Object(error);
  const { statusCode } = Object(cause);
  const name = typeof code === 'string' && /^[A-Z_]{1,50}$/.test(code) ? code : 'unknown error';
  return Number.isInteger(statusCode) ? `${name}, status ${statusCode}` : name;
}

/** Signs the statements, and formats them as `release.json`. */
export async function formatRelease(
  statements: readonly Statement[],
  { sign: signStatement }: Signing,
): Promise<string> {
  const signed: unknown[] = [];
  for (const statement of statements) signed.push(await signStatement(statement));
  return `${JSON.stringify({ version: FORMAT, statements: signed }, null, 2)}\n`;
}

/** Signs a head that expires after this number of days, and formats the log with the head. */
export async function formatLog(
  entries: readonly LogEntry[],
  { sign: signStatement }: Signing,
  days: number,
): Promise<string> {
  const expiresMs = Date.now() + days * DAY_MS;
  const head = describeHead({ sequence: entries.length, digest: digestLast(entries), expiresMs });
  const file = { version: FORMAT, entries, head: await signStatement(head) };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** Appends an entry to the author's log. */
export function append(
  entries: readonly LogEntry[],
  kind: LogEntry['kind'],
  version: string,
  subjects: string,
): readonly LogEntry[] {
  return [...entries, { kind, version, subjects, previous: digestLast(entries) }];
}

/** Returns the digest of the last entry, which the head and the next entry contain. */
export function digestLast(entries: readonly LogEntry[]): string {
  const last = entries.at(-1);
  return last === undefined ? NO_ENTRY : digestEntry(last);
}
