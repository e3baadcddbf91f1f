/** What of a token Sui's zkLogin circuit can take. Shared by the wallet's flow and the salt service. */

/** Sizes in characters; values are counted with their two quotes, extended claims through the `,` or `}` after them. */
export interface Profile {
  readonly name: string;
  readonly header: number;
  /** Header, dot, payload and SHA-256 padding. */
  readonly paddedUnsignedJwt: number;
  /** The name of the claim that stands for the user, with its quotes. */
  readonly keyClaimName: number;
  readonly subject: number;
  readonly audience: number;
  readonly extendedSubject: number;
  readonly extendedAudience: number;
  readonly extendedNonce: number;
  /** As the token writes it, escapes included. */
  readonly extendedIssuer: number;
  /** The base64 characters that hold it. */
  readonly issuerBase64: number;
  /** White space within one claim, except the issuer. */
  readonly whiteSpace: number;
}

/** The circuit in use on every network. */
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
 * Why the circuit can't take a claim's value, or null. It hashes the token's bytes as they are, so that a
 * value that JSON writes with an escape would give another address than its decoded text does.
 *
 * @param maxQuoted characters with both quotes
 */
export function valueFault(value: string, maxQuoted: number): string | null {
  if (value === '') return 'is empty';
  if (!/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(value)) {
    return 'has a character other than printable ASCII without " and \\';
  }
  if (value.length + 2 > maxQuoted) return `is longer than ${maxQuoted - 2} characters`;
  return null;
}
