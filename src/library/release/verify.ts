/** Verifies a release: its signer, its commit, and its entry in the author's log. */
import { invalidReleaseOption, ReleaseError } from './errors.ts';
import { checkSigner, RELEASE_EVENTS, type ReleaseSigner, type SignerClaims } from './identity.ts';
import { parseStrictJson, requireList } from './json.ts';
import { checkSeenHead, type LogHead, requireLogged, type SeenHead } from './log.ts';
import { type ReadLogOptions, readLog } from './log_file.ts';
import { checkVersion, openStatement } from './signed.ts';
import { type ReleaseContent, readRelease } from './statement.ts';

/**
 * Maximum size of the release file in bytes: enough for two bundles of Sigstore with their certificates and
 * proofs.
 */
const MAX_RELEASE = 1_000_000;

/** Options of `verifyRelease`: the accepted signer, the log, and the head that was seen last. */
export interface VerifyReleaseOptions {
  /** Permitted signer of the release and of the log's head. */
  readonly signer: ReleaseSigner;
  /** The content of the author's log. */
  readonly log: Uint8Array;
  /**
   * The head that was seen last. A log without its entry is refused. Without `seen`, a rewritten log can't be
   * detected.
   */
  readonly seen?: SeenHead;
  /** Time of the check: a Date, or milliseconds since 1970. Default: the current time. */
  readonly now?: Date | number;
}

const OPTIONS: readonly string[] = ['signer', 'log', 'seen', 'now'] satisfies (keyof VerifyReleaseOptions)[];

/** A release that its author vouches for. Only an attestation shows what runs. */
export interface VerifiedRelease extends ReleaseContent {
  /** Keep its `sequence` and `digest`, for `seen`. */
  readonly head: LogHead;
}

/**
 * Verifies the file of a release against the author's log. A verified release proves who vouches for these
 * registers. It doesn't prove that the image was built from the commit: only a rebuild does.
 *
 * Exported as `sui-enclave/release`.
 *
 * @param release the content of `release.json`
 * @throws ReleaseError
 * @example
 * const release = await verifyRelease(file, { signer: { publicKey }, log });
 * const client = new EnclaveClient(url, { policy: { release } });
 */
export async function verifyRelease(
  release: Uint8Array,
  options: VerifyReleaseOptions,
): Promise<VerifiedRelease> {
  const { signer, log, seen, now } = checkOptions(options);
  const { statements } = checkVersion(parseStrictJson(release, 'the release', MAX_RELEASE), 'the release');
  const signed = await Promise.all(
    requireList(statements, 'statements')
      .slice(0, 3)
      .map((value) => openStatement(value, signer, RELEASE_EVENTS)),
  );
  const content = readRelease(signed.map(({ statement }) => statement));
  for (const { claims } of signed) checkClaims(claims, content);
  const { entries, head } = await readLog(log, { signer, now, seen });
  requireLogged(entries, content);
  return { ...content, head };
}

/** Refuses unknown options: a misspelt option would silently leave out a check. */
function checkOptions(options: VerifyReleaseOptions): ReadLogOptions & { readonly log: Uint8Array } {
  if (typeof options !== 'object' || options === null)
    throw invalidReleaseOption('the options must be an object');
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw invalidReleaseOption(`unknown option "${unknown}"; known ones: ${OPTIONS.join(', ')}`);
  }
  const { log, seen, now = Date.now() } = options;
  const time: unknown = now instanceof Date ? now.getTime() : now;
  // With a time such as NaN, an expired head would count as fresh.
  if (typeof time !== 'number' || !Number.isFinite(time)) {
    throw invalidReleaseOption('"now" must be a Date or a number of milliseconds since 1970');
  }
  return {
    signer: checkSigner(options.signer),
    log,
    seen: seen === undefined ? undefined : checkSeenHead(seen),
    now: time,
  };
}

/** Compares the certificate's commit and tag with the statement's. A signature by a key has neither. */
function checkClaims({ commit, tag }: SignerClaims, { source, version }: ReleaseContent): void {
  if (commit === undefined && tag === undefined) return;
  if (commit !== source.commit) {
    throw new ReleaseError(
      'RELEASE_COMMIT',
      `the certificate names the commit ${commit}, not ${source.commit}`,
    );
  }
  if (tag !== version) {
    throw new ReleaseError('RELEASE_COMMIT', `the certificate names the tag ${tag}, not ${version}`);
  }
}
