/** Tests which spellings denote the same place. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalPlace } from '../place.ts';

describe('the same place despite its', () => {
  test.each([
    ['case', 'LONDON', 'london'],
    ['case in another script', 'МОСКВА', 'москва'],
    ['white space around', ' \t\u00a0London\u3000\r\n', 'london'],
    ['white space within', 'New \u2003\n York', 'new york'],
    ['control characters', 'New\u0000York\u0085', 'new york'],
    ['zero-width characters', '\ufeffLon\u200b\u200c\u200d\u2060don', 'london'],
    ['soft hyphens', 'Lon\u00addon', 'london'],
    ['marks of direction', '\u202eLondon\u202c\u200f', 'london'],
    ['variation selectors and tags', 'London\ufe0f\u{e0100}\u{e0041}', 'london'],
    ['full-width letters', 'Ｌｏｎｄｏｎ', 'london'],
    ['ligatures', 'Sheﬃeld', 'sheffield'],
    ['way to write an accent', 'Zu\u0308rich', 'zürich'],
    ['way to write an accent, taken apart', 'Zu\u034f\u0308rich', 'zürich'],
    ['dotted capital I', 'i\u0307stanbul', '\u0130stanbul'],
    ['case of an airport’s code', 'IATA:dxb', 'iata:DXB'],
    ['case of a station’s code', 'Metar:egll', 'metar:EGLL'],
  ])('%s', (_what, spelling, place) => {
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
])('%s denotes another place: %s, %s', (_what, firstPlace, secondPlace) => {
  expect(canonicalPlace(firstPlace)).not.toBe(canonicalPlace(secondPlace));
});

test('invisible characters do not denote a place', () => {
  expect(canonicalPlace('\u200b\ufeff\u00ad\u2060 \u3164\u0000')).toBe('');
});

test('canonicalPlace is idempotent', () => {
  const once = (text: string) => canonicalPlace(canonicalPlace(text)) === canonicalPlace(text);
  fc.assert(fc.property(fc.string({ unit: 'binary' }), once), { numRuns: 2000 });
});

test('plain ASCII has the same form as with an invisible character, which needs the slower normalisation', () => {
  const isSame = (text: string) => canonicalPlace(text) === canonicalPlace(`${text}\u200b`);
  const station = fc.stringMatching(/^(iata|metar|IATA):[a-zA-Z0-9]{2,5}$/);
  fc.assert(fc.property(fc.oneof(fc.string(), station), isSame), { numRuns: 1000 });
});

test('white space, invisible characters and ASCII case never change the place', () => {
  const invisible = fc.constantFrom('\u200b', '\u200d', '\ufeff', '\u00ad', '\u2060', '\ufe0f', '\u{e0020}');
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8})?$/), invisible, fc.nat(), (name, mark, at) => {
      const index = at % (name.length + 1);
      const changed = ` ${name.slice(0, index)}${mark}${name.slice(index).toUpperCase()}  `;
      return canonicalPlace(changed) === name;
    }),
  );
});
