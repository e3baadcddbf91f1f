import { ConfigError } from 'sui-enclave/errors';
import { describe, expect, test } from 'vitest';
import { parseSaltClients } from '../clients.ts';

const GOOGLE = 'https://accounts.google.com';
const MICROSOFT = 'https://login.microsoftonline.com/{tenantid}/v2.0';
const TENANT = 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0';
const entry = (issuer: string, client_id: string, more = {}) => ({ issuer, client_id, seed: 1, ...more });
const parse = (...entries: unknown[]) => parseSaltClients(JSON.stringify(entries));
const jwks_url = 'https://op.example/jwks';

describe('SALT_CLIENTS', () => {
  test('maps each issuer and client id to the version of its seed and the URL of its keys', () => {
    const clients = parse(entry(GOOGLE, 'a'), {
      issuer: 'https://op.example',
      client_id: 'b',
      seed: 2,
      jwks_url,
      presenters: ['c'],
    });
    expect(clients).toEqual([
      {
        issuer: GOOGLE,
        clientId: 'a',
        seed: 1,
        jwksUrl: new URL('https://www.googleapis.com/oauth2/v3/certs'),
        presenters: [],
      },
      { issuer: 'https://op.example', clientId: 'b', seed: 2, jwksUrl: new URL(jwks_url), presenters: ['c'] },
    ]);
  });

  test.each([
    [TENANT, 'https://login.microsoftonline.com/common/discovery/v2.0/keys'],
    [MICROSOFT, 'https://login.microsoftonline.com/common/discovery/v2.0/keys'],
    ['accounts.google.com', 'https://www.googleapis.com/oauth2/v3/certs'],
    ['https://www.facebook.com', 'https://www.facebook.com/.well-known/oauth/openid/jwks/'],
  ])('maps the issuer %s to the URL of its keys', (issuer, url) => {
    expect(parse(entry(issuer, 'a'))[0]?.jwksUrl.href).toBe(url);
  });

  test.each([
    ['is not JSON', '[{', /^SALT_CLIENTS is not JSON$/],
    ['is empty', '[]', /^SALT_CLIENTS, top level: must be an array/],
    ['is not an array', '{}', /^SALT_CLIENTS, top level/],
  ])('is rejected when it %s', (_title, json, message) => {
    expect(() => parseSaltClients(json)).toThrow(ConfigError);
    expect(() => parseSaltClients(json)).toThrow(message);
  });

  test.each([
    ['without a version', { issuer: GOOGLE, client_id: 'a' }, /^SALT_CLIENTS, 0.seed: must be/],
    ['with version 0', entry(GOOGLE, 'a', { seed: 0 }), /0.seed/],
    ['with a version as a string', entry(GOOGLE, 'a', { seed: '1' }), /0.seed/],
    ['without a client id', entry(GOOGLE, ''), /0.client_id/],
    ['with a client id that no proof can contain', entry(GOOGLE, 'a"b'), /0.client_id/],
    ['with a client id that is too long', entry(GOOGLE, 'a'.repeat(144)), /0.client_id/],
    ['with an issuer that is too long', entry('x'.repeat(157), 'a', { jwks_url }), /0.issuer/],
    ['with an empty list of presenters', entry(GOOGLE, 'a', { presenters: [] }), /0.presenters/],
    ['with a presenter that is not a string', entry(GOOGLE, 'a', { presenters: [5] }), /0.presenters.0/],
    ['with a presenter without a name', entry(GOOGLE, 'a', { presenters: [''] }), /0.presenters.0/],
    ['with a presenter twice', entry(GOOGLE, 'a', { presenters: ['b', 'b'] }), /0.presenters/],
    [
      'with a string instead of a list of presenters',
      entry(GOOGLE, 'a', { presenters: 'b' }),
      /0.presenters/,
    ],
    ['with an unknown property', entry(GOOGLE, 'a', { version: 1 }), /0.version/],
    ['of an unknown issuer without its keys', entry(`${GOOGLE}/`, 'a'), /entry 0: .* set jwks_url/],
    ['of an issuer like a tenant', entry(`${TENANT}x`, 'a'), /set jwks_url/],
    ['of a known issuer with keys elsewhere', entry(GOOGLE, 'a', { jwks_url }), /remove jwks_url/],
    ['of a tenant with keys elsewhere', entry(TENANT, 'a', { jwks_url }), /remove jwks_url/],
    ['with keys over http', entry('x', 'a', { jwks_url: 'http://op.example/jwks' }), /0.jwks_url/],
    ['with keys at a port', entry('x', 'a', { jwks_url: 'https://op.example:444/jwks' }), /0.jwks_url/],
    [
      'with two slashes in the URL of its keys',
      entry('x', 'a', { jwks_url: 'https://op.example//jwks' }),
      /0.jwks_url/,
    ],
    [
      'with a backslash in the URL of its keys',
      entry('x', 'a', { jwks_url: 'https://op.example/jwks?a\\b' }),
      /0.jwks_url/,
    ],
    [
      'with a user name in the URL of its keys',
      entry('x', 'a', { jwks_url: 'https://me@op.example/jwks' }),
      /0.jwks_url/,
    ],
  ])('is rejected with an entry %s', (_title, badEntry, message) => {
    expect(() => parse(badEntry)).toThrow(ConfigError);
    expect(() => parse(badEntry)).toThrow(message);
  });

  test.each([
    ['the same', entry(GOOGLE, 'a'), entry(GOOGLE, 'a')],
    ['the same but for the seed', entry(GOOGLE, 'a'), entry(GOOGLE, 'a', { seed: 2 })],
    ['the same in Google’s other spelling', entry(GOOGLE, 'a'), entry('accounts.google.com', 'a')],
    [
      'different, with the same concatenation',
      entry('https://op.example', '1a', { jwks_url }),
      entry('https://op.example1', 'a', { jwks_url }),
    ],
    ['all tenants, then one of them', entry(MICROSOFT, 'a'), entry(TENANT, 'a')],
    ['a tenant, then all tenants', entry(TENANT, 'a'), entry(MICROSOFT, 'a')],
    [
      'different, with the concatenation of a tenant',
      entry(MICROSOFT, 'xa'),
      entry(`${TENANT}x`, 'a', { jwks_url }),
    ],
  ])('is rejected with two entries: %s', (_title, firstEntry, secondEntry) => {
    expect(() => parse(entry(GOOGLE, 'between'), firstEntry, secondEntry)).toThrow(
      /^SALT_CLIENTS, entries 1 and 2: their issuers and client ids can have the same concatenation$/,
    );
  });

  test('rejects two URLs of keys for one issuer', () => {
    const otherUrl = 'https://other.example/jwks';
    expect(() => parse(entry('x', 'a', { jwks_url }), entry('x', 'b', { jwks_url: otherUrl }))).toThrow(
      /two different jwks_url/,
    );
  });

  test('accepts all tenants and a single tenant for different clients', () => {
    expect(parse(entry(MICROSOFT, 'a'), entry(TENANT, 'b'))).toHaveLength(2);
  });
});
