/**
 * The log of an author's releases. Each entry names the digest of the previous entry. A signed head names the
 * last entry, and expires. The registers of an image do not cover the log.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { invalidReleaseOption, ReleaseError } from './errors.ts';
import { badForm, requireCount, requireList, requireObject, requireText } from './json.ts';
import { HEAD_TYPE, isSame, type ReleaseContent, SHA256, type Statement, VERSION } from './statement.ts';

/** The digest before the first entry. */
export const NO_ENTRY = '0'.repeat(64);
/** Name of the subject in the log's head. The digest of this subject is the last entry's. */
const HEAD_SUBJECT = 'log';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;

export interface LogEntry {
  readonly kind: 'release' | 'withdrawal';
  readonly version: string;
  /** SHA-256 of the files and their digests: see `digestSubjects`. */
  readonly subjects: string;
  /** SHA-256 of the previous entry; zeros in the first entry. */
  readonly previous: string;
}

/** The head that a reader saw last. */
export interface SeenHead {
  /** The number of entries. */
  readonly sequence: number;
  /** SHA-256 of the last entry, in hexadecimal. */
  readonly digest: string;
}

export interface LogHead extends SeenHead {
  /** Time at which the head expires, in milliseconds since 1970. */
  readonly expiresMs: number;
}

/** Checks and copies the head that a reader saw last. @throws ReleaseError: RELEASE_OPTION */
export function checkSeenHead(seen: SeenHead): SeenHead {
  const { sequence, digest }: Partial<SeenHead> = Object(seen);
  if (Number.isSafeInteger(sequence) && Number(sequence) > 0 && SHA256.test(String(digest))) {
    return { sequence: Number(sequence), digest: String(digest) };
  }
  throw invalidReleaseOption(
    '"seen" must be a head: a positive integer "sequence", and a SHA-256 "digest" in hexadecimal',
  );
}

/** Returns the SHA-256 of the list of files, which differs for two releases with different files. */
export function digestSubjects(subjects: ReleaseContent['subjects']): string {
  const lines = [...subjects].map(([name, digest]) => `${digest}  ${name}\n`).sort();
  return bytesToHex(sha256(utf8ToBytes(lines.join(''))));
}

export function digestEntry({ kind, version, subjects, previous }: LogEntry): string {
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify([kind, version, subjects, previous]))));
}

/**
 * Reads the entries, and checks their chain.
 *
 * @throws ReleaseError: RELEASE_FORM, RELEASE_LOG, RELEASE_CONFLICT
 */
export function readEntries(value: unknown): readonly LogEntry[] {
  let previous = NO_ENTRY;
  const released = new Map<string, string>();
  return requireList(value, 'entries').map((content) => {
    const entry = readEntry(content);
    if (entry.previous !== previous) {
      throw new ReleaseError(
        'RELEASE_LOG',
        `the entry of ${entry.version} does not name the digest of the previous entry`,
      );
    }
    previous = digestEntry(entry);
    const earlierSubjects = released.get(entry.version);
    if (entry.kind === 'release' && earlierSubjects !== undefined && earlierSubjects !== entry.subjects) {
      throw new ReleaseError(
        'RELEASE_CONFLICT',
        `the log has two releases of ${entry.version} with different files`,
      );
    }
    if (entry.kind === 'release') released.set(entry.version, entry.subjects);
    return entry;
  });
}

function readEntry(value: unknown): LogEntry {
  const { kind, version, subjects, previous } = requireObject(value, 'an entry of the log');
  if (kind !== 'release' && kind !== 'withdrawal')
    throw badForm('the kind of an entry', 'release or withdrawal');
  return {
    kind,
    version: requireText(version, 'the version of an entry', VERSION),
    subjects: requireText(subjects, 'the subjects of an entry', SHA256),
    previous: requireText(previous, 'the previous of an entry', SHA256),
  };
}

/** Returns the statement of a head. */
export function describeHead({ sequence, digest, expiresMs }: LogHead): Statement {
  const predicate = { sequence, expires: new Date(expiresMs).toISOString() };
  return { predicateType: HEAD_TYPE, predicate, subjects: new Map([[HEAD_SUBJECT, digest]]) };
}

/** Reads a head from its statement. @throws ReleaseError: RELEASE_FORM */
export function readHead({ predicateType, predicate, subjects }: Statement): LogHead {
  const digest = subjects.get(HEAD_SUBJECT);
  if (
    predicateType !== HEAD_TYPE ||
    digest === undefined ||
    !isSame(subjects, new Map([[HEAD_SUBJECT, digest]]))
  ) {
    throw badForm('the head of the log', `a statement of the type ${HEAD_TYPE} about "${HEAD_SUBJECT}"`);
  }
  const expiresMs = Date.parse(requireText(predicate['expires'], 'expires', TIME));
  if (Number.isNaN(expiresMs)) throw badForm('expires', 'a time');
  return { sequence: requireCount(predicate['sequence'], 'sequence'), digest, expiresMs };
}

/**
 * Checks that the head belongs to these entries, is fresh, and is no older than the head that was seen
 * before.
 *
 * @throws ReleaseError: RELEASE_LOG, RELEASE_HEAD_EXPIRED, RELEASE_HEAD_ROLLED_BACK
 */
export function checkHead(
  entries: readonly LogEntry[],
  { sequence, digest, expiresMs }: LogHead,
  { now, seen }: { readonly now: number; readonly seen: SeenHead | undefined },
): void {
  const lastEntry = entries.at(-1);
  if (lastEntry === undefined || entries.length !== sequence || digestEntry(lastEntry) !== digest) {
    throw new ReleaseError('RELEASE_LOG', 'the head of the log does not name its last entry');
  }
  if (now > expiresMs) {
    const expiry = new Date(expiresMs).toISOString();
    throw new ReleaseError(
      'RELEASE_HEAD_EXPIRED',
      `the head of the log expired at ${expiry}: get a fresh head`,
    );
  }
  if (seen === undefined) return;
  const seenEntry = entries[seen.sequence - 1];
  if (seenEntry === undefined || digestEntry(seenEntry) !== seen.digest) {
    throw new ReleaseError(
      'RELEASE_HEAD_ROLLED_BACK',
      `the log lacks the entry ${seen.sequence} that was seen before: it was rolled back or rewritten`,
    );
  }
}

/** Requires that the log has the release. @throws ReleaseError: RELEASE_NOT_LOGGED, RELEASE_WITHDRAWN */
export function requireLogged(entries: readonly LogEntry[], { version, subjects }: ReleaseContent): void {
  const digest = digestSubjects(subjects);
  const entriesOfVersion = entries.filter((entry) => entry.version === version);
  if (entriesOfVersion.some(({ kind }) => kind === 'withdrawal')) {
    throw new ReleaseError('RELEASE_WITHDRAWN', `the log withdraws ${version}`);
  }
  if (
    !entriesOfVersion.some(
      ({ kind, subjects: loggedDigest }) => kind === 'release' && loggedDigest === digest,
    )
  ) {
    throw new ReleaseError(
      'RELEASE_NOT_LOGGED',
      `the log has no entry for exactly these files of ${version}`,
    );
  }
}
