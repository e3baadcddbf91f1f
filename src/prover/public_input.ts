/**
 * Computes a proof's single public input. It binds the proof to the ephemeral key, the address seed, the
 * maximum epoch, the issuer, the token's header and the issuer's key.
 */
import { hashASCIIStrToField, poseidonHash } from '@mysten/sui/zklogin';
import type { CircuitProfile } from './profile.ts';

export interface PublicParts {
  /** Scheme flag and public key as one integer. */
  readonly extendedEphemeralPublicKey: bigint;
  readonly addressSeed: bigint;
  readonly maxEpoch: bigint;
  readonly issBase64Details: { readonly value: string; readonly indexMod4: number };
  readonly headerBase64: string;
  /** The issuer's RSA modulus, 2048 bits. */
  readonly modulus: bigint;
}

const WORD_BITS = 248n;
const MODULUS_WORDS = 9;

/** Splits the key 16 bytes before its end, as the circuit expects. */
export function splitKey(extendedEphemeralPublicKey: bigint): [bigint, bigint] {
  return [extendedEphemeralPublicKey >> 128n, extendedEphemeralPublicKey % (1n << 128n)];
}

/**
 * Computes the same hash as validators do for a signature (fastcrypto-zkp). It is below the order of BN254.
 */
export function computePublicInput(parts: PublicParts, profile: CircuitProfile): bigint {
  const { issBase64Details, headerBase64 } = parts;
  return poseidonHash([
    ...splitKey(parts.extendedEphemeralPublicKey),
    parts.addressSeed,
    parts.maxEpoch,
    hashASCIIStrToField(issBase64Details.value, profile.issuerBase64),
    issBase64Details.indexMod4,
    hashASCIIStrToField(headerBase64, profile.header),
    hashModulus(parts.modulus),
  ]);
}

/**
 * Hashes the modulus as words of 248 bits, the most significant word first. The last word has the lowest 248
 * bits.
 */
function hashModulus(modulus: bigint): bigint {
  const words = Array.from(
    { length: MODULUS_WORDS },
    (_, index) => (modulus >> (WORD_BITS * BigInt(MODULUS_WORDS - 1 - index))) % (1n << WORD_BITS),
  );
  return poseidonHash(words);
}
