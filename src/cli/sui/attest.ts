/** Requests an enclave's attestation and verifies it, before a command registers the enclave. */

import {
  AttestationError,
  decodeAttestation,
  type Image,
  predictRegistration,
  readUserData,
  verifyAttestation,
} from 'sui-enclave/attestation';
import { fetchAttestation, getAttestedKey } from 'sui-enclave/client/attestation';
import type { Chain } from './chain.ts';
import { enclaveAt } from './contract.ts';
import type { Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';

export interface Attested {
  readonly document: Uint8Array;
  readonly nonce: Uint8Array;
  /** The time at which the document was verified, in milliseconds since 1970. */
  readonly now: number;
}

/** The requirements that an enclave must meet. */
export interface Expected {
  readonly images: readonly Image[];
  /** DER of the roots to trust in place of AWS's. */
  readonly roots: Uint8Array[] | undefined;
  /** The config for which the enclave is attested, and the file that may name its application. */
  readonly configId: string;
  readonly deployments: Deployments | undefined;
}

/**
 * Returns the enclave's document, if the chain can be expected to verify it. @throws SuiCommandError:
 * WOULD_ABORT
 */
export async function askForAttestation(
  url: string,
  root: Uint8Array | undefined,
  chain: Chain,
): Promise<Attested> {
  const { document, nonce } = await fetchAttestation(enclaveAt(url));
  const now = Date.now();
  const { accepted, abort, reason, until } = await predictRegistration(document, now, root);
  if (!accepted) {
    throw new SuiCommandError(
      'WOULD_ABORT',
      `load_nitro_attestation would abort with ${abort}: ${reason}. Nothing was sent`,
    );
  }
  chain.notes.push(`The chain is expected to accept the attestation document until ${until?.toISOString()}.`);
  return { document, nonce, now };
}

/** Returns the key that the document attests, if it is of one of the images. @throws AttestationError */
export async function readAttestedKey(
  { document, nonce, now }: Attested,
  expected: Expected,
): Promise<Uint8Array> {
  const { images, roots } = expected;
  const policy = { images, nonce };
  try {
    return getAttestedKey(await verifyAttestation(document, { now, policy, ...(roots && { roots }) }));
  } catch (error) {
    if (!(error instanceof AttestationError) || error.code !== 'POLICY_PCRS') throw error;
    const message = `${error.message}\n${await describeApplications(document, expected)}`;
    throw new AttestationError('POLICY_PCRS', message, { cause: error });
  }
}

/**
 * Names the application of an enclave whose registers differ, and the config's application, if they are
 * known. The document has been verified.
 */
async function describeApplications(
  document: Uint8Array,
  { configId, deployments }: Expected,
): Promise<string> {
  let enclaveApplication: string;
  try {
    enclaveApplication = readUserData(decodeAttestation(document)).application;
  } catch (error) {
    if (!(error instanceof AttestationError)) throw error;
    return 'The enclave does not name the application that it runs';
  }
  const report = `The enclave reports that it runs ${enclaveApplication}`;
  const applications = deployments?.readApplications();
  const name = [...(applications ?? [])].find(([, { config }]) => config?.id === configId)?.[0];
  if (name === undefined) return report;
  const config = `the config ${configId} is of ${name} (${deployments?.path})`;
  if (name === enclaveApplication)
    return `${report}, and ${config}: the enclave runs another build of the application`;
  const matchingConfig = applications?.get(enclaveApplication)?.config?.id;
  return `${report}, and ${config}${matchingConfig === undefined ? '' : `: use the config ${matchingConfig}, or --app ${enclaveApplication}`}`;
}
