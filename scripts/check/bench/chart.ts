/**
 * Draws the comparisons as an SVG of bars. Each bar shows our figure relative to its floor, with a mark for
 * the target.
 */
import type { Comparison } from './table.ts';
import { isMet } from './table.ts';

const NAMES = 330;
const BARS = 330;
const FIGURES = 70;
const LINE = 24;
const TOP = 44;
const WIDTH = NAMES + BARS + FIGURES;

const COLOURS = { true: '#2a7f4f', false: '#b3482f', undefined: '#5b6b7b' };

/** Returns the SVG. @param title the machine and the load */
export function drawChart(title: string, comparisons: readonly Comparison[]): string {
  // The floor has the length 1. A few ratios far above it must not make all other bars short.
  const maxRatio = Math.min(4, Math.max(1, ...comparisons.map(({ ratio }) => ratio)));
  const x = (ratio: number) => NAMES + (Math.min(ratio, maxRatio) / maxRatio) * BARS;
  const height = TOP + LINE * comparisons.length + 12;
  const floor = x(1).toFixed(1);
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    '<title>The benchmark: each figure as a multiple of its floor</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="10" y="18" font-weight="bold">${escapeXml(title)}</text>`,
    `<text x="${floor}" y="36" text-anchor="middle" fill="#555">floor</text>`,
    ...comparisons.flatMap((comparison, index) => drawBar(comparison, TOP + LINE * index, x)),
    `<line x1="${floor}" x2="${floor}" y1="${TOP - 4}" y2="${height - 8}" stroke="#555" stroke-dasharray="3 3"/>`,
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

function drawBar(comparison: Comparison, y: number, x: (ratio: number) => number): string[] {
  const { name, ratio, target } = comparison;
  const end = x(ratio);
  const marks =
    target?.of === 'ratio'
      ? [`<rect x="${(x(target.value) - 1).toFixed(1)}" y="${y}" width="2" height="18" fill="#000"/>`]
      : [];
  return [
    `<text x="${NAMES - 8}" y="${y + 13}" text-anchor="end">${escapeXml(name)}</text>`,
    `<rect x="${NAMES}" y="${y + 2}" width="${(end - NAMES).toFixed(1)}" height="14" fill="${COLOURS[`${isMet(comparison)}`]}"/>`,
    ...marks,
    `<text x="${(end + 6).toFixed(1)}" y="${y + 13}" stroke="#fff" stroke-width="3" paint-order="stroke">${ratio.toFixed(2)}</text>`,
  ];
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
