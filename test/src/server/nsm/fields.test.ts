import { encode } from 'cborg';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  attestation,
  describeNsm,
  describePcr,
  extendPcr,
  getRandom,
  lockPcr,
} from '../../../../src/server/nsm/messages.ts';
import { description, filled, hex, unhex } from './exchanges.ts';

const protocolError = expect.objectContaining({ code: 'NSM_PROTOCOL' });

describe('decoding an answer', () => {
  const digestBytes = fc.constantFrom(32, 48, 64).chain((n) => fc.uint8Array({ minLength: n, maxLength: n }));

  test('is the inverse of encoding it', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 12_000 }),
        fc.uint8Array({ minLength: 1, maxLength: 256 }),
        digestBytes,
        fc.boolean(),
        (document, random, data, lock) => {
          expect(attestation.decode(encode({ Attestation: { document } }))).toEqual(document);
          expect(getRandom.decode(encode({ GetRandom: { random } }))).toEqual(random);
          expect(describePcr.decode(encode({ DescribePCR: { lock, data } }))).toEqual({ lock, data });
          expect(extendPcr.decode(encode({ ExtendPCR: { data } }))).toEqual(data);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('accepts DescribeNSM with any order of keys and indexes, and with unknown keys', () => {
    const uint16 = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(
        fc.tuple(uint16, uint16, uint16),
        fc.string({ minLength: 1, unit: 'grapheme' }),
        fc.constantFrom('SHA256', 'SHA384', 'SHA512'),
        fc.uniqueArray(fc.integer({ min: 0, max: 63 })),
        fc.dictionary(
          fc.string({ maxLength: 20 }).filter((key) => !(key in description)),
          fc.oneof(
            fc.string(),
            fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
            fc.uint8Array(),
            fc.constant(null),
          ),
        ),
        fc.infiniteStream(fc.nat()),
        ([major, minor, patch], moduleId, digest, locked, unknown, order) => {
          const fields = Object.entries({
            version_major: major,
            version_minor: minor,
            version_patch: patch,
            module_id: moduleId,
            max_pcrs: 64,
            locked_pcrs: locked,
            digest,
            ...unknown,
          });
          const shuffled = fields
            .map((field) => ({ field, place: order.next().value as number }))
            .sort((a, b) => a.place - b.place);
          const answer = encode(
            { DescribeNSM: new Map(shuffled.map(({ field }) => field)) },
            { mapSorter: () => 0 },
          );
          expect(describeNsm.decode(answer)).toEqual({
            versionMajor: major,
            versionMinor: minor,
            versionPatch: patch,
            moduleId,
            maxPcrs: 64,
            lockedPcrs: locked.toSorted((a, b) => a - b),
            digest,
          });
        },
      ),
      { numRuns: 300 },
    );
  });

  test.each([
    ['version_major', -1],
    ['version_major', 0x1_0000],
    ['version_minor', 1n << 63n],
    ['version_patch', 1.5],
    ['version_patch', '1'],
    ['max_pcrs', null],
    ['max_pcrs', 2],
    ['module_id', ''],
    ['module_id', 5],
    ['module_id', filled(3)],
    ['digest', 'SHA1'],
    ['digest', 'sha384'],
    ['digest', 384],
    ['locked_pcrs', 3],
    ['locked_pcrs', { 0: true }],
    ['locked_pcrs', [0, 0]],
    ['locked_pcrs', [32]],
    ['locked_pcrs', ['0']],
    ['locked_pcrs', [-1]],
  ])('rejects DescribeNSM with the %s %o', (field, value) => {
    expect(() => describeNsm.decode(encode({ DescribeNSM: { ...description, [field]: value } }))).toThrow(
      protocolError,
    );
  });

  test('rejects an integer encoded as a float', () => {
    const answer = hex(encode({ DescribeNSM: description }));
    const asFloat = answer.replace('6d76657273696f6e5f6d616a6f7201', '6d76657273696f6e5f6d616a6f72f93c00');
    expect(asFloat).not.toBe(answer);
    expect(() => describeNsm.decode(unhex(asFloat))).toThrow(protocolError);
  });

  test.each(Object.keys(description))('rejects DescribeNSM without %s', (field) => {
    const { [field as keyof typeof description]: _, ...otherFields } = description;
    expect(() => describeNsm.decode(encode({ DescribeNSM: otherFields }))).toThrow(protocolError);
  });

  test.each([
    ['an empty document', attestation, { Attestation: { document: filled(0) } }],
    ['a document as text', attestation, { Attestation: { document: 'document' } }],
    ['a document as a list', attestation, { Attestation: { document: [1, 2, 3] } }],
    ['no document', attestation, { Attestation: {} }],
    ['an extra field', attestation, { Attestation: { document: filled(1), more: 1 } }],
    ['a document under another name', attestation, { Attestation: { doc: filled(1) } }],
    ['no random bytes', getRandom, { GetRandom: { random: filled(0) } }],
    ['257 random bytes', getRandom, { GetRandom: { random: filled(257) } }],
    ['random bytes that are null', getRandom, { GetRandom: { random: null } }],
    ['a lock that is a number', describePcr, { DescribePCR: { lock: 1, data: filled(48) } }],
    ['a lock that is null', describePcr, { DescribePCR: { lock: null, data: filled(48) } }],
    ['no lock', describePcr, { DescribePCR: { data: filled(48) } }],
    ['a register of 47 bytes', describePcr, { DescribePCR: { lock: true, data: filled(47) } }],
    ['a register of 0 bytes', extendPcr, { ExtendPCR: { data: filled(0) } }],
    ['a register of 65 bytes', extendPcr, { ExtendPCR: { data: filled(65) } }],
    ['fields in an answer without fields', lockPcr, { LockPCR: {} }],
    ['null as the value of an answer without fields', lockPcr, { LockPCR: null }],
    ['the answer to LockPCRs', lockPcr, 'LockPCRs'],
    ['the right fields under another name', extendPcr, { DescribePCR: { data: filled(48) } }],
    ['a bare name for an answer with fields', getRandom, 'GetRandom'],
  ])('refuses %s', (_, { decode }, answer) => {
    expect(() => decode(encode(answer))).toThrow(protocolError);
  });
});
