import { parseSerializedSignature } from '@mysten/sui/cryptography';
import { toBase64 } from '@mysten/sui/utils';
import { verifyTransactionSignature } from '@mysten/sui/verify';
import { toZkLoginPublicIdentifier } from '@mysten/sui/zklogin';
import type { LoopbackNode } from './node.ts';

/** Checks a zkLogin signature as a validator does, except for the Groth16 proof: a loopback node's `verify`. */
export async function verifyZkLogin(this: LoopbackNode, data: Uint8Array, signature: string, sender: string) {
  const parsed = parseSerializedSignature(signature);
  if (parsed.signatureScheme !== 'ZkLogin') throw new Error('not of zkLogin');
  const { userSignature, maxEpoch, addressSeed, iss } = parsed.zkLogin;
  await verifyTransactionSignature(data, toBase64(Uint8Array.from(userSignature)));
  if (this.epoch > BigInt(maxEpoch)) throw new Error('expired');
  const identifier = toZkLoginPublicIdentifier(addressSeed, iss, { legacyAddress: false });
  if (identifier.toSuiAddress() !== sender) throw new Error('not of the sender');
}
