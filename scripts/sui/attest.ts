/** Asks an enclave for its attestation and verifies it, before a command registers it. */
import type { Image } from '../../src/attestation/index.ts';
import type { Chain } from './chain.ts';
import { SuiCommandError } from './errors.ts';

interface Attested {
  readonly document: Uint8Array;
  readonly nonce: Uint8Array;
  /** The time at which it was verified, in milliseconds since 1970. */
  readonly now: number;
}

/** The enclave's document, if the chain can be expected to verify it. @throws SuiCommandError: WOULD_ABORT */
export async function askForAttestation(
  url: string,
  root: Uint8Array | undefined,
  chain: Chain,
): Promise<Attested> {
  const { predictRegistration } = await import('../../src/attestation/index.ts');
  const { fetchAttestation } = await import('../../src/client/attestation.ts');
  const { enclaveAt } = await import('./contract.ts');
  const { document, nonce } = await fetchAttestation(enclaveAt(url));
  const now = Date.now();
  const { accepted, abort, reason, until } = await predictRegistration(document, now, root);
  if (!accepted) {
    throw new SuiCommandError(
      'WOULD_ABORT',
      `load_nitro_attestation would abort with ${abort}: ${reason}. Nothing was sent`,
    );
  }
  chain.notes.push(`The chain can be expected to verify the document until ${until?.toISOString()}.`);
  return { document, nonce, now };
}

/** The key that the document attests, for this image. @throws AttestationError */
export async function attestedKeyOf(
  { document, nonce, now }: Attested,
  image: Image,
  roots: Uint8Array[] | undefined,
): Promise<Uint8Array> {
  const { verifyAttestation } = await import('../../src/attestation/index.ts');
  const { attestedKey } = await import('../../src/client/attestation.ts');
  const policy = { images: [image], nonce };
  return attestedKey(await verifyAttestation(document, { now, policy, ...(roots && { roots }) }));
}
