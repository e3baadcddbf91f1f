import { expect, test } from 'vitest';
import { isProvable } from '../../../../src/library/token/claims.ts';

test.each([
  // 165 characters of the circuit without `"iss":`, two quotes and a comma.
  ['issuer', 156],
  // 145 characters of the circuit without two quotes.
  ['clientId', 143],
] as const)('the %s that a proof can contain has at most %i characters', (name, most) => {
  expect(isProvable[name]('a'.repeat(most))).toBe(true);
  expect(isProvable[name]('a'.repeat(most + 1))).toBe(false);
  expect(isProvable[name]('')).toBe(false);
  expect(isProvable[name]('a"b')).toBe(false);
});
