/** Compares the list of rules in the README with the code and the cases. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ATTESTATION_CODES } from '../../../../src/library/attestation/index.ts';
import type { Case } from './cases/case.ts';
import { cases } from './cases/index.ts';

const SOURCE = new URL('../../../../src/library/attestation/', import.meta.url);
const readme = readFileSync(new URL('README.md', SOURCE), 'utf8');
const code = readdirSync(SOURCE)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(new URL(name, SOURCE), 'utf8'))
  .join('\n');

/** The table of rules: number, codes, and Sui's position. */
const rules = [
  ...readme.matchAll(/^\| (\d+) +\|.*\| (`[A-Z_`, 0-9]+`) +\| (=|stricter|caller's) +\|$/gm),
].map(([, number, codes, sui]) => ({
  number: Number(number),
  codes: [...(codes ?? '').matchAll(/`([A-Z_0-9]+)`/g)].map(([, name]) => name as string),
  sui,
}));

const all: Case[] = Object.values(cases).flat();

describe('the rules', () => {
  test('are numbered without a gap', () => {
    expect(rules.map(({ number }) => number)).toEqual(rules.map((_, index) => index + 1));
    expect(rules.length).toBeGreaterThan(40);
  });

  test('are each marked in the code at exactly one place', () => {
    const comments = [...code.matchAll(/\/\/ (?:\[\d+\] ?)+/g)].map(([comment]) => comment).join('');
    const marks = [...comments.matchAll(/\[(\d+)\]/g)].map(([, number]) => Number(number));
    const counted = rules.map(({ number }) => [number, marks.filter((mark) => mark === number).length]);
    expect(counted).toEqual(rules.map(({ number }) => [number, 1]));
  });

  test('name every code of the library, and no other, but those of readUserData', () => {
    const codes = Object.keys(ATTESTATION_CODES).filter((code) => !code.startsWith('USER_DATA_'));
    expect(new Set(rules.flatMap((rule) => rule.codes))).toEqual(new Set(codes));
  });

  test('each refuse some case, except the one about the options, which no document can break', () => {
    const refusing = new Set(all.map((one) => one.code));
    const without = rules.filter(({ codes }) => !codes.every((name) => refusing.has(name)));
    expect(without.map(({ number }) => number)).toEqual([21]);
  });

  test('that are stricter than Sui’s each refuse some case that Sui accepts', () => {
    const accepted = new Set(all.filter(({ abort }) => abort === null).map((one) => one.code));
    const strict = rules.filter(({ sui }) => sui === 'stricter');
    expect(strict.filter(({ codes }) => !codes.some((name) => accepted.has(name)))).toEqual([]);
    const equal = rules.filter(({ sui }) => sui === '=').flatMap(({ codes }) => codes);
    const onlyEqual = equal.filter((name) => !strict.some(({ codes }) => codes.includes(name)));
    expect(onlyEqual.filter((name) => accepted.has(name))).toEqual([]);
  });
});
