/** Sources of trust of a client: its caller's policy (in this module) and the chain (in `registered.ts`). */
import { AttestationError, type AttestationPolicy } from '../attestation/index.ts';
import { checkPolicy } from '../attestation/policy.ts';
import type { ClientPolicy } from './options.ts';

/** The requirements that an enclave must meet. */
export interface Requirements {
  readonly policy: AttestationPolicy;
  /** Changes with the policy: keys that were attested under another version are not trusted any more. */
  readonly version: bigint;
}

export interface Trust {
  current(): Promise<Requirements>;
  /**
   * Called when an attestation showed another image. Resolves to newer requirements, or to null if nothing
   * has changed.
   */
  renewed(outdated: Requirements): Promise<Requirements | null>;
  /** Returns whether a key that a hint names is accepted without an attestation for this client. */
  vouchesFor(publicKey: Uint8Array): Promise<boolean>;
  /**
   * Makes the final decision on a key that signed: throws unless it is accepted. Resolves to the id of its
   * enclave on chain, if there is one.
   */
  admit(publicKey: Uint8Array): Promise<string | undefined>;
}

/**
 * Trusts the enclaves that meet the policy.
 *
 * @throws AttestationError: POLICY_INVALID, POLICY_ZERO_IMAGE
 */
export function trustIn(clientPolicy: ClientPolicy): Trust {
  const policy = checkPolicy(resolveRelease(clientPolicy));
  if ('nonce' in policy) {
    const message = 'the client makes a fresh nonce for each attestation: leave "nonce" out of the policy';
    throw new AttestationError('POLICY_INVALID', message);
  }
  const requirements = { policy, version: 0n };
  return {
    current: async () => requirements,
    renewed: async () => null,
    vouchesFor: async () => false,
    admit: async () => undefined,
  };
}

/** Returns the policy. If it names a release, the release's image takes the place of the release. */
function resolveRelease(policy: ClientPolicy): Omit<AttestationPolicy, 'nonce'> {
  if (typeof policy !== 'object' || policy === null || !('release' in policy)) return policy;
  if ('images' in policy) {
    throw new AttestationError('POLICY_INVALID', 'a policy has "images" or a "release", not both');
  }
  const { release, ...requirements } = policy;
  if (typeof release !== 'object' || release === null) {
    throw new AttestationError(
      'POLICY_INVALID',
      '"release" of the policy must be what verifyRelease returned',
    );
  }
  return { ...requirements, images: [release.image] };
}
