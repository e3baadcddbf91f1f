/** Checks that the outcomes of the rules agree with the verdict on every document. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { randomDocumentBytes, randomNumbers } from '../../../../scripts/check/fuzz_attestation.ts';
import {
  type AttestationError,
  explainAttestation,
  RULES,
  type VerifyOptions,
  verifyAttestation,
} from '../../../../src/library/attestation/index.ts';
import { type Case, createPolicy, fromHex } from './cases/case.ts';
import { cases } from './cases/index.ts';
import { realCases, WEATHER_IMAGE } from './cases/real.ts';

/** The codes of each rule, by its number. */
const CODES: ReadonlyMap<number, readonly string[]> = new Map(
  RULES.map(({ codes }, index) => [index + 1, codes]),
);
const OPTIONS_RULE = RULES.findIndex(({ id }) => id === 'options') + 1;

const [weather] = realCases;
if (weather === undefined) throw new Error('no case');
const DOCUMENT = fromHex(weather.document);
const OPTIONS = { now: weather.at, policy: createPolicy(weather) };

function createOptions(documentCase: Case): VerifyOptions {
  const roots = documentCase.roots?.map(fromHex) ?? [];
  return { now: documentCase.at, policy: createPolicy(documentCase), ...(roots.length > 0 ? { roots } : {}) };
}

/** Checks an explanation against the verdict. @returns the failed rule, or null */
async function checkExplanation(bytes: Uint8Array, options: VerifyOptions): Promise<number | null> {
  const verdict = await verifyAttestation(bytes, options).then(
    (verified) => ({ verified }),
    (error: AttestationError) => ({ error }),
  );
  const { rules, verified, error, document, chain } = await explainAttestation(bytes, options);
  expect({ ...(verified && { verified }), ...(error && { error }) }).toEqual(verdict);
  expect(error?.code).toBe('error' in verdict ? verdict.error.code : undefined);
  expect(rules.map(({ rule }) => rule)).toEqual([...CODES.keys()]);
  const failed = rules.find(({ state }) => state === 'failed')?.rule ?? null;
  expect(failed === null).toBe(error === undefined);
  if (failed !== null) expect(CODES.get(failed)).toContain(error?.code);
  const states = rules.map(({ rule }) => {
    if (rule === failed) return 'failed';
    return failed === null || rule < failed || rule === OPTIONS_RULE ? 'passed' : 'not reached';
  });
  expect(rules.map(({ state }) => state)).toEqual(states);
  // All rows are compared in one step, since there are many thousands.
  const invalidRows = rules.filter(
    ({ state, found: detail = '' }) =>
      (state === 'not reached' && detail !== '') ||
      detail.length > 400 ||
      /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(detail),
  );
  expect(invalidRows).toEqual([]);
  expect(document !== undefined).toBe(failed === null || failed > 20);
  expect(chain !== undefined).toBe(failed === null || failed > 23);
  return failed;
}

const failedRules = new Map<Case, number | null>();

/** Checks the explanation of a case, once. @returns the failed rule, or null */
async function findFailedRule(documentCase: Case): Promise<number | null> {
  const cached = failedRules.get(documentCase);
  if (cached !== undefined) return cached;
  const failed = await checkExplanation(fromHex(documentCase.document), createOptions(documentCase));
  failedRules.set(documentCase, failed);
  return failed;
}

describe('explainAttestation and verifyAttestation', () => {
  test.each(Object.entries(cases))('agree on the cases of %s', async (_, group) => {
    for (const documentCase of group) {
      const failed = await findFailedRule(documentCase);
      if (documentCase.code === null) expect([documentCase.name, failed]).toEqual([documentCase.name, null]);
      else expect(CODES.get(failed ?? 0), documentCase.name).toContain(documentCase.code);
    }
  });

  test('agree on real documents that the fuzzer changed', async () => {
    const codes = new Set<number | null>();
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        codes.add(await checkExplanation(randomDocumentBytes(randomNumbers(seed)), OPTIONS));
      }),
      { numRuns: 400 },
    );
    expect(codes.size).toBeGreaterThan(5);
  });

  test('agree on each rule: some case fails at every rule but the one about the options', async () => {
    const failed = new Set<number | null>();
    for (const documentCase of Object.values(cases).flat()) failed.add(await findFailedRule(documentCase));
    expect([...CODES.keys()].filter((rule) => !failed.has(rule))).toEqual([OPTIONS_RULE]);
  });
});

describe('the rows of an explanation', () => {
  const explainRows = async (policy: VerifyOptions['policy']) => {
    const { rules } = await explainAttestation(DOCUMENT, { ...OPTIONS, policy });
    return new Map(rules.map((row) => [row.rule, row]));
  };

  test('show the values of the document', async () => {
    const rows = await explainRows(OPTIONS.policy);
    expect(rows.get(1)?.found).toBe(`${DOCUMENT.length} bytes`);
    expect(rows.get(15)?.found).toBe('i-06e4b98c6549ff803-enc0196373b195fb723');
    expect(rows.get(24)?.found).toBe('until 2025-04-15T05:17:50.000Z');
    expect(rows.get(37)?.found).toBe('image 1 of 1');
  });

  test('say which requirements the policy does not have', async () => {
    const rows = await explainRows({ images: [WEATHER_IMAGE] });
    for (const rule of [38, 39, 40, 41]) {
      expect(rows.get(rule)).toMatchObject({ state: 'passed', found: 'not asked' });
    }
  });

  test('do not claim that the image of a debug enclave was compared', async () => {
    const debug = realCases.find(({ name }) => name === 'a debug enclave that the policy allows');
    if (debug === undefined) throw new Error('no case');
    const { rules } = await explainAttestation(fromHex(debug.document), createOptions(debug));
    expect(rules[36]?.found).toMatch(/^not compared/);
  });

  test('show an expired chain', async () => {
    const { chain, error } = await explainAttestation(DOCUMENT, { ...OPTIONS, now: weather.at + 1e10 });
    expect(error?.code).toBe('CERTIFICATE_EXPIRED');
    expect(chain).toHaveLength(5);
  });
});

test.each([
  ['the options', undefined, 'POLICY_INVALID'],
  ['the policy', { now: 0, policy: { images: [] } }, 'POLICY_INVALID'],
  ['the time', { ...OPTIONS, now: Number.NaN }, 'TIME_INVALID'],
])('explainAttestation throws for an invalid value of %s', async (_, options, code) => {
  await expect(explainAttestation(DOCUMENT, options as never)).rejects.toMatchObject({ code });
});

test('explainAttestation fails at the first rule for anything but bytes', async () => {
  expect(await checkExplanation(weather.document as never, OPTIONS)).toBe(1);
});
