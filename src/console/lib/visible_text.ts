/**
 * Makes a text from an enclave or a node safe to read. Escapes control, format and private characters, lone
 * surrogates and line ends, since they could hide or reorder the text around them. React escapes the rest.
 */
export function visibleText(text: string, maxLength = 300): string {
  const characters = [...text.slice(0, 4 * maxLength)];
  const shortened = characters.slice(0, maxLength).map(escapeInvisible).join('');
  return characters.length > maxLength || text.length > 4 * maxLength ? `${shortened}…` : shortened;
}

/**
 * Matches characters of the general category C, separators of lines and paragraphs, and characters that look
 * blank.
 */
const INVISIBLE =
  /[\p{C}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u2000-\u200a\u202f\u205f\u3000\u3164\uffa0]|[\ufe00-\ufe0f]/u;

function escapeInvisible(character: string): string {
  if (!INVISIBLE.test(character)) return character;
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
