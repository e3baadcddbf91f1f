/**
 * Creates the request with the largest input of the full circuit: each part has the maximum length that the
 * profile allows.
 */

import type { ProofRequest } from '../../../src/library/zklogin/services.ts';
import type { SigningKey } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import { CLAIMS, OUR_KEY, requestFor, signToken } from '../../src/prover/support.ts';

/** Filler whose base64 consists of characters with codes of three digits. */
const FILLER = '~hg';
const BLOCK = 64;
/** Maximum length of the unsigned token, in bytes: SHA-256's padding adds at least 9. */
const MAX_UNSIGNED = BLOCK * PROFILES.full.blocks - 9;

const fill = (length: number, shift: number) => FILLER.repeat(length).slice(shift, shift + length);

/** Returns the longest filler with which the base64 of the text has at most `max` characters. */
function findLongestFiller(max: number, format: (filler: string) => string, shift: number): string {
  const fits = (length: number) => Math.ceil((Buffer.byteLength(format(fill(length, shift))) * 4) / 3) <= max;
  let length = 0;
  while (fits(length + 1)) length++;
  return fill(length, shift);
}

export function createLargestRequest(): { request: ProofRequest; key: SigningKey } {
  const candidates = [0, 1, 2].map((shift) => {
    const createHeader = (kid: string) => ({ alg: 'RS256', kid, typ: 'JWT' });
    const kid = findLongestFiller(
      PROFILES.full.header,
      (filler) => JSON.stringify(createHeader(filler)),
      shift,
    );
    const header = createHeader(kid);
    const formatPayload = (filler: string) =>
      JSON.stringify({
        ...CLAIMS,
        aud: 'z'.repeat(143),
        email: 'z'.repeat(113),
        email_verified: true,
        filler,
      });
    const headerSize = Buffer.from(JSON.stringify(header)).toString('base64url').length;
    const filler = findLongestFiller(MAX_UNSIGNED - headerSize - 1, formatPayload, shift);
    return signToken(formatPayload(filler), header);
  });
  const digits = (jwt: string) => Array.from(Buffer.from(jwt), String).join('').length;
  const [jwt = ''] = candidates.sort((a, b) => digits(b) - digits(a));
  return { request: requestFor(jwt, { keyClaimName: 'email' }), key: OUR_KEY };
}
