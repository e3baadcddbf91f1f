import { computeZkLoginAddress } from '@mysten/sui/zklogin';
import { SUI_V1, valueFault } from './claims.ts';
import { ClaimError, InvalidOptionError } from './errors.ts';
import type { LoginClaims } from './jwt.ts';
import { type BigNumber, readNumber, SALT_SIZE } from './numbers.ts';

/** The claim that stands for the user, in addresses and proofs. */
export const KEY_CLAIM = 'sub';

export interface AddressInputs extends LoginClaims {
  /** Below 2^128; in base64 or bytes all 16. */
  readonly salt: BigNumber;
  /**
   * True for the few old addresses whose seed begins with a zero byte and was hashed without it. There is no
   * default: the wrong one is another address.
   */
  readonly legacyAddress: boolean;
}

/**
 * The Sui address of a login: blake2b-256 of flag, issuer and address seed. The issuer is normalised as Sui
 * does: `accounts.google.com` and `https://accounts.google.com` are one.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @returns 0x and 64 hex characters
 * @throws InvalidOptionError, ClaimError
 * @example
 * const issuer = 'https://accounts.google.com';
 * deriveAddress({ issuer, subject: '1104634…', audience: clientId, salt, legacyAddress: false });
 */
export function deriveAddress(inputs: AddressInputs): string {
  const { issuer, subject, audience, salt, legacyAddress } = inputs ?? {};
  for (const [name, value] of Object.entries({ issuer, subject, audience })) {
    if (typeof value !== 'string') throw new InvalidOptionError(`${name} must be a text`);
  }
  if (typeof legacyAddress !== 'boolean') throw new InvalidOptionError('legacyAddress must be true or false');
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
