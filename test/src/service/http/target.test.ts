import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { originForm } from '../../../../src/service/http/target.ts';

describe('a request target (RFC 9112, section 3.2)', () => {
  test.each([
    ['/', '/'],
    ['/livez?x=1&y[]=%00', '/livez?x=1&y[]=%00'],
    ['//host/path', '//host/path'],
    ['http://h', '/'],
    ['HTTP://h?x=1', '/?x=1'],
    ['https://[::1]:3000/livez?x', '/livez?x'],
    ['http://127.0.0.1:80/http://[', '/http://['],
  ])('%s is the path %s', (target, path) => {
    expect(originForm('GET', target)).toBe(path);
  });

  test.each([
    '',
    'livez',
    'h:80',
    '*',
    '/a b',
    '/a#b',
    '/é',
    '/\x7f',
    '?x',
    'http://',
    'http:///livez',
    'http://?x',
    'http://@',
    'http://[',
    'http://[::1',
    'http://[::1]x/',
    'http://a:b/livez?token=X',
    'http://user@h/',
    'http://u:p@h/',
    'http://h%/',
    'http://h/#',
    'ftp://h/',
    'http:/livez',
    'http:livez',
    'http://h:65536/',
    'http://a b/',
    'http://é/',
    'javascript:x',
  ])('%j is not a request target', (target) => {
    expect(originForm('GET', target)).toBeNull();
  });

  test('may be * only for OPTIONS', () => {
    expect(originForm('OPTIONS', '*')).toBe('*');
    expect(originForm('POST', '*')).toBeNull();
    expect(originForm(undefined, '*')).toBeNull();
  });

  test('becomes printable ASCII that starts with a slash, or is refused, without an exception', () => {
    const pieces = fc.constantFrom(
      'http://',
      'HTTPS://',
      '/',
      '[',
      ']',
      '@',
      ':',
      '?',
      '#',
      '%',
      'a',
      '*',
      '\\',
      ' ',
    );
    const target = fc.oneof(
      fc.string(),
      fc.webUrl(),
      fc.array(pieces).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(target, (text) => {
        const path = originForm('GET', text);
        expect(path === null || /^\/[!-~]*$/.test(path)).toBe(true);
        expect(path ?? '').not.toContain('#');
      }),
      { numRuns: 2000 },
    );
  });
});
