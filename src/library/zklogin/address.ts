import { computeZkLoginAddress } from '@mysten/sui/zklogin';
import { SUI_V1, valueFault } from '../token/claims.ts';
import { ClaimError, ZkLoginError } from './errors.ts';
import type { LoginClaims } from './jwt.ts';
import { type BigNumber, readNumber, SALT_SIZE } from './numbers.ts';

/** The claim that identifies the user, in addresses and proofs. */
export const KEY_CLAIM = 'sub';

export interface AddressInputs extends LoginClaims {
  /** The user's salt: a number below 2^128, or exactly 16 bytes, also in base64. */
  readonly salt: BigNumber;
  /**
   * Whether the address is one of the few old ones whose seed begins with a zero byte and was hashed without
   * it. There is no default, since the wrong value leads to another address.
   */
  readonly legacyAddress: boolean;
}

/**
 * Returns the Sui address of a login: the blake2b-256 of flag, issuer and address seed. Normalises the issuer
 * as Sui does: `accounts.google.com` is the same as `https://accounts.google.com`.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @returns 0x and 64 hex characters
 * @throws ZkLoginError: ZKLOGIN_OPTION; ClaimError
 * @example
 * const issuer = 'https://accounts.google.com';
 * deriveAddress({ issuer, subject: '1104634…', audience: clientId, salt, legacyAddress: false });
 */
export function deriveAddress(inputs: AddressInputs): string {
  const { issuer, subject, audience, salt, legacyAddress } = inputs ?? {};
  for (const [name, value] of Object.entries({ issuer, subject, audience })) {
    if (typeof value !== 'string') throw new ZkLoginError('ZKLOGIN_OPTION', `${name} must be a string`);
  }
  if (typeof legacyAddress !== 'boolean')
    throw new ZkLoginError('ZKLOGIN_OPTION', 'legacyAddress must be true or false');
  requireUsable('iss', issuer, SUI_V1.extendedIssuer);
  requireUsable('sub', subject, SUI_V1.subject);
  requireUsable('aud', audience, SUI_V1.audience);
  return computeZkLoginAddress({
    claimName: KEY_CLAIM,
    claimValue: subject,
    aud: audience,
    iss: issuer,
    userSalt: readNumber('salt', salt, SALT_SIZE),
    legacyAddress,
  });
}

function requireUsable(claim: string, value: string, maxQuoted: number): void {
  const fault = valueFault(value, maxQuoted);
  if (fault !== null) throw new ClaimError(claim, fault);
}
