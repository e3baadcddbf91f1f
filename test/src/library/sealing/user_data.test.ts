/** Checks the `user_data` of attestation documents, as src/library/sealing/README.md specifies it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readUserData } from '../../../../src/library/attestation/index.ts';
import { SealingError } from '../../../../src/library/sealing/errors.ts';
import { decodeUserData, encodeUserData, type UserData } from '../../../../src/library/sealing/user_data.ts';
import { hex, toHex, VECTORS } from './support.ts';

const encoded = hex(VECTORS.user_data[0]?.bytes ?? '');

function describeOutcome(bytes: Uint8Array): UserData | string {
  try {
    return decodeUserData(bytes);
  } catch (error) {
    if (!(error instanceof SealingError)) throw error;
    return error.code;
  }
}

const anyUserData = fc.record({
  sealingKey: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  application: fc.stringMatching(/^[a-z][a-z0-9_-]{0,63}$/),
  version: fc.stringMatching(/^[!-~]{1,64}$/),
});

describe('the structure', () => {
  test.each(VECTORS.user_data)(
    'is the one in the vector for $application',
    ({ sealing_key, bytes, ...description }) => {
      const userData = { sealingKey: hex(sealing_key), ...description };
      expect(toHex(encodeUserData(userData))).toBe(bytes);
      expect(decodeUserData(hex(bytes))).toEqual(userData);
    },
  );

  test('fits into a document, and comes back unchanged', () => {
    fc.assert(
      fc.property(anyUserData, (userData) => {
        const bytes = encodeUserData(userData);
        expect(bytes.length).toBeLessThanOrEqual(182);
        expect(decodeUserData(bytes)).toEqual(userData);
      }),
    );
  });

  test('has one encoding: any decoded value is encoded to the same bytes', () => {
    const changed = fc
      .record({ at: fc.nat(encoded.length), drop: fc.nat(3), put: fc.uint8Array({ maxLength: 3 }) })
      .map(({ at, drop, put }) => Buffer.concat([encoded.subarray(0, at), put, encoded.subarray(at + drop)]));
    fc.assert(
      fc.property(fc.oneof(changed, fc.uint8Array({ maxLength: 600 })), (bytes) => {
        const outcome = describeOutcome(bytes);
        if (typeof outcome === 'string') expect(outcome).toBe('SEALING_USER_DATA');
        else expect(toHex(encodeUserData(outcome))).toBe(toHex(bytes));
      }),
      { numRuns: 500 },
    );
  });

  const replaceBytes = (at: number, ...bytes: number[]) => {
    const changed = encoded.slice();
    changed.set(bytes, at);
    return changed;
  };
  test.each([
    ['no bytes', new Uint8Array()],
    ['another format', replaceBytes(13, 0x32)],
    ['another KEM', replaceBytes(14, 0x10)],
    ['another KDF', replaceBytes(16, 3)],
    ['another AEAD', replaceBytes(18, 3)],
    ['a name in upper case', replaceBytes(53, 0x53)],
    ['a space in the version', replaceBytes(58, 0x20)],
    ['invalid UTF-8', replaceBytes(58, 0xff)],
    ['a byte more', Buffer.concat([encoded, Uint8Array.of(0)])],
    ['a length in two bytes', Buffer.concat([Uint8Array.of(0x8d, 0), encoded.subarray(1)])],
    ['a length of 4 GiB', Buffer.concat([Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f), encoded.subarray(1)])],
    ['more than 512 bytes', Buffer.concat([encoded, new Uint8Array(512)])],
  ])('is refused with %s', (_, bytes) => {
    expect(describeOutcome(bytes)).toBe('SEALING_USER_DATA');
  });

  test('is refused when it is truncated anywhere', () => {
    for (let length = 0; length < encoded.length; length++) {
      expect(describeOutcome(encoded.subarray(0, length))).toBe('SEALING_USER_DATA');
    }
  });

  test.each([
    ['', '1'],
    ['Salt', '1'],
    ['a'.repeat(65), '1'],
    ['salt', ''],
    ['salt', 'a b'],
    ['salt', '1'.repeat(65)],
  ])('is not written with the name %j and the version %j', (application, version) => {
    const sealingKey = new Uint8Array(32);
    expect(() => encodeUserData({ sealingKey, application, version })).toThrow(SealingError);
  });
});

describe('readUserData', () => {
  test('reads the user data of a document', () => {
    expect(readUserData({ userData: encoded })).toMatchObject({ application: 'salt', version: '0.1.0' });
  });

  test.each([
    ['USER_DATA_MISSING', null],
    ['USER_DATA_FORMAT', Uint8Array.of(1, 2, 3)],
  ])('throws for %s', (code, userData) => {
    expect(() => readUserData({ userData })).toThrow(expect.objectContaining({ code }));
  });
});
