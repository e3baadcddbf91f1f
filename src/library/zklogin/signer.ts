/** Combines the ephemeral key and the proof into a signer, for a single call. */
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { ZkLoginSigner } from '@mysten/sui/zklogin';
import { ZkLoginError } from './errors.ts';
import type { OpenSession } from './storage.ts';

/**
 * Creates a signer.
 *
 * @throws ZkLoginError: ZKLOGIN_PROOF if the address is not derived from the proof's issuer; ZKLOGIN_STORAGE
 */
export function createSigner({
  secretKey,
  maxEpoch,
  inputs,
  legacyAddress,
  address,
}: OpenSession): ZkLoginSigner {
  const ephemeralSigner = createKeypair(secretKey);
  try {
    return new ZkLoginSigner({ ephemeralSigner, maxEpoch, inputs, legacyAddress, address });
  } catch {
    throw new ZkLoginError('ZKLOGIN_PROOF', "the proof's issuer differs from the address's");
  }
}

/**
 * Creates the ephemeral key pair.
 *
 * @param secretKey the stored secret key, as `suiprivkey…`
 * @throws ZkLoginError: ZKLOGIN_STORAGE if it is not a secret key
 */
export function createKeypair(secretKey: string): Ed25519Keypair {
  try {
    return Ed25519Keypair.fromSecretKey(decodeSuiPrivateKey(secretKey).secretKey);
  } catch {
    // The decoder's error is dropped, since it quotes the secret key.
    throw new ZkLoginError(
      'ZKLOGIN_STORAGE',
      'the ephemeral key in the session storage is damaged: call beginLogin to log in again',
    );
  }
}
