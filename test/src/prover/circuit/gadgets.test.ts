/** Tests the lemmas of the static check exhaustively. */
import { expect, test } from 'vitest';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Base64Char of base64.circom, term by term. */
function base64Char(sextet: number): number {
  const [b0, b1, b2, b3, b4, b5] = Array.from({ length: 6 }, (_, k) => (sextet >> k) & 1) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const from26to31 = b4 * b3 * (b2 + b1 - b2 * b1);
  const atLeast26 = b5 + from26to31 - b5 * from26to31;
  const atLeast52 = b5 * b4 * (b3 + b2 - b3 * b2);
  const atLeast62 = b5 * b4 * b3 * b2 * b1;
  return 65 + sextet + 6 * atLeast26 - 75 * atLeast52 - 13 * atLeast62 + 49 * atLeast62 * b0;
}

test('Base64Char has the alphabet of RFC 4648, section 5, so that no two sextets share a character', () => {
  const chars = Array.from({ length: 64 }, (_, sextet) => base64Char(sextet));
  expect(String.fromCharCode(...chars)).toBe(ALPHABET);
});

test('Below: bits as steps and the stated number of ones leave one choice', () => {
  const n = 6;
  const choices = Array.from({ length: 2 ** (n + 1) }, (_, code) =>
    Array.from({ length: n + 1 }, (_, i) => (code >> i) & 1),
  )
    // below[i] is 1 less the steps up to i; the last step goes down to 0.
    .map((steps) => ({
      below: steps.slice(0, n).map((_, i) => 1 - sum(steps.slice(0, i + 1))),
      rest: 1 - sum(steps),
    }))
    .filter(({ rest }) => rest === 0);
  const lengths = choices.map(({ below }) => sum(below));
  expect(lengths.sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0);
