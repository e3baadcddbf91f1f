import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawChart } from '../../../../scripts/check/bench/chart.ts';
import { compareRates } from '../../../../scripts/check/bench/servers.ts';
import { type Comparison, formatTable, isMet, toRows } from '../../../../scripts/check/bench/table.ts';

const share: Comparison = {
  name: 'warm',
  floorName: 'echo',
  unit: '/s',
  ours: 5500,
  floor: 10_000,
  ratio: 0.55,
  p99: { ours: 3.5, floor: 2 },
  cpu: { ours: 60.4, floor: 30 },
  target: { of: 'ratio', bound: 'at least', value: 0.55 },
};
const memory: Comparison = {
  name: 'memory',
  floorName: 'echo',
  unit: 'MB',
  ours: 181,
  floor: 60,
  ratio: 3,
  target: { of: 'ours', bound: 'at most', value: 180 },
};

describe('a target', () => {
  test('is met at its bound, and not beyond', () => {
    expect(isMet(share)).toBe(true);
    expect(isMet({ ...share, ratio: 0.549 })).toBe(false);
    expect(isMet({ ...memory, ours: 180 })).toBe(true);
    expect(isMet(memory)).toBe(false);
  });

  test('of our own figure does not depend on the ratio', () => {
    expect(isMet({ ...memory, ratio: 1 })).toBe(false);
  });

  test('may be missing', () => {
    const { target: _, ...withoutTarget } = share;
    expect(isMet(withoutTarget)).toBeUndefined();
    expect(toRows([withoutTarget])).toMatchObject({ warm: { target: '', met: '' } });
  });
});

test('a row shows ours, the floor, the target and whether it is met', () => {
  expect(toRows([share, memory])).toEqual({
    warm: {
      ours: '5500/s',
      floor: '10000/s echo',
      ratio: '0.55',
      target: 'at least 0.55',
      met: 'yes',
      'p99 ms': '3.5 / 2.0',
      'CPU µs': '60 / 30',
    },
    memory: {
      ours: '181 MB',
      floor: '60 MB echo',
      ratio: '3.00',
      target: 'at most 180 MB',
      met: 'no',
      'p99 ms': '',
      'CPU µs': '',
    },
  });
  expect(formatTable(toRows([share, memory]))).toContain('5500/s');
});

test('turns are compared by the median of their ratios, which a slow moment of the machine does not change', () => {
  const cost = (perSecond: number) => ({ perSecond, p99: Number.NaN, cpu: 1 });
  const turns = [
    { ours: cost(50), floor: cost(100) },
    { ours: cost(5), floor: cost(10) },
    { ours: cost(1), floor: cost(100) },
  ];
  const compared = compareRates({ name: 'warm', floorName: 'echo' }, turns, 0.5);
  expect(compared).toMatchObject({ ours: 5, floor: 100, ratio: 0.5 });
  // Without connections, a floor has no latency.
  expect(compared).not.toHaveProperty('p99');
  expect(isMet(compared)).toBe(true);
});

describe('the chart', () => {
  test('has a bar for each comparison, coloured by its target', () => {
    const svg = drawChart('Load from wrk', [share, memory]);
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 \d+ \d+"/);
    for (const text of ['Load from wrk', 'warm', 'memory', '0.55', '3.00'])
      expect(svg).toContain(`>${text}<`);
    expect(svg.match(/height="14" fill="#[0-9a-f]{6}"/g)).toHaveLength(2);
    // Only the ratio has a target mark in the chart.
    expect(svg.match(/width="2"/g)).toHaveLength(1);
  });

  test('stays within its frame and well-formed, with any names and ratios', () => {
    const ratio = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), ratio), { maxLength: 5 }), (ratios) => {
        const svg = drawChart(
          'a < b & c',
          ratios.map(([name, ratio]) => ({ ...share, name, ratio })),
        );
        const [, width = '0'] = /viewBox="0 0 (\d+)/.exec(svg) ?? [];
        for (const [, x = '', w = ''] of svg.matchAll(/<rect x="([\d.]+)" y="\d+" width="([\d.]+)"/g)) {
          expect(Number(x) + Number(w)).toBeLessThanOrEqual(Number(width));
        }
        expect(svg.replaceAll(/<[^<>]*>/g, '')).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
        expect(svg.match(/<text/g)?.length).toBe(svg.match(/<\/text>/g)?.length);
      }),
    );
  });
});
