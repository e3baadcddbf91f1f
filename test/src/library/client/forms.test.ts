import fc from 'fast-check';
import { expect, test } from 'vitest';
import { listForms } from './forms.ts';

test('listForms finds a secret in hexadecimal and base64, whatever bytes surround it', () => {
  const encoding = fc.constantFrom('latin1', 'hex', 'base64', 'base64url');
  const secret = fc.uint8Array({ minLength: 16, maxLength: 40 });
  const garbage = fc.uint8Array({ maxLength: 10 });
  fc.assert(
    fc.property(garbage, secret, garbage, encoding, (prefix, bytes, suffix, form) => {
      const record = Buffer.from(Buffer.concat([prefix, bytes, suffix]).toString(form), 'latin1');
      expect(listForms(bytes).some((form) => record.includes(form))).toBe(true);
    }),
  );
});
