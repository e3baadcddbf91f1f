/**
 * Attacks that no list of cases covers: arbitrary changes to a document, and inputs that are not documents at
 * all.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AttestationError,
  decodeAttestation,
  predictRegistration,
  verifyAttestation,
} from '../../../../src/library/attestation/index.ts';
import { createPolicy, fromHex } from './cases/case.ts';
import { realCases } from './cases/real.ts';

const [weather] = realCases;
if (weather === undefined) throw new Error('no case');
const DOCUMENT = fromHex(weather.document);
const OPTIONS = { now: weather.at, policy: createPolicy(weather) };

async function findRefusal(bytes: Uint8Array): Promise<unknown> {
  return await verifyAttestation(bytes, OPTIONS).then(
    () => 'trusted',
    (error: unknown) => error,
  );
}

describe('a real document', () => {
  test('is never trusted with a flipped bit', async () => {
    const flip = fc.record({ at: fc.nat(DOCUMENT.length - 1), bit: fc.nat(7) });
    await fc.assert(
      fc.asyncProperty(flip, async ({ at, bit }) => {
        const changed = DOCUMENT.slice();
        changed[at] = (changed[at] ?? 0) ^ (1 << bit);
        expect(await findRefusal(changed)).toBeInstanceOf(AttestationError);
        expect(await predictRegistration(changed, weather.at)).toMatchObject({ accepted: false });
      }),
      { numRuns: 200 },
    );
  });

  test('is never trusted when truncated', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(DOCUMENT.length - 1), async (length) => {
        expect(await findRefusal(DOCUMENT.slice(0, length))).toBeInstanceOf(AttestationError);
      }),
      { numRuns: 100 },
    );
  });

  test('is never trusted with inserted bytes', async () => {
    const insertion = fc.record({
      at: fc.nat(DOCUMENT.length),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(insertion, async ({ at, bytes }) => {
        const changed = new Uint8Array([...DOCUMENT.slice(0, at), ...bytes, ...DOCUMENT.slice(at)]);
        expect(await findRefusal(changed)).toBeInstanceOf(AttestationError);
      }),
      { numRuns: 100 },
    );
  });
});

/** Returns the start of a document, up to an unprotected header with this number of different keys. */
function createHeader(keys: number): Uint8Array {
  const header = new Uint8Array(9 + 6 * keys);
  const view = new DataView(header.buffer);
  header.set([0x84, 0x40, 0xba]);
  view.setUint32(3, keys);
  for (let key = 0; key < keys; key++) {
    view.setUint8(7 + 6 * key, 0x1a);
    view.setUint32(8 + 6 * key, key);
  }
  header.set([0x40, 0x40], 7 + 6 * keys);
  return header;
}

describe('an argument that is not a document', () => {
  test('is refused with an AttestationError if it is random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 512 }), (bytes) => {
        expect(() => decodeAttestation(bytes)).toThrow(AttestationError);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['nested arrays', new Uint8Array(32_768).fill(0x81)],
    ['nested tags', new Uint8Array(32_768).fill(0xc1)],
    ['nested strings of indefinite length', new Uint8Array(32_768).fill(0x5f)],
    ['an array of 2^32 - 1 items', Uint8Array.of(0x9a, 0xff, 0xff, 0xff, 0xff)],
    ['an array of 2^64 - 1 items', Uint8Array.of(0x9b, ...new Uint8Array(8).fill(0xff))],
    ['an unprotected header of 100,000 keys', createHeader(100_000)],
    ['a string of 2^53 bytes', Uint8Array.of(0x5b, 0, 0x20, 0, 0, 0, 0, 0, 0)],
  ])('is refused immediately if it is %s', async (_, bytes) => {
    expect(() => decodeAttestation(bytes)).toThrow(AttestationError);
    expect(await predictRegistration(bytes, 0)).toMatchObject({ abort: 1 });
  });

  test.each([
    ['a string', weather.document],
    ['an array', [...DOCUMENT]],
    ['an ArrayBuffer', DOCUMENT.buffer],
    ['undefined', undefined],
  ])('is refused if it is %s instead of a Uint8Array', async (_, bytes) => {
    expect(await findRefusal(bytes as never)).toMatchObject({ code: 'DOCUMENT_SIZE' });
    await expect(predictRegistration(bytes as never, 0)).rejects.toMatchObject({
      code: 'DOCUMENT_SIZE',
    });
  });
});
