/** Signs a release by an author's key, and the log with it. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parsePcrs } from 'sui-enclave/attestation';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { encodePreAuth, PAYLOAD_TYPE } from 'sui-enclave/release/envelope';
import { describeHead, digestEntry, type LogEntry, NO_ENTRY } from 'sui-enclave/release/log';
import { FORMAT } from 'sui-enclave/release/signed';
import {
  formatStatement,
  PROVENANCE_TYPE,
  RELEASE_TYPE,
  type Statement,
} from 'sui-enclave/release/statement';
import * as v from 'valibot';
import { readFileArgument, UnreadableFileError } from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { readVersion } from '../release.ts';
import { ReleaseCommandError } from './errors.ts';

const DAY_MS = 86_400_000;

/** The record of a build that says what it was built from. */
const Measurements = v.object({
  commit: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  unchanged_tree: v.literal(true),
  channel: v.literal('stable'),
  folder: v.pipe(v.string(), v.regex(/^[\w./-]{0,100}$/)),
  framework_version: v.optional(v.string()),
  node_version: v.optional(v.string()),
  registers: v.object({ pcr0: v.string(), pcr1: v.string(), pcr2: v.string() }),
  sha256: v.object({ eif: v.string() }),
});

/** The files of a release. */
export interface ReleaseFiles {
  /** The folder with `nitro.eif` and what a build writes beside it. */
  readonly out: string;
  readonly schema: string;
  /** What `compile` wrote of the Move packages. */
  readonly bytecode: readonly string[];
}

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

/**
 * Describes a build by the two statements of a release.
 *
 * @throws UnreadableFileError, AttestationError; ReleaseCommandError: NOT_RELEASABLE
 */
export async function describeRelease(
  version: string,
  repository: string,
  { out, schema, bytecode }: ReleaseFiles,
): Promise<readonly [provenance: Statement, release: Statement]> {
  const record = join(out, 'measurements.json');
  const parsed = v.safeParse(
    v.pipe(v.string(), v.parseJson(), Measurements),
    String(await readFileArgument(record)),
  );
  if (!parsed.success || parsed.output.node_version !== undefined) {
    throw new ReleaseCommandError(
      'NOT_RELEASABLE',
      `${record} is not of a build with CHANNEL=stable and the pinned Node from a commit without changes: build so from a clean checkout of the tag`,
    );
  }
  const { commit, folder, framework_version: frameworkVersion = readVersion(), registers } = parsed.output;
  const pcrs = String(await readFileArgument(join(out, 'nitro.pcrs')));
  if (formatPcrs(parsePcrs(pcrs)) !== pcrs || formatPcrs(registers) !== pcrs) {
    throw new ReleaseCommandError(
      'NOT_RELEASABLE',
      `${record} has other registers than nitro.pcrs: build again`,
    );
  }
  const files: readonly (readonly [name: string, path: string])[] = [
    ...['nitro.eif', 'nitro.pcrs', 'measurements.json', 'sbom.json', 'inputs.tar'].map(
      (name) => [name, join(out, name)] as const,
    ),
    ['schema.json', schema],
    ...bytecode.map((path) => [`move/${basename(path)}`, path] as const),
  ];
  const subjects = new Map<string, string>();
  for (const [name, path] of files) {
    if (subjects.has(name)) throw new ReleaseCommandError('NOT_RELEASABLE', `two files would be ${name}`);
    subjects.set(name, await digestFile(path));
  }
  if (subjects.get('nitro.eif') !== parsed.output.sha256.eif) {
    throw new ReleaseCommandError('NOT_RELEASABLE', `${record} is not of this nitro.eif: build again`);
  }
  const predicate = {
    version,
    registers,
    repository,
    commit,
    folder: folder === '.' ? '' : folder,
    frameworkVersion,
  };
  const provenance = {
    buildDefinition: {
      buildType: 'urn:sui-enclave:build:v1',
      externalParameters: { repository, version },
      resolvedDependencies: [{ uri: `git+${repository}`, digest: { gitCommit: commit } }],
    },
    runDetails: { builder: { id: 'urn:sui-enclave:author' } },
  };
  return [
    { predicateType: PROVENANCE_TYPE, predicate: provenance, subjects },
    { predicateType: RELEASE_TYPE, predicate, subjects },
  ];
}

async function digestFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path), hash);
  } catch (cause) {
    throw new UnreadableFileError(`${path} can't be read: ${(cause as NodeJS.ErrnoException).code}`, {
      cause,
    });
  }
  return hash.digest('hex');
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
