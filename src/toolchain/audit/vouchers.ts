/** Compares a config with the release by which an author vouches for its image. */
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { OptionValues } from 'sui-enclave-cli/command_line';
import { printable } from 'sui-enclave-cli/printable';
import {
  isRefused,
  type RELEASE_OPTIONS,
  readRelease,
  type SignerRecord,
  type VouchedRelease,
} from 'sui-enclave-cli/releases/read_release';
import { AuditError } from './errors.ts';
import type { Checks } from './verdict.ts';

/** A release, or the error if its signature or log refutes it; undefined if the command line names none. */
export type Voucher = VouchedRelease | AuditError | undefined;

/**
 * Reads the release of the command line.
 *
 * @returns undefined if the command line names none
 * @throws UsageError, UnreadableFileError; ReleaseError, ReleaseCommandError: nothing was verified
 */
export async function readVoucher(options: OptionValues<typeof RELEASE_OPTIONS>): Promise<Voucher> {
  try {
    return await readRelease(options);
  } catch (error) {
    if (!isRefused(error)) throw error;
    return new AuditError('RELEASE_REFUSED', `${error.code}: ${printable(error.message, 400)}`);
  }
}

/**
 * Compares the release with the config. Agreement is the signer's word, so it replaces no other comparison.
 *
 * @returns lines that say who vouches for the image; none without a release that agrees
 */
export function compareVoucher(voucher: Voucher, config: EnclaveConfig, checks: Checks): readonly string[] {
  if (voucher === undefined) return [];
  if (voucher instanceof AuditError) {
    checks.fault('the release', 'its signer and log', voucher);
    return [];
  }
  const { release, signer } = voucher;
  const subject = `the release ${release.version}`;
  const against = 'the image and the source on chain';
  const differences = listDifferences(voucher, config);
  if (differences.length > 0) {
    const message = `${subject} differs from the config in ${differences.join(', ')}`;
    checks.fault(subject, against, new AuditError('RELEASE_DIFFERS', message));
    return [];
  }
  checks.same(subject, against, `signed by ${describeSigner(signer)}`);
  return [
    `${describeSigner(signer)} signed the release ${release.version} of this image and commit.`,
    'That is the word of the signer. The comparisons above do not rely on it.',
  ];
}

function listDifferences({ release: { image, source } }: VouchedRelease, config: EnclaveConfig): string[] {
  const { source: configSource } = config;
  const pairs: readonly (readonly [string, string, string | undefined])[] = [
    ['PCR0', image.pcr0, config.image.pcr0],
    ['PCR1', image.pcr1, config.image.pcr1],
    ['PCR2', image.pcr2, config.image.pcr2],
    ['commit', source.commit, configSource?.commit],
    ['folder', source.folder, configSource?.folder],
  ];
  return pairs.filter(([, released, onChain]) => released !== onChain).map(([name]) => name);
}

function describeSigner(signer: SignerRecord): string {
  if ('publicKey' in signer) return `the key ${signer.publicKey}`;
  const { workflow, repositoryId, ownerId, issuer } = signer.identity;
  return `the workflow ${workflow} of the repository ${repositoryId} (owner ${ownerId}, by ${printable(issuer, 200)})`;
}
