import { expect, test } from 'vitest';
import { tenthsPlus100000, wholeDegrees } from '../degrees.ts';

test.each([
  [100, 100n],
  [99.9, 99n],
  [0.4, 0n],
  [0, 0n],
  [-0, 0n],
])('%d °C in whole degrees is %d', (celsius, whole) => {
  expect(wholeDegrees(celsius)).toBe(whole);
});

test.each([-0.1, -0.4, -100])('%d °C has no form in whole degrees', (celsius) => {
  expect(() => wholeDegrees(celsius)).toThrow(
    expect.objectContaining({
      code: 'WEATHER_BELOW_ZERO',
      message: `the reading is ${celsius} °C, and the signed temperature can't be below 0`,
    }),
  );
});

test.each([
  [100, 101_000n],
  [13.9, 100_139n],
  [1.1, 100_011n],
  [0.04, 100_000n],
  [-0, 100_000n],
  [-0.04, 100_000n],
  [-0.4, 99_996n],
  [-67.7, 99_323n],
  [-100, 99_000n],
])('%d °C in tenths, plus 100000, is %d', (celsius, tenths) => {
  expect(tenthsPlus100000(celsius)).toBe(tenths);
});
