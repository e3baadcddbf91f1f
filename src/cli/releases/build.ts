/** Describes a build by the statements of a release. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parsePcrs } from 'sui-enclave/attestation';
import { formatPcrs, type Image } from 'sui-enclave/attestation/image';
import { PROVENANCE_TYPE, RELEASE_TYPE, SHA256, type Statement } from 'sui-enclave/release/statement';
import * as v from 'valibot';
import { readFileArgument, UnreadableFileError } from '../command.ts';
import { printable } from '../printable.ts';
import { readVersion } from '../release.ts';
import { ReleaseCommandError } from './errors.ts';
import type { WorkflowRun } from './run.ts';

const digest = v.pipe(v.string(), v.regex(SHA256));

/** Properties that a release needs of `measurements.json`, the record of a build. */
const Measurements = v.object({
  commit: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  unchanged_tree: v.literal(true),
  channel: v.literal('stable'),
  folder: v.pipe(v.string(), v.regex(/^[\w./-]{0,100}$/)),
  framework_version: v.optional(v.string()),
  node_version: v.optional(v.string()),
  registers: v.object({ pcr0: v.string(), pcr1: v.string(), pcr2: v.string() }),
  sha256: v.object({ eif: digest, npm_packages: digest, debian_lock: digest }),
});

/** The files of a release. */
export interface ReleaseFiles {
  /** The folder with `nitro.eif` and the other files of the build. */
  readonly out: string;
  readonly schema: string;
  /** The files that `compile` wrote for the Move packages. */
  readonly bytecode: readonly string[];
}

/** Version of a release, which is its tag, and the repository of its sources. */
export interface ReleaseName {
  readonly version: string;
  /** Address of the public repository. */
  readonly repository: string;
}

/**
 * Describes a build by the two statements of a release.
 *
 * @param run the run that signs; undefined for an author who signs by a key
 */
export function describeRelease(
  { version, repository }: ReleaseName,
  { commit, folder, registers, frameworkVersion, packages, subjects }: Build,
  run: WorkflowRun | undefined,
): readonly [provenance: Statement, release: Statement] {
  const predicate = { version, registers, repository, commit, folder, frameworkVersion, packages };
  const source = { uri: `git+${repository}${run ? `@${run.ref}` : ''}`, digest: { gitCommit: commit } };
  const provenance = {
    buildDefinition: { ...describeBuilder({ version, repository }, run), resolvedDependencies: [source] },
    runDetails: run
      ? { builder: { id: run.builder }, metadata: { invocationId: run.invocation } }
      : { builder: { id: 'urn:sui-enclave:author' } },
  };
  return [
    { predicateType: PROVENANCE_TYPE, predicate: provenance, subjects },
    { predicateType: RELEASE_TYPE, predicate, subjects },
  ];
}

/** Describes how the build was started. A workflow has GitHub's build type "workflow/v1". */
function describeBuilder(name: ReleaseName, run: WorkflowRun | undefined): object {
  if (run === undefined) return { buildType: 'urn:sui-enclave:build:v1', externalParameters: name };
  const { ref, repository, workflow, event, repositoryId, ownerId } = run;
  return {
    buildType: 'https://actions.github.io/buildtypes/workflow/v1',
    externalParameters: { workflow: { ref, repository, path: workflow } },
    internalParameters: {
      github: { event_name: event, repository_id: repositoryId, repository_owner_id: ownerId },
    },
  };
}

interface Build {
  readonly commit: string;
  /** Folder of the application in the repository; empty for the repository itself. */
  readonly folder: string;
  readonly registers: Image;
  readonly frameworkVersion: string;
  /** SHA-256 in hexadecimal of the npm packages in the image, and of the lock of Debian packages. */
  readonly packages: { readonly npm: string; readonly debian: string };
  /** SHA-256 in hexadecimal by the name of the file. */
  readonly subjects: ReadonlyMap<string, string>;
}

/**
 * Reads the files of a build, and checks that they belong together.
 *
 * @throws UnreadableFileError, AttestationError; ReleaseCommandError: NOT_RELEASABLE
 */
export async function readBuild({ out, schema, bytecode }: ReleaseFiles): Promise<Build> {
  const record = join(out, 'measurements.json');
  const parsed = v.safeParse(
    v.pipe(v.string(), v.parseJson(), Measurements),
    String(await readFileArgument(record)),
  );
  if (!parsed.success || parsed.output.node_version !== undefined) {
    throw new ReleaseCommandError(
      'NOT_RELEASABLE',
      `${record} does not describe a build with CHANNEL=stable and the pinned Node from a commit without changes: make such a build from a clean checkout of the tag`,
    );
  }
  const { commit, folder, framework_version: frameworkVersion = readVersion(), registers } = parsed.output;
  const pcrs = String(await readFileArgument(join(out, 'nitro.pcrs')));
  if (formatPcrs(parsePcrs(pcrs)) !== pcrs || formatPcrs(registers) !== pcrs) {
    throw new ReleaseCommandError(
      'NOT_RELEASABLE',
      `${record} and nitro.pcrs have different registers: build again`,
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
    if (subjects.has(name))
      throw new ReleaseCommandError('NOT_RELEASABLE', `two files of the release would have the name ${name}`);
    subjects.set(name, await digestFile(path));
  }
  if (subjects.get('nitro.eif') !== parsed.output.sha256.eif) {
    throw new ReleaseCommandError('NOT_RELEASABLE', `${record} describes another nitro.eif: build again`);
  }
  const { npm_packages: npm, debian_lock: debian } = parsed.output.sha256;
  const packages = { npm, debian };
  return { commit, folder: folder === '.' ? '' : folder, registers, frameworkVersion, packages, subjects };
}

/** Formats the digests of a build on one line, for the output of a job. */
export function formatSubjects({ subjects }: Build): string {
  return JSON.stringify(Object.fromEntries(subjects));
}

const Subjects = v.record(v.string(), v.string());

/**
 * Checks that another build has the same files, to the last bit.
 *
 * @param file the output of `formatSubjects` for that build
 * @throws UnreadableFileError; ReleaseCommandError: NOT_REPRODUCED
 */
export async function compareBuilds({ subjects }: Build, file: string): Promise<void> {
  const parsed = v.safeParse(
    v.pipe(v.string(), v.parseJson(), Subjects),
    String(await readFileArgument(file)),
  );
  if (!parsed.success) {
    throw new ReleaseCommandError('NOT_REPRODUCED', `${file} is not an output of release subjects`);
  }
  const rebuilt = new Map(Object.entries(parsed.output));
  const names = [...new Set([...subjects.keys(), ...rebuilt.keys()])];
  const differing = names.filter((name) => subjects.get(name) !== rebuilt.get(name));
  if (differing.length > 0) {
    throw new ReleaseCommandError(
      'NOT_REPRODUCED',
      `the builds differ in these files, so neither build is released: ${differing.map((name) => printable(name)).join(', ')}`,
    );
  }
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
