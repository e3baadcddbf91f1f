/** Reads the file of an author's log: its entries and its signed head. */
import { ReleaseIdentityError } from './errors.ts';
import { HEAD_EVENTS, type ReleaseSigner, type SignerClaims } from './identity.ts';
import { parseStrictJson } from './json.ts';
import { checkHead, type LogEntry, type LogHead, readEntries, readHead, type SeenHead } from './log.ts';
import { checkVersion, openStatement } from './signed.ts';

/** Maximum size of a log in bytes, enough for several thousand entries. */
const MAX_LOG = 1_000_000;

/** The options of a reader of a log. */
export interface ReadLogOptions {
  readonly signer: ReleaseSigner;
  /** The current time, in milliseconds since 1970. */
  readonly now: number;
  readonly seen: SeenHead | undefined;
}

/**
 * Reads a log. Its head must be signed, fresh, and no older than the head that was seen before.
 *
 * @throws ReleaseError
 */
export async function readLog(
  log: Uint8Array,
  { signer, now, seen }: ReadLogOptions,
): Promise<{ readonly entries: readonly LogEntry[]; readonly head: LogHead }> {
  const file = checkVersion(parseStrictJson(log, 'the log', MAX_LOG), 'the log');
  const entries = readEntries(file['entries']);
  const { statement, claims } = await openStatement(file['head'], signer, HEAD_EVENTS);
  const head = readHead(statement);
  checkHead(entries, head, { now, seen });
  checkNewestTag(claims, entries);
  return { entries, head };
}

/**
 * Requires that the workflow signed the head at the newest tag: the workflow of an older tag may have a fault
 * that was fixed later.
 */
function checkNewestTag({ tag }: SignerClaims, entries: readonly LogEntry[]): void {
  const newest = entries.findLast(({ kind }) => kind === 'release')?.version;
  if (tag === undefined || tag === newest) return;
  throw new ReleaseIdentityError('source ref', `refs/tags/${newest}`, `refs/tags/${tag}`);
}
