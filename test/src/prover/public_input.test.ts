import { genAddressSeed } from '@mysten/sui/zklogin';
import { expect, test } from 'vitest';
import { PROFILES } from '../../../src/prover/profile.ts';
import { computePublicInput } from '../../../src/prover/public_input.ts';
import { EPHEMERAL_KEY, vector } from './support.ts';

const [google, devnet] = vector('zklogin-proofs');
const parseModulus = (base64url: string) =>
  BigInt(`0x${Buffer.from(base64url, 'base64url').toString('hex')}`);

test('computePublicInput returns the public input of a published proof of a real login', () => {
  const { salt, keyClaimName, keyClaimValue, aud, partialInputs } = google;
  const parts = {
    extendedEphemeralPublicKey: EPHEMERAL_KEY,
    addressSeed: genAddressSeed(BigInt(salt), keyClaimName, keyClaimValue, aud),
    maxEpoch: BigInt(google.maxEpoch),
    issBase64Details: partialInputs.issBase64Details,
    headerBase64: partialInputs.headerBase64,
    modulus: parseModulus(google.modulusBase64url),
  };
  expect(computePublicInput(parts, PROFILES.full)).toBe(BigInt(google.publicInput));
});

test('computePublicInput returns the public input of a proof that was published with its address seed', () => {
  const { partialInputs } = devnet;
  const parts = {
    extendedEphemeralPublicKey: BigInt(devnet.extendedEphemeralPublicKey),
    addressSeed: BigInt(devnet.addressSeed),
    maxEpoch: BigInt(devnet.maxEpoch),
    issBase64Details: partialInputs.issBase64Details,
    headerBase64: partialInputs.headerBase64,
    modulus: parseModulus(devnet.modulusBase64url),
  };
  expect(computePublicInput(parts, PROFILES.full)).toBe(BigInt(devnet.publicInput));
});
