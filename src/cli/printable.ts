/** Texts of files, nodes and hosts, made safe for a terminal. */
import { quantity } from 'sui-enclave/wording';

const MAX_TEXT = 200;

/** Makes an enemy's text safe for a terminal: one line of bounded length, with printable ASCII only. */
export function printable(text: string, max = MAX_TEXT): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.replace(/[^\x20-\x7e…]/g, escapeCharacter);
}

/** Keeps the first lines of a text, each cut to a length, and says how many lines it left out. */
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

/** Escapes control characters in the output of a command, parts of which may come from outside. */
export function escapeControls(text: string): string {
  return text.replace(CONTROL, escapeCharacter);
}

/** Does the same for JSON, which keeps its value. */
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
