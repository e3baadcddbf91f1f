import { encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import {
  attestation,
  describeNsm,
  describePcr,
  extendPcr,
  getRandom,
  lockPcr,
  lockPcrs,
  MAX_REQUEST_BYTES,
} from '../../../../src/server/nsm/messages.ts';
import { ascii, exchanges, filled, hex, unhex } from './exchanges.ts';

const inputError = expect.objectContaining({ code: 'NSM_INPUT' });

describe('requests', () => {
  const recorded = exchanges.filter(({ requestComplete }) => requestComplete).map(({ request }) => request);

  test.each([
    ['DescribeNSM', describeNsm.encode()],
    ['GetRandom', getRandom.encode()],
    ['DescribePCR 0', describePcr.encode(0)],
    ['DescribePCR 16', describePcr.encode(16)],
    ['DescribePCR 17', describePcr.encode(17)],
    ['ExtendPCR 0', extendPcr.encode(0, ascii('x'))],
    ['ExtendPCR 16', extendPcr.encode(16, ascii('hello'))],
    ['LockPCR', lockPcr.encode(16)],
    ['LockPCRs', lockPcrs.encode(18)],
    ['Attestation', attestation.encode({ publicKey: null, nonce: null, userData: null })],
  ])('%s is byte for byte as recorded', (_, request) => {
    expect(recorded).toContain(hex(request));
  });

  test('encodes every recorded request, except the invalid ones', () => {
    expect(recorded).toHaveLength(17);
    const otherRequests = recorded.filter(
      (request) =>
        ![
          hex(describeNsm.encode()),
          hex(getRandom.encode()),
          ...[0, 16, 17].map((index) => hex(describePcr.encode(index))),
          hex(extendPcr.encode(0, ascii('x'))),
          hex(extendPcr.encode(16, ascii('hello'))),
          hex(lockPcr.encode(16)),
          hex(lockPcrs.encode(18)),
          hex(attestation.encode({ publicKey: null, nonce: null, userData: null })),
        ].includes(request),
    );
    expect(otherRequests).toEqual([
      hex(encode({ DescribePCR: { index: 99 } })),
      hex(encode({ Attestation: {} })),
      hex(encode('Bogus')),
      hex(encode({ GetRandom: {} })),
      hex(encode({})),
    ]);
  });

  test('an attestation request with all fields begins as recorded, in the recorded order of fields', () => {
    const [recordedSmall, recordedLarge] = exchanges.filter(({ requestComplete }) => !requestComplete);
    const small = attestation.encode({
      userData: ascii('user data 1'),
      nonce: unhex('03661e7255379cc1250a6a3121ee9818740b107637d462567d9f9e210d4b0170'),
      publicKey: filled(91),
    });
    const large = attestation.encode({
      userData: filled(512, 1),
      nonce: filled(512, 2),
      publicKey: filled(1024, 3),
    });
    expect(hex(small)).toMatch(new RegExp(`^${recordedSmall?.request}`));
    expect(hex(large)).toMatch(new RegExp(`^${recordedLarge?.request}`));
    expect(hex(large).endsWith(`6a7075626c69635f6b6579590400${'03'.repeat(1024)}`)).toBe(true);
  });

  test('empty user data and an empty nonce are sent as empty bytes, not as null', () => {
    const request = attestation.encode({ publicKey: null, nonce: filled(0), userData: filled(0) });
    expect(hex(request)).toBe(
      'a16b4174746573746174696f6ea369757365725f6461746140656e6f6e6365406a7075626c69635f6b6579f6',
    );
  });

  test.each([
    ['user data over 512 bytes', { publicKey: null, nonce: null, userData: filled(513) }],
    ['a nonce over 512 bytes', { publicKey: null, nonce: filled(513), userData: null }],
    ['a public key over 1024 bytes', { publicKey: filled(1025), nonce: null, userData: null }],
    ['an empty public key', { publicKey: filled(0), nonce: null, userData: null }],
    ['a missing field', { publicKey: null, nonce: null }],
    ['a string instead of bytes', { publicKey: null, nonce: null, userData: 'text' }],
    ['a list for bytes', { publicKey: null, nonce: null, userData: [1, 2] }],
    ['wider numbers for bytes', { publicKey: null, nonce: new Uint16Array(2), userData: null }],
  ])('attestation rejects %s', (_, request) => {
    expect(() => attestation.encode(request as never)).toThrow(inputError);
  });

  test.each([-1, 32, 99, 1.5, Number.NaN, Infinity, '0', null, undefined, 0n])(
    '%s is not a PCR index',
    (index) => {
      for (const request of [
        () => describePcr.encode(index as never),
        () => extendPcr.encode(index as never, filled(1)),
        () => lockPcr.encode(index as never),
      ]) {
        expect(request).toThrow(inputError);
      }
    },
  );

  test.each([1, 32])('%s is a range of PCRs', (range) => {
    expect(hex(lockPcrs.encode(range))).toMatch(/^a1684c6f636b50435273a16572616e6765/);
  });

  test.each([0, -1, 33, 1.5, '1', undefined])('%s is not a range of PCRs', (range) => {
    expect(() => lockPcrs.encode(range as never)).toThrow(inputError);
  });

  test('accepts the largest request and rejects one byte more', () => {
    const overhead = extendPcr.encode(16, filled(1000)).length - 1000;
    expect(extendPcr.encode(16, filled(MAX_REQUEST_BYTES - overhead))).toHaveLength(MAX_REQUEST_BYTES);
    expect(() => extendPcr.encode(16, filled(MAX_REQUEST_BYTES - overhead + 1))).toThrow(inputError);
    expect(() => extendPcr.encode(16, filled(0))).toThrow(inputError);
  });

  test('no error message repeats the rejected value', () => {
    const secret = ascii('secret'.repeat(200));
    const refused = () => attestation.encode({ publicKey: null, nonce: null, userData: secret });
    expect(refused).toThrow(inputError);
    // 115 is the code of "s".
    expect(refused).not.toThrow(/secret|115/);
  });
});
