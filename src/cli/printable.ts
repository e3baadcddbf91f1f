/** Texts of files, nodes and hosts, made safe for a terminal. */
import { quantity } from 'sui-enclave/wording';

const MAX_TEXT = 200;

/** An enemy's text for a terminal: on one line, bounded, and in printable ASCII alone. */
export function printable(text: string, max = MAX_TEXT): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.replace(/[^\x20-\x7e…]/g, escapeCharacter);
}

/** A text of lines, of which it keeps the first, cut to a length. It says how many it left out. */
export function boundLines(
  text: string,
  { lines: most, characters }: { readonly lines: number; readonly characters: number },
): string {
  const lines = text.split('\n');
  const kept = lines
    .slice(0, most)
    .map((line) => (line.length > characters ? `${line.slice(0, characters)}…` : line));
  return [
    ...kept,
    ...(lines.length > most ? [`… and ${quantity(lines.length - most, 'more line')}`] : []),
  ].join('\n');
}

/** Characters that a terminal would take for a command, or that hide or reorder text. */
const CONTROL = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The output of a command, in which part may come from outside. */
export function escapeControls(text: string): string {
  return text.replace(CONTROL, escapeCharacter);
}

/** The same for JSON, which stays JSON of the same value. */
export function escapeControlsInJson(json: string): string {
  return json.replace(CONTROL, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      const unit = character.charCodeAt(index).toString(16).padStart(4, '0');
      return `\\u${unit}`;
    }).join(''),
  );
}

function escapeCharacter(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
