import { describe, expect, test } from 'vitest';
import { linkTo, readRoute } from '../../../src/console/lib/route.ts';

describe('a link', () => {
  test('names the view and fills its fields in', () => {
    expect(readRoute('#/enclave?url=https%3A%2F%2Fa.example&config=0x1')).toEqual({
      view: 'enclave',
      fields: { url: 'https://a.example', config: '0x1' },
    });
  });

  test.each(['', '#', '#/', '#/nowhere', '#/enclave/../chain', '#enclave\u202e'])(
    'to %j shows the first view',
    (hash) => {
      expect(readRoute(hash)).toEqual({ view: 'enclave', fields: {} });
    },
  );

  test.each(['root=x', 'roots=x', 'pcrs=x', 'images=x', '__proto__=x', 'policy=x'])(
    'sets nothing that decides whom to trust: %s',
    (query) => {
      expect(readRoute(`#/enclave?${query}`).fields).toEqual({});
    },
  );

  test('leaves a field empty that occurs twice or is too long', () => {
    expect(readRoute('#/enclave?url=https://a&url=https://b').fields).toEqual({});
    expect(readRoute(`#/enclave?url=${'a'.repeat(2049)}`).fields).toEqual({});
    expect(readRoute(`#/enclave?url=${'a'.repeat(2048)}`).fields['url']).toHaveLength(2048);
  });

  test('to another view keeps the fields, and leaves empty ones out', () => {
    const { fields } = readRoute('#/call?url=https%3A%2F%2Fa.example&node=https%3A%2F%2Fn.example&id=0x5');
    expect(linkTo('chain', { ...fields, config: '' })).toBe(
      '#/chain?url=https%3A%2F%2Fa.example&node=https%3A%2F%2Fn.example&id=0x5',
    );
  });

  test('is read back as it was written', () => {
    const fields = { url: 'https://a.example/?x=#y&z', node: 'http://[::1]:9000' };
    expect(readRoute(linkTo('enclave', fields))).toEqual({ view: 'enclave', fields });
  });
});
