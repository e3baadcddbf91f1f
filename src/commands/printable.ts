/** Texts of files, nodes and hosts, made safe for a terminal. */

const MAX_TEXT = 200;

/** An enemy's text for a terminal: on one line, bounded, and in printable ASCII alone. */
export function printable(text: string, max = MAX_TEXT): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.replace(/[^\x20-\x7e…]/g, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
