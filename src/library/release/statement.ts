/**
 * The two statements of a release, in the form of in-toto's attestation framework v1 (Statement v1): a
 * provenance in the form of SLSA v1, and a statement of this project's own type, with the registers. Both are
 * about the same files.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { formatPcrs, type Image } from '../attestation/image.ts';
import { ReleaseError } from './errors.ts';
import { badForm, requireList, requireObject, requireText } from './json.ts';

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PROVENANCE_TYPE = 'https://slsa.dev/provenance/v1';
export const RELEASE_TYPE = 'urn:sui-enclave:release:v1';
export const HEAD_TYPE = 'urn:sui-enclave:release-head:v1';

/** The files that each release has. */
export const REQUIRED_SUBJECTS = [
  'nitro.eif',
  'nitro.pcrs',
  'measurements.json',
  'sbom.json',
  'inputs.tar',
  'schema.json',
] as const;
const MAX_SUBJECTS = 100;

export const SHA256 = /^[0-9a-f]{64}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/;
const COMMIT = /^[0-9a-f]{40}$/;
const PRINTABLE = /^[ -~]{1,200}$/;
/** Register of an image, which is not zero: the registers of debug enclaves are zero, whatever they run. */
const REGISTER = /^(?!0+$)[0-9a-f]{96}$/;
export const VERSION = /^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]{1,64})?$/;

export interface Statement {
  readonly predicateType: string;
  readonly predicate: Readonly<Record<string, unknown>>;
  /** SHA-256 in hexadecimal by the name of the file. */
  readonly subjects: ReadonlyMap<string, string>;
}

/** Content of a release, as its statement lists it. */
export interface ReleaseContent {
  /** The tag, such as `v1.2.0`. */
  readonly version: string;
  /** The registers of the released image. */
  readonly image: Image;
  /** The sources from which the image was built. */
  readonly source: {
    /** HTTPS address of the public repository. */
    readonly url: string;
    /** The hash of the commit, 40 hexadecimal digits. */
    readonly commit: string;
    /** The application's folder in the repository; empty for the root. */
    readonly folder: string;
    /** The version of the framework. */
    readonly frameworkVersion: string;
  };
  /** SHA-256 in hexadecimal by the name of the file. */
  readonly subjects: ReadonlyMap<string, string>;
}

/** Checks the form of a statement. @throws ReleaseError: RELEASE_FORM */
export function readStatement(value: unknown): Statement {
  const statement = requireObject(value, 'the statement');
  if (statement['_type'] !== STATEMENT_TYPE) throw badForm('the statement', `of the type ${STATEMENT_TYPE}`);
  const subjectList = requireList(statement['subject'], 'the subject of the statement');
  if (subjectList.length === 0 || subjectList.length > MAX_SUBJECTS) {
    throw badForm('the subject of the statement', `a list of 1 to ${MAX_SUBJECTS} files`);
  }
  const subjects = new Map<string, string>();
  for (const subject of subjectList) {
    const { name, digest } = requireObject(subject, 'a subject');
    const path = requireText(name, 'the name of a subject', NAME);
    if (subjects.has(path))
      throw badForm('the subject of the statement', `a list of different files: it has ${path} twice`);
    const { sha256: hex } = requireObject(digest, `the digest of ${path}`);
    subjects.set(path, requireText(hex, `the SHA-256 of ${path}`, SHA256));
  }
  const predicateType = requireText(statement['predicateType'], 'the predicateType', PRINTABLE);
  return { predicateType, predicate: requireObject(statement['predicate'], 'the predicate'), subjects };
}

/**
 * Reads the two statements of a release, in any order.
 *
 * @throws ReleaseError: RELEASE_FORM, RELEASE_SUBJECTS, RELEASE_COMMIT
 */
export function readRelease(statements: readonly Statement[]): ReleaseContent {
  const ofType = (type: string) => statements.filter(({ predicateType }) => predicateType === type);
  const [[release, ...releases], [provenance, ...provenances]] = [
    ofType(RELEASE_TYPE),
    ofType(PROVENANCE_TYPE),
  ];
  if (!release || !provenance || releases.length + provenances.length > 0 || statements.length !== 2) {
    throw badForm('the release', `two statements, of the types ${RELEASE_TYPE} and ${PROVENANCE_TYPE}`);
  }
  const { subjects } = release;
  if (!isSame(subjects, provenance.subjects)) {
    throw new ReleaseError('RELEASE_SUBJECTS', 'the two statements are not about the same files');
  }
  const missing = REQUIRED_SUBJECTS.find((name) => !subjects.has(name));
  if (missing !== undefined) {
    throw new ReleaseError('RELEASE_SUBJECTS', `the statements do not list the file ${missing}`);
  }
  const content = { ...readPredicate(release.predicate), subjects };
  const registers = bytesToHex(sha256(utf8ToBytes(formatPcrs(content.image))));
  if (subjects.get('nitro.pcrs') !== registers) {
    throw new ReleaseError('RELEASE_SUBJECTS', 'nitro.pcrs and the statement have different registers');
  }
  const commit = readCommit(provenance.predicate);
  if (commit !== content.source.commit) {
    throw new ReleaseError(
      'RELEASE_COMMIT',
      `the provenance names the commit ${commit}, not ${content.source.commit}`,
    );
  }
  return content;
}

function readPredicate(predicate: Statement['predicate']): Omit<ReleaseContent, 'subjects'> {
  const { version, registers, repository, commit, folder, frameworkVersion } = predicate;
  const { pcr0, pcr1, pcr2 } = requireObject(registers, 'registers');
  const image = {
    pcr0: requireText(pcr0, 'pcr0', REGISTER),
    pcr1: requireText(pcr1, 'pcr1', REGISTER),
    pcr2: requireText(pcr2, 'pcr2', REGISTER),
  };
  return {
    version: requireText(version, 'version', VERSION),
    image,
    source: {
      url: requireText(repository, 'repository', PRINTABLE),
      commit: requireText(commit, 'commit', COMMIT),
      folder: folder === '' ? '' : requireText(folder, 'folder', NAME),
      frameworkVersion: requireText(frameworkVersion, 'frameworkVersion', PRINTABLE),
    },
  };
}

/**
 * Returns the commit of a provenance. As in GitHub's build type, the first resolved dependency is the source.
 */
function readCommit(predicate: Statement['predicate']): string {
  const definition = requireObject(predicate['buildDefinition'], 'buildDefinition');
  const [source] = requireList(definition['resolvedDependencies'], 'resolvedDependencies');
  const { digest } = requireObject(source, 'the first of resolvedDependencies');
  const gitDigest = requireObject(digest, 'the digest of the first of resolvedDependencies');
  return requireText(gitDigest['gitCommit'], 'gitCommit', COMMIT);
}

export function isSame(first: ReadonlyMap<string, string>, second: ReadonlyMap<string, string>): boolean {
  return first.size === second.size && [...first].every(([name, digest]) => second.get(name) === digest);
}

/** Returns the statement as JSON, for the signer. */
export function formatStatement({ predicateType, predicate, subjects }: Statement): string {
  return JSON.stringify({
    _type: STATEMENT_TYPE,
    subject: [...subjects].map(([name, digest]) => ({ name, digest: { sha256: digest } })),
    predicateType,
    predicate,
  });
}
