/** Describes a build by the statements of a release. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parsePcrs } from 'sui-enclave/attestation';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { PROVENANCE_TYPE, RELEASE_TYPE, type Statement } from 'sui-enclave/release/statement';
import * as v from 'valibot';
import { readFileArgument, UnreadableFileError } from '../command.ts';
import { readVersion } from '../release.ts';
import { ReleaseCommandError } from './errors.ts';

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
