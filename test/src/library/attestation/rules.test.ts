/**
 * The list of rules has every code of the library, and each rule has cases. The compiler ensures that the
 * checks name these rules.
 */
import { describe, expect, test } from 'vitest';
import { ATTESTATION_CODES, RULES } from '../../../../src/library/attestation/index.ts';
import type { Case } from './cases/case.ts';
import { cases } from './cases/index.ts';

const allCases: Case[] = Object.values(cases).flat();

describe('the rules', () => {
  test('have different ids', () => {
    expect(new Set(RULES.map(({ id }) => id)).size).toBe(RULES.length);
    expect(RULES.length).toBeGreaterThan(40);
  });

  test('name exactly the codes of the library, except for those of readUserData', () => {
    const codes = Object.keys(ATTESTATION_CODES).filter((code) => !code.startsWith('USER_DATA_'));
    expect(new Set(RULES.flatMap((rule) => rule.codes as readonly string[]))).toEqual(new Set(codes));
  });

  test('each refuse some case, except the rule about the options, which no document can break', () => {
    const refusalCodes = new Set<string | null>(allCases.map(({ code }) => code));
    const unbroken = RULES.filter(({ codes }) => !codes.every((name) => refusalCodes.has(name)));
    expect(unbroken.map(({ id }) => id)).toEqual(['options']);
  });

  test('that are stricter than Sui’s each refuse some case that Sui accepts', () => {
    const stricterCodes = new Set<string | null>(
      allCases.filter(({ abort }) => abort === null).map(({ code }) => code),
    );
    const strict = RULES.filter(({ sui }) => sui === 'stricter');
    expect(strict.filter(({ codes }) => !codes.some((name) => stricterCodes.has(name)))).toEqual([]);
    const equal = RULES.filter(({ sui }) => sui === 'same').flatMap(
      ({ codes }) => codes as readonly string[],
    );
    const onlyEqual = equal.filter(
      (name) => !strict.some(({ codes }) => (codes as readonly string[]).includes(name)),
    );
    expect(onlyEqual.filter((name) => stricterCodes.has(name))).toEqual([]);
  });
});
