import { describe, expect, test } from 'vitest';
import { isIssuedBy, MICROSOFT_ISSUER, normalizeIssuer } from '../../../../src/library/token/issuer.ts';

const GOOGLE = 'https://accounts.google.com';
const TID = '9188040d-6c67-4c5b-b112-36a304b66dad';
const TENANT = `https://login.microsoftonline.com/${TID}/v2.0`;

test('only Google’s two spellings are normalised to one issuer', () => {
  expect(normalizeIssuer('accounts.google.com')).toBe(GOOGLE);
  for (const issuer of [GOOGLE, 'accounts.google.com/', 'Accounts.google.com', '', TENANT]) {
    expect(normalizeIssuer(issuer)).toBe(issuer);
  }
});

describe('isIssuedBy returns whether a token is from', () => {
  test.each([
    [GOOGLE, { iss: GOOGLE }, true],
    [GOOGLE, { iss: 'accounts.google.com' }, true],
    [GOOGLE, { iss: `${GOOGLE}/` }, false],
    [GOOGLE, { iss: `${GOOGLE}.evil.example` }, false],
    [MICROSOFT_ISSUER, { iss: TENANT, tid: TID }, true],
    [MICROSOFT_ISSUER, { iss: TENANT }, false],
    [MICROSOFT_ISSUER, { iss: TENANT, tid: [TID] }, false],
    [MICROSOFT_ISSUER, { iss: MICROSOFT_ISSUER, tid: '{tenantid}' }, false],
    [MICROSOFT_ISSUER, { iss: `${TENANT}\n`, tid: TID }, false],
    [MICROSOFT_ISSUER, { iss: GOOGLE, tid: TID }, false],
    [TENANT, { iss: TENANT, tid: TID }, true],
    [TENANT, { iss: TENANT, tid: 'other' }, false],
  ])('%s with %o: %s', (expected, claims, isIssued) => {
    expect(isIssuedBy(expected, claims)).toBe(isIssued);
  });
});
