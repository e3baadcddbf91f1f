/** Normalises the spelling of a place. */

/** White space and control characters, which only separate words. */
const SPACE = /[\p{White_Space}\p{Cc}]+/gu;
/**
 * Invisible characters without width, such as joiners, soft hyphens and direction marks (Unicode, UAX #44).
 */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\u{fff9}-\u{fffb}]/gu;
/** Printable ASCII with single spaces between the words: only its case may have to change. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;
/** Codes of airports and stations, which the service writes in upper case. */
const STATION = /^(iata|metar):([a-z0-9]{3,4})$/;

/**
 * Returns the common form of all spellings that differ in case, white space, invisible characters or
 * compatibility forms (NFKC: full-width letters, ligatures). Accents and scripts stay, since they
 * distinguish places. The request to the service has this form, so that all spellings get the same answer.
 * Otherwise, the service could take two spellings for different places that this server takes for one.
 *
 * @returns the canonical form; may be empty
 */
export function canonicalPlace(location: string): string {
  const lower = PLAIN.test(location) ? location.toLowerCase() : canonicalText(location);
  return lower.replace(STATION, (_, kind, code) => `${kind}:${code.toUpperCase()}`);
}

function canonicalText(location: string): string {
  return (
    location
      .replace(INVISIBLE, '')
      .normalize('NFKC')
      .toLowerCase()
      // U+0130, the initial of İstanbul, becomes two characters in lower case: recombine them.
      .replaceAll('i\u0307', '\u0130')
      .normalize('NFKC')
      .replace(SPACE, ' ')
      .trim()
  );
}
