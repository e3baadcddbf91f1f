/**
 * Parses JSON whose property names may be escaped. V8 misreads such names (https://crbug.com/521080746, in
 * Node 22 to 26): after `{"a":1,"\\":2}`, it reads the name `"\n"` of another text as `"\\"`. By this, a
 * caller could change what the same process reads from an upstream. Names without escapes are not affected.
 * Browser-safe.
 */

/** Matches up to the end of the next string, and the colon after it, which makes the string a name. */
const NEXT_STRING = /([^"]*)("[^"\\]*(?:\\.[^"\\]*)*")([ \t\n\r]*:)?/sy;
const ESCAPE = /\\(?:u([\da-fA-F]{4})|(.))/gs;

/** Message of the error for such a name. The messages of other errors may quote the text. */
export const UNREADABLE_NAME = 'a property name has a quote, a backslash or a control character';

/**
 * Parses JSON as `JSON.parse` does, but refuses a property name with a quote, a backslash or a control
 * character, which can only be written by an escape.
 *
 * @param reviver as for `JSON.parse`
 * @throws SyntaxError
 */
export function parseJsonText(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
  return JSON.parse(text.includes('\\') ? unescapeNames(text) : text, reviver);
}

/** Leaves everything else unchanged, so that a text that is not JSON remains so. @throws SyntaxError */
function unescapeNames(text: string): string {
  let [unescaped, from] = ['', 0];
  for (;;) {
    NEXT_STRING.lastIndex = from;
    const [part, before = '', string = '', colon] = NEXT_STRING.exec(text) ?? [];
    if (part === undefined) return unescaped + text.slice(from);
    unescaped += colon === undefined ? part : before + string.replace(ESCAPE, unescapeCharacter) + colon;
    from += part.length;
  }
}

/** Returns an invalid escape unchanged. @throws SyntaxError */
function unescapeCharacter(sequence: string, code: string | undefined, letter: string | undefined): string {
  if (letter === '/') return letter;
  if (letter !== undefined && !'"\\bfnrt'.includes(letter)) return sequence;
  const character = code === undefined ? '' : String.fromCharCode(Number.parseInt(code, 16));
  if (character < ' ' || character === '"' || character === '\\') throw new SyntaxError(UNREADABLE_NAME);
  return character;
}
