/**
 * The loopback node's check of zkLogin signatures. Their proofs are simulated, for a key with known secrets.
 */
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { computeZkLoginAddressFromSeed, getZkLoginSignature } from '@mysten/sui/zklogin';
import { beforeAll, expect, test } from 'vitest';
import { LoopbackNode } from '../../../src/devnet/node.ts';
import { verifyZkLogin, zkLoginVerifier } from '../../../src/devnet/zklogin.ts';
import { buildInput } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import { readVerifyingKey } from '../../../src/prover/verify.ts';
import { createSignatureCheck } from '../../../src/toolchain/dev/sui/signatures.ts';
import { createSimulatedKey } from '../prover/frontend/simulator.ts';
import { CLAIMS, MAX_EPOCH, OUR_KEY, requestFor, signToken, vector } from '../prover/support.ts';

const { common } = vector('zklogin-jwts') as { common: { ephemeralSecretHex: string } };
const ephemeral = Ed25519Keypair.fromSecretKey(Buffer.from(common.ephemeralSecretHex, 'hex'));
const circuitInput = buildInput(requestFor(signToken(JSON.stringify(CLAIMS))), OUR_KEY, PROFILES.full);
const { addressSeed, issBase64Details, headerBase64 } = circuitInput;
const sender = computeZkLoginAddressFromSeed(addressSeed, CLAIMS.iss, false);
const [key, otherKey] = [createSimulatedKey(1n), createSimulatedKey(2n)];
const data = Uint8Array.of(1, 2, 3);

interface Points {
  readonly pi_a: string[];
  readonly pi_b: string[][];
  readonly pi_c: string[];
}
const createProof = (publicInput: bigint, { prove } = key) => {
  const { pi_a, pi_b, pi_c } = prove(publicInput) as Points;
  return { a: pi_a, b: pi_b, c: pi_c };
};
const proof = createProof(circuitInput.publicInput);

let verify: LoopbackNode['verify'];
beforeAll(() => {
  verify = zkLoginVerifier({
    verifyingKey: readVerifyingKey(key.vkey),
    fetchKey: async (issuer, kid) => {
      if (issuer !== CLAIMS.iss || kid !== OUR_KEY.kid) throw new Error('unknown key');
      return OUR_KEY as { n: string };
    },
  });
});

async function signatureWith({
  inputs = {},
  maxEpoch = MAX_EPOCH,
  signer = ephemeral,
}: {
  inputs?: object;
  maxEpoch?: number;
  signer?: Ed25519Keypair;
} = {}): Promise<string> {
  const { signature } = await signer.signTransaction(data);
  const all = {
    proofPoints: proof,
    issBase64Details,
    headerBase64,
    addressSeed: String(addressSeed),
    ...inputs,
  };
  return getZkLoginSignature({ inputs: all, maxEpoch, userSignature: signature });
}

const nodeAt = (epoch: bigint) => ({ epoch }) as LoopbackNode;
const node = nodeAt(BigInt(MAX_EPOCH));

test('the node accepts a signature with a valid proof', async () => {
  await expect(verify.call(node, data, await signatureWith(), sender)).resolves.toBeUndefined();
});

test.each([
  ['for another ephemeral key', { signer: new Ed25519Keypair() }],
  ['for another maxEpoch', { maxEpoch: MAX_EPOCH + 1 }],
  ['of another statement', { inputs: { proofPoints: createProof(circuitInput.publicInput + 1n) } }],
  [
    'under another verifying key',
    { inputs: { proofPoints: createProof(circuitInput.publicInput, otherKey) } },
  ],
  ['whose points are swapped', { inputs: { proofPoints: { ...proof, a: proof.c, c: proof.a } } }],
  ['whose points are not on the curve', { inputs: { proofPoints: { ...proof, a: ['1', '1', '1'] } } }],
])('the node refuses a proof %s, with the message of validators', async (_, changes) => {
  const signature = await signatureWith(changes);
  await expect(verify.call(node, data, signature, sender)).rejects.toThrow('Groth16 proof verify failed');
  // Without a check of the proof, the signature is accepted.
  await verifyZkLogin.call(node, data, signature, sender);
});

test('the node refuses a key that the issuer does not have', async () => {
  const header = Buffer.from('{"alg":"RS256","kid":"other"}').toString('base64url');
  const signature = await signatureWith({ inputs: { headerBase64: header } });
  await expect(verify.call(node, data, signature, sender)).rejects.toThrow('unknown key');
});

test('the node refuses a wrong epoch, sender or data', async () => {
  const signature = await signatureWith();
  await expect(verify.call(nodeAt(BigInt(MAX_EPOCH) + 1n), data, signature, sender)).rejects.toThrow(
    'expired',
  );
  const otherAddress = `0x${'2'.repeat(64)}`;
  await expect(verify.call(node, data, signature, otherAddress)).rejects.toThrow('not of the sender');
  await expect(verify.call(node, Uint8Array.of(9), signature, sender)).rejects.toThrow();
});

test('make dev-sui checks a proof with each verifying key, and accepts signatures of ordinary keys', async () => {
  const node = await LoopbackNode.start(new Uint8Array());
  node.close();
  node.epoch = BigInt(MAX_EPOCH);
  const keys = [otherKey, key].map(({ vkey }) => readVerifyingKey(vkey));
  const checks = createSignatureCheck(node, keys, async () => OUR_KEY as { n: string });
  const forged = await signatureWith({ inputs: { proofPoints: createProof(circuitInput.publicInput + 1n) } });
  await expect(checks(data, await signatureWith(), sender)).resolves.toBeUndefined();
  await expect(checks(data, forged, sender)).rejects.toThrow('Groth16 proof verify failed');
  // Without a verifying key, the node can't check the proof.
  await expect(createSignatureCheck(node, [])(data, forged, sender)).resolves.toBeUndefined();
  const address = ephemeral.toSuiAddress();
  const { signature } = await ephemeral.signTransaction(data);
  await expect(checks(data, signature, address)).resolves.toBeUndefined();
  // A signature of a transaction is not valid for a message.
  await expect(checks(data, signature, address, 'PersonalMessage')).rejects.toThrow();
  const { signature: messageSignature } = await ephemeral.signPersonalMessage(data);
  await expect(checks(data, messageSignature, address, 'PersonalMessage')).resolves.toBeUndefined();
  await expect(checks(data, signature, sender)).rejects.toThrow();
});
