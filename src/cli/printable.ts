/** Makes texts of files, nodes and hosts safe for a terminal. */
import { quantity } from 'sui-enclave/wording';

const MAX_TEXT = 200;

/** Makes an untrusted text safe for a terminal: one line of bounded length, with printable ASCII only. */
export function printable(text: string, max = MAX_TEXT): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.replace(/[^\x20-\x7e…]/g, escapeCharacter);
}

/** Returns the first lines of a text, each cut to a length, and then the number of lines that follow. */
export function boundLines(
  text: string,
  { lines: maxLines, characters }: { readonly lines: number; readonly characters: number },
): string {
  const lines = text.split('\n');
  const firstLines = lines
    .slice(0, maxLines)
    .map((line) => (line.length > characters ? `${line.slice(0, characters)}…` : line));
  return [
    ...firstLines,
    ...(lines.length > maxLines ? [`… and ${quantity(lines.length - maxLines, 'more line')}`] : []),
  ].join('\n');
}

/** Characters that a terminal would take for a command, or that hide or reorder text. */
const CONTROL = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Escapes control characters in the output of a command, parts of which may come from outside. */
export function escapeControls(text: string): string {
  return text.replace(CONTROL, escapeCharacter);
}

/** Escapes control characters in JSON by its own escapes, so that the value stays the same. */
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
