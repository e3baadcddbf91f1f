/**
 * The log of an author's releases. Each entry names the digest of the entry before. A signed head names the
 * last entry, and expires. The log is not part of what is measured.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { invalidReleaseOption, ReleaseError } from './errors.ts';
import { badForm, requireCount, requireList, requireObject, requireText } from './json.ts';
import { HEAD_TYPE, isSame, type ReleaseContent, SHA256, type Statement, VERSION } from './statement.ts';

/** The digest before the first entry. */
export const NO_ENTRY = '0'.repeat(64);
/** Name of the subject in the log's head, whose digest is that of the last entry. */
const HEAD_SUBJECT = 'log';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;

export interface LogEntry {
  readonly kind: 'release' | 'withdrawal';
  readonly version: string;
  /** SHA-256 of the files and their digests: see `digestSubjects`. */
  readonly subjects: string;
  /** SHA-256 of the entry before; zeros in the first entry. */
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

/** Copies the head that was seen before. @throws ReleaseError: RELEASE_OPTION */
export function checkSeen(seen: SeenHead): SeenHead {
  const { sequence, digest }: Partial<SeenHead> = Object(seen);
  if (Number.isSafeInteger(sequence) && Number(sequence) > 0 && SHA256.test(String(digest))) {
    return { sequence: Number(sequence), digest: String(digest) };
  }
  throw invalidReleaseOption(
    '"seen" must be a head: a positive integer "sequence", and a SHA-256 "digest" in hexadecimal',
  );
}

/** Digests what a release is about, so that two releases of one version can be told apart. */
export function digestSubjects(subjects: ReleaseContent['subjects']): string {
  const lines = [...subjects].map(([name, digest]) => `${digest}  ${name}\n`).sort();
  return bytesToHex(sha256(utf8ToBytes(lines.join(''))));
}

export function digestEntry({ kind, version, subjects, previous }: LogEntry): string {
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify([kind, version, subjects, previous]))));
}

/** @throws ReleaseError: RELEASE_FORM, RELEASE_LOG, RELEASE_CONFLICT */
export function readEntries(value: unknown): readonly LogEntry[] {
  let previous = NO_ENTRY;
  const released = new Map<string, string>();
  return requireList(value, 'entries').map((listed) => {
    const entry = readEntry(listed);
    if (entry.previous !== previous) {
      throw new ReleaseError(
        'RELEASE_LOG',
        `the entry of ${entry.version} does not follow the one before it`,
      );
    }
    previous = digestEntry(entry);
    const before = released.get(entry.version);
    if (entry.kind === 'release' && before !== undefined && before !== entry.subjects) {
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

/** Returns the predicate and subject of a head's statement. */
export function describeHead({ sequence, digest, expiresMs }: LogHead): Statement {
  const predicate = { sequence, expires: new Date(expiresMs).toISOString() };
  return { predicateType: HEAD_TYPE, predicate, subjects: new Map([[HEAD_SUBJECT, digest]]) };
}

/** @throws ReleaseError: RELEASE_FORM */
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
  const last = entries.at(-1);
  if (last === undefined || entries.length !== sequence || digestEntry(last) !== digest) {
    throw new ReleaseError('RELEASE_LOG', 'the head of the log does not name its last entry');
  }
  if (now > expiresMs) {
    const expiry = new Date(expiresMs).toISOString();
    throw new ReleaseError(
      'RELEASE_HEAD_EXPIRED',
      `the head of the log has expired at ${expiry}: get a fresh one`,
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

/** @throws ReleaseError: RELEASE_NOT_LOGGED, RELEASE_WITHDRAWN */
export function findInLog(entries: readonly LogEntry[], { version, subjects }: ReleaseContent): void {
  const digest = digestSubjects(subjects);
  const ofVersion = entries.filter((entry) => entry.version === version);
  if (ofVersion.some(({ kind }) => kind === 'withdrawal')) {
    throw new ReleaseError('RELEASE_WITHDRAWN', `the log withdraws ${version}`);
  }
  if (!ofVersion.some(({ kind, subjects: logged }) => kind === 'release' && logged === digest)) {
    throw new ReleaseError(
      'RELEASE_NOT_LOGGED',
      `the log has no entry for exactly these files of ${version}`,
    );
  }
}
