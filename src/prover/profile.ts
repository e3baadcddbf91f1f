/** Declares the sizes that the circuit is compiled for. A request must not exceed them. */
import { type Profile, SUI_V1 } from 'sui-enclave/token/claims';

/** Maximum sizes, in characters except for `blocks`. The sizes of names and values include the quotes. */
export interface CircuitProfile extends Profile {
  /** Maximum number of SHA-256 blocks of header, dot, payload and padding. */
  readonly blocks: number;
  readonly keyClaimName: number;
  readonly extendedEmailVerified: number;
  /** Maximum length of the part of the payload's base64 that contains the extended issuer. */
  readonly issuerBase64: number;
}

export type CircuitSize = 'small' | 'full';

const V1 = { ...SUI_V1, keyClaimName: 32, extendedEmailVerified: 53, issuerBase64: 224 };

/**
 * Profiles by name. `full` has the sizes of the production circuit. `small` is for tests, and accepts only
 * shorter tokens.
 */
export const PROFILES: Readonly<Record<CircuitSize, CircuitProfile>> = {
  small: { ...V1, name: 'sui-v1 (small)', blocks: 8, paddedUnsignedJwt: 64 * 8 },
  full: { ...V1, blocks: 25, paddedUnsignedJwt: 64 * 25 },
};

/** Returns the circom source from which the circuit of a profile is compiled. */
export function mainComponent(profile: CircuitProfile): string {
  const sizes = [
    profile.blocks,
    profile.header,
    profile.keyClaimName,
    profile.subject,
    profile.extendedSubject,
    profile.extendedNonce,
    profile.extendedEmailVerified,
    profile.audience,
    profile.extendedAudience,
    profile.issuerBase64,
  ];
  return `pragma circom 2.1.6;

include "zklogin.circom";

component main {public [all_inputs_hash]} = ZkLogin(${sizes.join(', ')});
`;
}
