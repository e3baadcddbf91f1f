/** Tests which spellings denote the same place. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalPlace } from '../place.ts';

describe('canonicalPlace ignores', () => {
  test.each([
    ['case', 'LONDON', 'london'],
    ['case in another script', 'МОСКВА', 'москва'],
    ['white space around a name', ' \t\u00a0London\u3000\r\n', 'london'],
    ['the kind of white space within a name', 'New \u2003\n York', 'new york'],
    ['control characters between words', 'New\u0000York\u0085', 'new york'],
    ['zero-width characters', '\ufeffLon\u200b\u200c\u200d\u2060don', 'london'],
    ['soft hyphens', 'Lon\u00addon', 'london'],
    ['direction marks', '\u202eLondon\u202c\u200f', 'london'],
    ['variation selectors and tags', 'London\ufe0f\u{e0100}\u{e0041}', 'london'],
    ['full-width letters', 'Ｌｏｎｄｏｎ', 'london'],
    ['ligatures', 'Sheﬃeld', 'sheffield'],
    ['the way to write an accent', 'Zu\u0308rich', 'zürich'],
    ['the way to write an accent, with a joiner within', 'Zu\u034f\u0308rich', 'zürich'],
    ['the way to write a dotted capital I', 'i\u0307stanbul', '\u0130stanbul'],
    ['the case of an airport’s code', 'IATA:dxb', 'iata:DXB'],
    ['the case of a station’s code', 'Metar:egll', 'metar:EGLL'],
  ])('%s', (_title, spelling, place) => {
    expect(canonicalPlace(spelling)).toBe(place);
    expect(canonicalPlace(place)).toBe(place);
  });
});

test.each([
  ['an accent', 'Malmo', 'Malmö'],
  ['a dotless i', 'Kirikkale', 'Kırıkkale'],
  ['a dotted capital I', 'Istanbul', 'İstanbul'],
  ['a script', 'Москва', 'Mockba'],
  ['a script whose letter looks alike', 'Paris', 'Рaris'],
  ['a space', 'San Jose', 'Sanjose'],
  ['a number of a pair', '48.8,2.3', '48.82,3'],
  ['a sign', '48.8,2.3', '48.8,-2.3'],
  ['an ampersand', 'a&b', 'ab'],
  ['a fragment', 'a#b', 'a'],
  ['a percent sign', 'a%20b', 'a b'],
  ['a vowel sign', 'कि', 'क'],
])('canonicalPlace distinguishes places by %s: %s, %s', (_title, firstPlace, secondPlace) => {
  expect(canonicalPlace(firstPlace)).not.toBe(canonicalPlace(secondPlace));
});

test('canonicalPlace returns an empty string if all characters are invisible', () => {
  expect(canonicalPlace('\u200b\ufeff\u00ad\u2060 \u3164\u0000')).toBe('');
});

test('canonicalPlace is idempotent', () => {
  const isIdempotent = (text: string) => canonicalPlace(canonicalPlace(text)) === canonicalPlace(text);
  fc.assert(fc.property(fc.string({ unit: 'binary' }), isIdempotent), { numRuns: 2000 });
});

test('the fast path for plain ASCII returns the same form as the full normalisation', () => {
  const isSame = (text: string) => canonicalPlace(text) === canonicalPlace(`${text}\u200b`);
  const station = fc.stringMatching(/^(iata|metar|IATA):[a-zA-Z0-9]{2,5}$/);
  fc.assert(fc.property(fc.oneof(fc.string(), station), isSame), { numRuns: 1000 });
});

test('white space, invisible characters and ASCII case never change the place', () => {
  const invisible = fc.constantFrom('\u200b', '\u200d', '\ufeff', '\u00ad', '\u2060', '\ufe0f', '\u{e0020}');
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8})?$/), invisible, fc.nat(), (name, mark, at) => {
      const index = at % (name.length + 1);
      const spelling = ` ${name.slice(0, index)}${mark}${name.slice(index).toUpperCase()}  `;
      return canonicalPlace(spelling) === name;
    }),
  );
});
