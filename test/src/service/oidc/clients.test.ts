import * as v from 'valibot';
import { expect, test } from 'vitest';
import { ConfigError } from '../../../../src/library/errors.ts';
import { clientEntry, parseClients } from '../../../../src/service/oidc/clients.ts';

const schema = v.strictObject(
  clientEntry({
    issuer: (value) => value.length <= 30,
    clientId: (value) => value.startsWith('client'),
  }),
);
const parse = (entry: object) => parseClients('CLIENTS', JSON.stringify([entry]), schema, 'a shape');
const ENTRY = {
  issuer: 'https://issuer.example',
  client_id: 'client-1',
  jwks_url: 'https://issuer.example/keys',
};

test('a service defines which issuers and client ids it can use', () => {
  expect(parse(ENTRY)).toMatchObject([
    { client: { issuer: 'https://issuer.example', clientId: 'client-1', presenters: [] } },
  ]);
});

test.each([
  ['issuer', `https://${'i'.repeat(30)}.example`],
  ['client_id', 'other-1'],
])('an entry with another %s is refused by an error that names it', (name, value) => {
  const parseEntry = () => parse({ ...ENTRY, [name]: value });
  expect(parseEntry).toThrow(ConfigError);
  expect(parseEntry).toThrow(new RegExp(`^CLIENTS, 0\\.${name}: must be an array of a shape`));
});
