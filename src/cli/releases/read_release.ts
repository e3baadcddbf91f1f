/** Reads the release that a command line names, and verifies who vouches for it. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { bytesToHex, hexToBytes } from '@noble/curves/utils.js';
import {
  type ReleaseCode,
  ReleaseError,
  type ReleaseSigner,
  type SeenHead,
  type VerifiedRelease,
  verifyRelease,
} from 'sui-enclave/release';
import { replaceFile } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { readFileArgument, UsageError } from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { path } from '../values.ts';
import { ReleaseCommandError } from './errors.ts';

/** Options of commands that read the log of releases. */
export const LOG_OPTIONS = {
  log: { value: '<file>', help: "the author's log of releases", schema: path },
  signer: {
    value: '<file>',
    help: 'who may sign: {"publicKey"}, or {"identity", "trustedRoot"} with the path of the root of Sigstore',
    schema: path,
  },
  seen: {
    value: '<file>',
    help: 'a file with the head of the log that was seen last: a log that lacks it is refused, and the file is updated',
    schema: path,
  },
} as const;

/** The options of commands that take registers from a release that its author vouches for. */
export const RELEASE_OPTIONS = {
  release: {
    value: '<file>',
    help: 'take the registers, and their source, from this release.json, once it is verified; needs --log and --signer',
    schema: path,
  },
  ...LOG_OPTIONS,
} as const;

const hex = (bytes: number) => v.pipe(v.string(), v.regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`)));
const KeySigner = v.strictObject({ publicKey: hex(32) });
/** The library checks the values. */
const WorkflowSigner = v.strictObject({
  identity: v.strictObject({
    issuer: v.string(),
    repositoryId: v.string(),
    ownerId: v.string(),
    workflow: v.string(),
  }),
});
const SignerFile = v.union([
  KeySigner,
  v.strictObject({ ...WorkflowSigner.entries, trustedRoot: v.string() }),
]);

/** The signer of releases as a deployment file records it: without the root of Sigstore. */
export const SignerRecord = v.union([KeySigner, WorkflowSigner]);
export type SignerRecord = v.InferOutput<typeof SignerRecord>;

const SeenFile = v.strictObject({ sequence: v.pipe(v.number(), v.safeInteger()), digest: hex(32) });

/** @throws UnreadableFileError; ReleaseCommandError: SIGNER_FILE */
export async function readSigner(file: string): Promise<ReleaseSigner> {
  const parsed = v.safeParse(
    v.pipe(v.string(), v.parseJson(), SignerFile),
    String(await readFileArgument(file)),
  );
  if (!parsed.success) {
    throw new ReleaseCommandError(
      'SIGNER_FILE',
      `${file} must be {"publicKey": 64 hexadecimal digits}, or {"identity": {issuer, repositoryId, ownerId, workflow}, "trustedRoot": path}`,
    );
  }
  const { output } = parsed;
  if ('publicKey' in output) return { publicKey: hexToBytes(output.publicKey) };
  const rootFile = resolve(dirname(file), output.trustedRoot);
  const root = v.safeParse(v.pipe(v.string(), v.parseJson()), String(await readFileArgument(rootFile)));
  if (!root.success) throw new ReleaseCommandError('SIGNER_FILE', `${rootFile} is not JSON`);
  return { identity: output.identity, trustedRoot: root.output };
}

/** @throws UnreadableFileError; ReleaseCommandError: SEEN_FILE */
export async function readSeen(file: string | undefined): Promise<SeenHead | undefined> {
  if (file === undefined || !existsSync(file)) return undefined;
  const parsed = v.safeParse(
    v.pipe(v.string(), v.parseJson(), SeenFile),
    String(await readFileArgument(file)),
  );
  if (parsed.success) return parsed.output;
  throw new ReleaseCommandError(
    'SEEN_FILE',
    `${file} is not a head that this command wrote: restore it, or name another file to start with a new record`,
  );
}

export function writeSeen(file: string | undefined, { sequence, digest }: SeenHead): void {
  if (file !== undefined) replaceFile(file, `${JSON.stringify({ sequence, digest })}\n`);
}

/** A verified release, and who vouches for it. */
export interface VouchedRelease {
  readonly release: VerifiedRelease;
  readonly signer: SignerRecord;
}

/**
 * Verifies a release by the files of the command line.
 *
 * @returns undefined without `--release`
 * @throws UsageError for `--release` without `--log` and `--signer`, or for one of these without `--release`;
 *   UnreadableFileError, ReleaseError, ReleaseCommandError
 */
export async function readRelease({
  release: file,
  log,
  signer: signerFile,
  seen,
}: OptionValues<typeof RELEASE_OPTIONS>): Promise<VouchedRelease | undefined> {
  if (file === undefined) {
    const extraOption = Object.entries({ log, signer: signerFile, seen }).find(
      ([, value]) => value !== undefined,
    );
    if (extraOption) throw new UsageError(`--${extraOption[0]} is for --release <file> only`);
    return undefined;
  }
  if (log === undefined || signerFile === undefined) {
    throw new UsageError('a release needs --log and --signer: a signature proves nothing without them');
  }
  const signer = await readSigner(signerFile);
  const seenHead = await readSeen(seen);
  const release = await verifyRelease(await readFileArgument(file), {
    signer,
    log: await readFileArgument(log),
    ...(seenHead && { seen: seenHead }),
  });
  writeSeen(seen, release.head);
  return {
    release,
    signer:
      'publicKey' in signer
        ? { publicKey: bytesToHex(signer.publicKey) }
        : { identity: { ...signer.identity } },
  };
}

/** Codes of errors that say nothing about the release. */
const NO_VERDICT: readonly ReleaseCode[] = ['RELEASE_OPTION', 'RELEASE_UNSUPPORTED'];

/** Returns whether an error refuses the release itself, and not the options or the machine. */
export function isRefused(error: unknown): error is ReleaseError {
  return error instanceof ReleaseError && !NO_VERDICT.includes(error.code);
}
