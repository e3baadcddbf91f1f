/** Which place is meant, however it is spelled. */

/** White space and control characters, which separate words at most. */
const SPACE = /[\p{White_Space}\p{Cc}]+/gu;
/** What is not seen and has no width, such as a joiner, a soft hyphen or a mark of direction (Unicode, UAX #44). */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\u{fff9}-\u{fffb}]/gu;
/** The service writes the codes of airports and stations in upper case. */
const STATION = /^(iata|metar):([a-z0-9]{3,4})$/;

/**
 * One text for all spellings of a place that differ in case, white space, invisible characters or compatibility
 * forms (NFKC: full-width letters, ligatures). Accents and scripts stay, since they name other places. It is
 * what the service is asked for: what it answers to one spelling is then what it answers to all of them, so
 * that nobody can have it answer for a place by a spelling that only the service takes for another.
 *
 * @returns the text, empty where none is left
 */
export function canonicalPlace(location: string): string {
  return (
    location
      .replace(INVISIBLE, '')
      .normalize('NFKC')
      .toLowerCase()
      // The lower case of U+0130, which begins İstanbul, is two characters, and one is another letter.
      .replaceAll('i\u0307', '\u0130')
      .normalize('NFKC')
      .replace(SPACE, ' ')
      .trim()
      .replace(STATION, (_, kind, code) => `${kind}:${code.toUpperCase()}`)
  );
}
