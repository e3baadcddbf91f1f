/** The ephemeral key and the proof, for as long as one call takes. */
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { ZkLoginSigner } from '@mysten/sui/zklogin';
import { ProofMismatchError } from './errors.ts';
import type { OpenSession } from './storage.ts';

/** @throws ProofMismatchError when the address is not of the issuer that the proof shows */
export function signerOf({
  secretKey,
  maxEpoch,
  inputs,
  legacyAddress,
  address,
}: OpenSession): ZkLoginSigner {
  const ephemeralSigner = keypairOf(secretKey);
  try {
    return new ZkLoginSigner({ ephemeralSigner, maxEpoch, inputs, legacyAddress, address });
  } catch {
    throw new ProofMismatchError('the proof shows another issuer than the address is of');
  }
}

/** @param secretKey as `suiprivkey…` */
export function keypairOf(secretKey: string): Ed25519Keypair {
  return Ed25519Keypair.fromSecretKey(decodeSuiPrivateKey(secretKey).secretKey);
}
