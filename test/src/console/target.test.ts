import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../../src/console/lib/target.ts';

describe('an address', () => {
  test.each([
    ['https://enclave.example', 'https://enclave.example/', 'enclave.example'],
    [' http://127.0.0.1:3000 ', 'http://127.0.0.1:3000/', '127.0.0.1:3000'],
    ['https://a.example/path?query#fragment', 'https://a.example/path/', 'a.example'],
    // The host is as the browser reads the text, so the button names the real target of the request.
    ['https://аpple.example', 'https://xn--pple-43d.example/', 'xn--pple-43d.example'],
    ['https://a.example\\@b.example', 'https://a.example/@b.example/', 'a.example'],
  ])('%j is read as %s', (text, href, host) => {
    const target = parseTarget(text);
    expect('url' in target && [target.url.href, target.host]).toEqual([href, host]);
  });

  test.each([
    ['javascript:alert(1)', /not javascript:/],
    ['data:text/html,x', /not data:/],
    ['file:///etc/passwd', /not file:/],
    ['blob:https://a.example/x', /not blob:/],
    ['ws://a.example', /not ws:/],
    ['https://bank.example@evil.example', /user name/],
    ['https://:secret@evil.example', /user name/],
    ['', /full address/],
    ['enclave.example', /full address/],
    ['//enclave.example', /full address/],
    [`https://${'a'.repeat(3000)}`, /too long/],
  ])('%j is refused', (text, reason) => {
    const target = parseTarget(text);
    expect('refused' in target && target.refused).toMatch(reason);
  });
});
