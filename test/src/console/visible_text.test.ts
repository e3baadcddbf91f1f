import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { visibleText } from '../../../src/console/lib/visible_text.ts';

describe('a foreign text', () => {
  test.each([
    ['line\nfeed', 'line\\u{a}feed'],
    ['\u001b[31mred', '\\u{1b}[31mred'],
    ['user\u202egpj.exe', 'user\\u{202e}gpj.exe'],
    ['\u2066isolated\u2069', '\\u{2066}isolated\\u{2069}'],
    ['zero\u200bwidth', 'zero\\u{200b}width'],
    ['no-break\u00a0space', 'no-break\\u{a0}space'],
    ['lone \ud800', 'lone \\u{d800}'],
    ['tag \u{e0041}', 'tag \\u{e0041}'],
    ['variation\ufe0f', 'variation\\u{fe0f}'],
    ['Grüße, 東京 🚀', 'Grüße, 東京 🚀'],
    ['<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
  ])('%j is shown as %j', (text, visible) => {
    expect(visibleText(text)).toBe(visible);
  });

  test('is bounded, and never cut in the middle of a character', () => {
    expect(visibleText('🚀'.repeat(20), 5)).toBe(`${'🚀'.repeat(5)}…`);
    expect(visibleText('a'.repeat(5), 5)).toBe('aaaaa');
    expect(visibleText('a'.repeat(10_000_000), 10)).toBe(`${'a'.repeat(10)}…`);
  });

  test('never contains characters that could hide or reorder it', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 30 }),
        fc.integer({ min: 1, max: 20 }),
        (text, max) => {
          const visible = visibleText(text, max);
          expect(visible).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
          expect(visible.length).toBeLessThanOrEqual(10 * max + 1);
        },
      ),
    );
  });
});
