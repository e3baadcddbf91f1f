/** Verifies what an author has released: who signed it, of which commit, and that it is not withdrawn. */
import { openBundle } from '#keyless';
import { openEnvelope } from './envelope.ts';
import { ReleaseError } from './errors.ts';
import {
  checkSigner,
  HEAD_EVENTS,
  RELEASE_EVENTS,
  type ReleaseEvent,
  type ReleaseSigner,
  type SignerClaims,
} from './identity.ts';
import { badForm, parseStrictJson, requireList, requireObject } from './json.ts';
import { checkHead, findInLog, type LogHead, readEntries, readHead, type SeenHead } from './log.ts';
import { type ReleaseContent, readRelease, readStatement, type Statement } from './statement.ts';

/** Of the release file: two bundles of Sigstore, with their certificates and proofs. */
const MAX_RELEASE = 1_000_000;
/** Of the log: some thousand entries. */
const MAX_LOG = 1_000_000;
/** Of one payload. */
const MAX_PAYLOAD = 200_000;
const FORMAT = 1;

/** Options of `verifyRelease`. */
export interface VerifyReleaseOptions {
  /** Who may have signed the release and the head of the log. */
  readonly signer: ReleaseSigner;
  /** The content of the author's log. */
  readonly log: Uint8Array;
  /** The head that was seen last: a log without it is refused. A first reader can't detect a rewrite. */
  readonly seen?: SeenHead;
  /** Time of the check, in milliseconds since 1970. Default: the present. */
  readonly now?: number;
}

/** A release that its author vouches for. It says nothing about what runs: that is the attestation's. */
export interface VerifiedRelease extends ReleaseContent {
  /** Keep its `sequence` and `digest`, for `seen`. */
  readonly head: LogHead;
}

/**
 * Verifies the file of a release against the author's log. A true release proves who vouches for these
 * registers, and not that the image was built of the commit: only a rebuild does.
 *
 * Exported as `sui-enclave/release`.
 *
 * @param release the content of `release.json`
 * @throws ReleaseError
 * @example
 * const release = await verifyRelease(file, { signer: { publicKey }, log });
 * const client = new EnclaveClient(url, { policy: { images: [release.image] } });
 */
export async function verifyRelease(
  release: Uint8Array,
  options: VerifyReleaseOptions,
): Promise<VerifiedRelease> {
  const signer = checkSigner(options.signer);
  const now = options.now ?? Date.now();
  const { statements } = readFormat(parseStrictJson(release, 'the release', MAX_RELEASE), 'the release');
  const signed = await Promise.all(
    requireList(statements, 'statements')
      .slice(0, 3)
      .map((value) => openStatement(value, signer, RELEASE_EVENTS)),
  );
  const content = readRelease(signed.map(({ statement }) => statement));
  for (const { claims } of signed) checkClaims(claims, content);
  const { entries, head: signedHead } = readFormat(
    parseStrictJson(options.log, 'the log', MAX_LOG),
    'the log',
  );
  const logged = readEntries(entries);
  const { statement } = await openStatement(signedHead, signer, HEAD_EVENTS);
  const head = readHead(statement);
  checkHead(logged, head, { now, seen: options.seen });
  findInLog(logged, content);
  return { ...content, head };
}

function readFormat(value: unknown, label: string): Readonly<Record<string, unknown>> {
  const file = requireObject(value, label);
  if (file['version'] !== FORMAT) throw badForm(label, `of the version ${FORMAT}`);
  return file;
}

interface SignedStatement {
  readonly statement: Statement;
  readonly claims: SignerClaims;
}

async function openStatement(
  value: unknown,
  signer: ReleaseSigner,
  events: readonly ReleaseEvent[],
): Promise<SignedStatement> {
  const { payload, claims } =
    'publicKey' in signer
      ? {
          payload: await openEnvelope(value, signer.publicKey),
          claims: { commit: undefined, tag: undefined },
        }
      : await openBundle(value, { ...signer, events });
  return { statement: readStatement(parseStrictJson(payload, 'a statement', MAX_PAYLOAD)), claims };
}

/** The certificate's commit and tag are those of the statement; a key knows neither. */
function checkClaims({ commit, tag }: SignerClaims, { source, version }: ReleaseContent): void {
  if (commit === undefined && tag === undefined) return;
  if (commit !== source.commit) {
    throw new ReleaseError(
      'RELEASE_COMMIT',
      `the certificate is of the commit ${commit}, not ${source.commit}`,
    );
  }
  if (tag !== version) {
    throw new ReleaseError('RELEASE_COMMIT', `the certificate is of the tag ${tag}, not ${version}`);
  }
}
