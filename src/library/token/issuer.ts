/** Compares issuers of tokens exactly. The wallet's flow and the salt service share this module. */

/** The issuer in Microsoft's discovery document: `{tenantid}` is a placeholder for the GUID of a tenant. */
export const MICROSOFT_ISSUER = 'https://login.microsoftonline.com/{tenantid}/v2.0';

const MICROSOFT_TENANT =
  /^https:\/\/login\.microsoftonline\.com\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\/v2\.0$/;

/** Returns the issuer as in Sui's address derivation, which treats both of Google's spellings as one. */
export function normalizeIssuer(issuer: string): string {
  return issuer === 'accounts.google.com' ? 'https://accounts.google.com' : issuer;
}

/**
 * Returns whether a token is from the expected issuer. The comparison is exact, except for Google's two
 * spellings.
 *
 * @param expected an issuer, or MICROSOFT_ISSUER for every tenant
 * @param claims `iss`, and for Microsoft `tid`, which must be the GUID in `iss`
 */
export function isIssuedBy(
  expected: string,
  claims: { readonly iss: string; readonly tid?: unknown },
): boolean {
  const tenant = MICROSOFT_TENANT.exec(claims.iss)?.[1];
  if (tenant !== undefined && tenant !== claims.tid) return false;
  if (expected === MICROSOFT_ISSUER) return tenant !== undefined;
  return normalizeIssuer(expected) === normalizeIssuer(claims.iss);
}
