/** Checks zkLogin signatures as validators do, for the `verify` of a loopback node. */
import { parseSerializedSignature } from '@mysten/sui/cryptography';
import { toBase64 } from '@mysten/sui/utils';
import { toZkLoginPublicIdentifier } from '@mysten/sui/zklogin';
import { PROFILES } from 'sui-enclave-prover/profile';
import { computePublicInput, type PublicParts } from 'sui-enclave-prover/public_input';
import { type Groth16Proof, type VerifyingKey, verifyProof } from 'sui-enclave-prover/verify';
import type { RsaKey } from 'sui-enclave-service/oidc/jwk';
import { chooseVerifier, type LoopbackNode } from './node.ts';

/** Values with which validators verify the proof of a signature. */
export interface ProofTrust {
  readonly verifyingKey: VerifyingKey;
  /** Returns the issuer's key with the `kid` of a token's header. Rejects if the issuer has no such key. */
  fetchKey(issuer: string, kid: string): Promise<Pick<RsaKey, 'n'>>;
}

/**
 * Returns a function that fetches an issuer's published keys at each call. @param jwksUrls URLs of the keys,
 * by issuer
 */
export function createKeyFetcher(jwksUrls: Readonly<Record<string, string>>): ProofTrust['fetchKey'] {
  return async (issuer, kid) => {
    const url = jwksUrls[issuer];
    if (url === undefined) throw new Error(`the network does not know the issuer ${issuer}`);
    const { keys } = (await (await fetch(url)).json()) as { keys: (RsaKey & { kid: string })[] };
    const key = keys.find((key) => key.kid === kid);
    if (!key) throw new Error('the issuer has no such key');
    return key;
  };
}

/** Checks a zkLogin signature, except for its Groth16 proof. */
export async function verifyZkLogin(this: LoopbackNode, ...signed: Parameters<LoopbackNode['verify']>) {
  await verifyAllButProof(this.epoch, signed);
}

/** Returns a check of zkLogin signatures that includes the Groth16 proof. */
export function zkLoginVerifier(trust: ProofTrust): LoopbackNode['verify'] {
  return async function (this: LoopbackNode, ...signed) {
    const { iss, inputs, parts } = await verifyAllButProof(this.epoch, signed);
    const { kid } = JSON.parse(Buffer.from(inputs.headerBase64, 'base64url').toString()) as { kid: string };
    const { n } = await trust.fetchKey(iss, kid);
    const modulus = BigInt(`0x${Buffer.from(n, 'base64url').toString('hex')}`);
    // Both sizes of the circuit have the same public input.
    const publicInput = computePublicInput({ ...parts, modulus }, PROFILES.full);
    // The message uses the words of validators (fastcrypto-zkp).
    if (!isValid(trust.verifyingKey, inputs.proofPoints as Groth16Proof, publicInput)) {
      throw new Error('Signature is not valid: General cryptographic error: Groth16 proof verify failed');
    }
  };
}

async function verifyAllButProof(
  epoch: bigint,
  [data, signature, sender, scope]: Parameters<LoopbackNode['verify']>,
) {
  const parsed = parseSerializedSignature(signature);
  if (parsed.signatureScheme !== 'ZkLogin') throw new Error('the signature is not of zkLogin');
  const { userSignature, maxEpoch, addressSeed, iss, inputs } = parsed.zkLogin;
  const key = await chooseVerifier(scope)(data, toBase64(Uint8Array.from(userSignature)));
  if (epoch > BigInt(maxEpoch)) throw new Error('the signature has expired');
  const identifier = toZkLoginPublicIdentifier(addressSeed, iss, { legacyAddress: false });
  if (identifier.toSuiAddress() !== sender) throw new Error('the signature is not of the sender');
  const parts: Omit<PublicParts, 'modulus'> = {
    extendedEphemeralPublicKey: BigInt(`0x${Buffer.from(key.toSuiBytes()).toString('hex')}`),
    addressSeed,
    maxEpoch: BigInt(maxEpoch),
    issBase64Details: inputs.issBase64Details,
    headerBase64: inputs.headerBase64,
  };
  return { iss, inputs, parts };
}

function isValid(key: VerifyingKey, proof: Groth16Proof, publicInput: bigint): boolean {
  try {
    return verifyProof(key, proof, [publicInput]);
  } catch {
    // A point is not in its group.
    return false;
  }
}
