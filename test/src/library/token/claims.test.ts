import { expect, test } from 'vitest';
import { isProvable } from '../../../../src/library/token/claims.ts';

test.each([
  // The circuit has 165 characters for the claim, including `"iss":`, two quotes and a comma.
  ['issuer', 156],
  // The circuit has 145 characters for the value, including two quotes.
  ['clientId', 143],
] as const)('the %s that a proof can contain has at most %i characters', (name, maxLength) => {
  expect(isProvable[name]('a'.repeat(maxLength))).toBe(true);
  expect(isProvable[name]('a'.repeat(maxLength + 1))).toBe(false);
  expect(isProvable[name]('')).toBe(false);
  expect(isProvable[name]('a"b')).toBe(false);
});
