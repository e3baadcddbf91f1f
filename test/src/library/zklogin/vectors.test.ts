/** Compares this library, and the primitives on which it is built, with Sui's published vectors. */
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { fromBase64, fromHex } from '@mysten/sui/utils';
import {
  computeZkLoginAddressFromSeed,
  genAddressSeed,
  generateNonce,
  getZkLoginSignature,
  hashASCIIStrToField,
  parseZkLoginSignature,
} from '@mysten/sui/zklogin';
import { describe, expect, test } from 'vitest';
import { deriveAddress } from '../../../../src/library/zklogin/index.ts';
import { checkToken } from '../../../../src/library/zklogin/jwt.ts';
import { readProof } from '../../../../src/library/zklogin/services.ts';
import { vector } from './support.ts';

const formulae: Record<'fn' | 'input' | 'max' | 'salt' | 'name' | 'value' | 'aud' | 'out', string>[] =
  vector('formulae');
const {
  common,
  jwts,
}: {
  common: Record<'ephemeralSecretHex' | 'jwtRandomness' | 'nonce', string> & { maxEpoch: number };
  jwts: { provider: string; jwt: string }[];
} = vector('jwts');
const [production, devnet] = vector('proofs');
const composite = vector('signature');
const commonKey = Ed25519Keypair.fromSecretKey(fromHex(common.ephemeralSecretHex));

test('the hash of a string equals the recorded hash', () => {
  const hashes = formulae.filter(({ fn }) => fn === 'hashAscii');
  expect(hashes).toHaveLength(2);
  for (const { input, max, out } of hashes)
    expect(hashASCIIStrToField(input, Number(max)).toString()).toBe(out);
});

test('the address seed equals the recorded seed', () => {
  const [seed] = formulae.filter(({ fn }) => fn === 'addressSeed');
  const { salt = '', name = '', value = '', aud = '', out } = seed ?? {};
  expect(genAddressSeed(salt, name, value, aud).toString()).toBe(out);
});

test('the nonce equals the nonce in the real tokens', () => {
  expect(generateNonce(commonKey.getPublicKey(), common.maxEpoch, common.jwtRandomness)).toBe(common.nonce);
});

describe('the address', () => {
  const { iss, keyClaimValue, aud, salt, address } = production;
  const inputs = { subject: keyClaimValue, audience: aud, salt, legacyAddress: false };

  test('equals the address of a real Google login, for both spellings of the issuer', () => {
    expect(deriveAddress({ ...inputs, issuer: iss })).toBe(address);
    expect(deriveAddress({ ...inputs, issuer: 'accounts.google.com' })).toBe(address);
    expect(deriveAddress({ ...inputs, issuer: `${iss}/` })).not.toBe(address);
  });

  test('is the same for the salt in decimal, in base64 and in bytes', () => {
    const bytes = Buffer.from(BigInt(salt).toString(16).padStart(32, '0'), 'hex');
    expect(deriveAddress({ ...inputs, issuer: iss, salt: bytes.toString('base64') })).toBe(address);
    expect(deriveAddress({ ...inputs, issuer: iss, salt: BigInt(salt) })).toBe(address);
    expect(deriveAddress({ ...inputs, issuer: iss, salt: Uint8Array.from(bytes) })).toBe(address);
  });

  test('differs in its legacy form only if the seed begins with a zero byte', () => {
    const differs: boolean[] = [];
    // One salt in 256 gives such a seed on average. Among these salts, 21, 22 and 51 do.
    for (let salt = 15n; salt < 55n; salt++) {
      const seed = genAddressSeed(salt, 'sub', keyClaimValue, aud);
      const [legacy, current] = [true, false].map((legacyAddress) =>
        deriveAddress({ ...inputs, issuer: iss, salt, legacyAddress }),
      );
      expect(current).toBe(computeZkLoginAddressFromSeed(seed, iss, false));
      expect(legacy !== current).toBe(seed < 1n << 248n);
      differs.push(legacy !== current);
    }
    expect(differs.filter(Boolean)).toHaveLength(3);
  });

  test('has no default for the legacy form, and refuses a salt of 2^128', () => {
    expect(() => deriveAddress({ ...inputs, issuer: iss, legacyAddress: undefined as never })).toThrow(
      /legacyAddress/,
    );
    expect(() => deriveAddress({ ...inputs, issuer: iss, salt: 2n ** 128n })).toThrow(
      /salt must be an integer/,
    );
    expect(() => deriveAddress({ ...inputs, issuer: iss, salt: '-1' })).toThrow(/salt must be an integer/);
    // One of the wrong values has the names of the claims in a token, and not the names of the options.
    const { subject: sub, audience, ...otherInputs } = inputs;
    for (const wrong of [undefined, {}, { ...otherInputs, iss, sub, aud }, { ...inputs, issuer: 5 }]) {
      expect(() => deriveAddress(wrong as never)).toThrow(
        expect.objectContaining({ code: 'ZKLOGIN_OPTION', message: 'issuer must be a string' }),
      );
    }
    expect(() => deriveAddress({ ...inputs, issuer: iss, subject: ['a'] as never })).toThrow(
      /subject must be a string/,
    );
  });
});

describe('the composite signature', () => {
  const { inputs, maxEpoch, userSignatureBase64, compositeSignatureBase64 } = composite;

  test('is assembled from its parts', () => {
    const signature = getZkLoginSignature({ inputs, maxEpoch, userSignature: userSignatureBase64 });
    expect(signature).toBe(compositeSignatureBase64);
  });

  test('can be parsed into its parts', () => {
    const bytes = fromBase64(compositeSignatureBase64);
    expect(bytes[0]).toBe(5);
    const parsed = parseZkLoginSignature(bytes.slice(1));
    expect(parsed.inputs).toEqual(inputs);
    expect(parsed.maxEpoch).toBe(maxEpoch);
    expect(Buffer.from(parsed.userSignature).toString('base64')).toBe(userSignatureBase64);
  });
});

test('readProof accepts the proofs of real logins', () => {
  expect(readProof(production.partialInputs)).toEqual(production.partialInputs);
  const { issBase64Details, headerBase64 } = composite.inputs;
  expect(readProof({ ...devnet.partialInputs, issBase64Details, headerBase64, more: 1 })).not.toHaveProperty(
    'more',
  );
});

test.each(jwts)('a real token of $provider is accepted', ({ jwt }) => {
  const { iss, aud, sub, exp } = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  const expected = { issuer: iss, clientId: aud, nonce: common.nonce };
  expect(checkToken(jwt, expected, exp * 1000)).toEqual({ issuer: iss, audience: aud, subject: sub });
  expect(() => checkToken(jwt, { ...expected, nonce: `${common.nonce}x` }, exp * 1000)).toThrow(/nonce/);
  expect(() => checkToken(jwt, expected, exp * 1000 + 61_000)).toThrow(/expired/);
});
