/** What several scripts ask of configs, enclaves and PCR files. */
import { certificatesFromPem, type Image, parsePcrs } from '../../src/attestation/index.ts';
import { baseUrl, type Http } from '../../src/client/http.ts';
import { WrongObjectTypeError } from '../../src/sui/errors.ts';
import type { Contract } from '../../src/sui/objects.ts';
import { addressOf } from '../../src/sui/values.ts';
import type { Chain } from './chain.ts';
import { readTextFile } from './command.ts';

const ENCLAVE_TIMEOUT_MS = 10_000;

/** The option for another PCR file. */
export const PCRS_OPTION = { pcrs: ['<file>', 'the registers of the image (out/nitro.pcrs)'] } as const;
/** The option for enclaves that are not AWS's. */
export const ROOT_OPTION = {
  root: ['<file>', "believe the certificates of this PEM file in place of AWS's root (development)"],
} as const;

/** The file of `--pcrs`, or the one that the build writes. */
export function pcrsPath(options: Readonly<Record<string, string>>): string {
  return options['pcrs'] ?? 'out/nitro.pcrs';
}

/** @throws CommandLineError, InvalidPolicyError, ZeroImageError */
export async function readImage(options: Readonly<Record<string, string>>): Promise<Image> {
  return parsePcrs(await readTextFile(pcrsPath(options)));
}

/** The certificates of `--root`, or undefined for AWS's. */
export async function readRoots({
  root,
}: Readonly<Record<string, string>>): Promise<[Uint8Array, ...Uint8Array[]] | undefined> {
  if (root === undefined) return undefined;
  return certificatesFromPem(await readTextFile(root)) as [Uint8Array, ...Uint8Array[]];
}

/** Where an enclave's endpoints are. @throws InvalidClientOptionError */
export function enclaveAt(url: string): Http {
  return { base: baseUrl(url), fetch: globalThis.fetch, timeoutMs: ENCLAVE_TIMEOUT_MS };
}

/**
 * That an object is of the packages which the command line names, be it of a later version of them.
 *
 * @throws WrongObjectTypeError
 */
export async function checkContract(
  chain: Chain,
  object: Contract & { readonly id: string },
  wanted: { readonly enclavePackage?: string; readonly application?: string },
): Promise<void> {
  const same = async (found: string, packageId: string) =>
    found === packageId || found === (await chain.originalPackage(packageId));
  if (wanted.enclavePackage !== undefined) {
    const packageId = addressOf('<enclave_package_id>', wanted.enclavePackage);
    if (!(await same(object.enclavePackage, packageId))) {
      throw new WrongObjectTypeError(object.id, `of the package ${packageId}`, `of ${object.enclavePackage}`);
    }
  }
  if (wanted.application !== undefined) {
    const [packageId = '', ...names] = wanted.application.split('::');
    const [found = '', ...foundNames] = object.application.split('::');
    if (names.join('::') !== foundNames.join('::') || !(await same(found, packageId))) {
      throw new WrongObjectTypeError(object.id, `for ${wanted.application}`, `for ${object.application}`);
    }
  }
}
