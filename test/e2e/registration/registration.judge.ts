/**
 * Compares `predictRegistration` with an independent judge, the published verifier that Sui's validators run,
 * in every case of the attestation's tests.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { predictRegistration } from '../../../src/library/attestation/index.ts';
import { encodePayload, signDocument } from '../../../src/testing/attestation_ca.ts';
import { type Case, fromHex } from '../../src/library/attestation/cases/case.ts';
import { cases } from '../../src/library/attestation/cases/index.ts';
import { CHAIN, defineCase, documentWith, fields, ROOT } from '../../src/library/attestation/cases/made.ts';
import { buildVerifier, isJudged, verdicts } from './verifier.ts';

beforeAll(() => buildVerifier(ROOT.certificate), 600_000);

async function predictAbort({ document, at, roots = [] }: Case): Promise<number | null> {
  const { abort } = await predictRegistration(fromHex(document), at, ...roots.slice(0, 1).map(fromHex));
  return abort;
}

describe.each(Object.entries(cases))('%s', (_, group) => {
  test('have the predicted verdict on Sui', async () => {
    const judged = group.filter((sample) => isJudged(sample, ROOT.certificate));
    expect(judged.length).toBeGreaterThan(group.length / 2);
    const abortCodes = verdicts(judged);
    const predicted = await Promise.all(judged.map(predictAbort));
    const formatAborts = (aborts: readonly (number | null)[]) =>
      judged.map(({ name }, index) => `${name}: ${aborts[index]}`);
    expect(formatAborts(predicted)).toEqual(formatAborts(abortCodes));
  });
});

describe('a document that is changed at random', () => {
  const payload = encodePayload(fields());
  const document = documentWith({});
  /** Puts one to three random bytes at up to three places, each in place of up to two bytes. */
  const changeBytes = (bytes: Uint8Array) =>
    fc
      .array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(2), fc.uint8Array({ minLength: 1, maxLength: 3 })), {
        minLength: 1,
        maxLength: 3,
      })
      .map((changes) =>
        changes.reduce<Uint8Array>(
          (before, [at, removed, inserted]) =>
            new Uint8Array([...before.slice(0, at), ...inserted, ...before.slice(at + removed)]),
          bytes,
        ),
      );

  test.each([
    ['after signing', changeBytes(document)],
    ['before signing', changeBytes(payload).map((bytes) => signDocument(bytes, CHAIN.leaf))],
  ])('%s, gets the predicted verdict', async (_, documents) => {
    const judged = fc.sample(documents, 500).map((bytes) => defineCase('changed', bytes));
    const abortCodes = verdicts(judged);
    const predicted = await Promise.all(judged.map(predictAbort));
    const differing = judged.filter((_, index) => predicted[index] !== abortCodes[index]);
    expect(differing.map((sample) => sample.document)).toEqual([]);
    expect(new Set(abortCodes).size).toBeGreaterThan(1);
  });
});
