/**
 * The limits that Sui's zkLogin circuit puts on a token. The wallet's flow and the salt service share them.
 */

/**
 * Maximum sizes in characters. Sizes of values include the two quotes. Sizes of extended claims include the
 * `,` or `}` after the claim.
 */
export interface Profile {
  /** Name of the profile in error messages, such as `sui-v1`. */
  readonly name: string;
  /** Size of the token's header, in base64url. */
  readonly header: number;
  /** Size of header, dot, payload and SHA-256 padding. */
  readonly paddedUnsignedJwt: number;
  /** Size of the name of the claim that identifies the user, with its quotes. */
  readonly keyClaimName: number;
  /** Size of the value of the claim that identifies the user. */
  readonly subject: number;
  /** Size of the client id, the value of `aud`. */
  readonly audience: number;
  /** Size of the whole claim that identifies the user, name included. */
  readonly extendedSubject: number;
  /** Size of the whole claim `aud`, name included. */
  readonly extendedAudience: number;
  /** Size of the whole claim `nonce`, name included. */
  readonly extendedNonce: number;
  /** Size of the claim `iss` as written in the token, escapes included. */
  readonly extendedIssuer: number;
  /** Number of base64 characters that contain the issuer. */
  readonly issuerBase64: number;
  /** Number of white space characters within one claim other than the issuer. */
  readonly whiteSpace: number;
}

/** The limits of the circuit that is in use on every network. */
export const SUI_V1: Profile = {
  name: 'sui-v1',
  header: 248,
  paddedUnsignedJwt: 64 * 25,
  keyClaimName: 32,
  subject: 115,
  audience: 145,
  extendedSubject: 126,
  extendedAudience: 160,
  extendedNonce: 44,
  extendedIssuer: 165,
  issuerBase64: 224,
  whiteSpace: 6,
};

/**
 * Returns why the circuit can't process the value of a claim, or null if it can. The circuit hashes the bytes
 * of the token, so a value that JSON writes with an escape would not give the address of the decoded string.
 *
 * @param maxQuoted maximum length in characters, with both quotes
 */
export function valueFault(value: string, maxQuoted: number): string | null {
  if (value === '') return 'is empty';
  if (!/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(value)) {
    return 'has a quote, a backslash, or a character that is not printable ASCII';
  }
  if (value.length + 2 > maxQuoted) return `is longer than ${maxQuoted - 2} characters`;
  return null;
}

/** Functions that return whether a proof can contain an issuer or a client id. */
export const isProvable = {
  issuer: (value: string) => valueFault(value, SUI_V1.extendedIssuer - '"iss":,'.length) === null,
  clientId: (value: string) => valueFault(value, SUI_V1.audience) === null,
};
