/**
 * Returns the distance of two words: the number of letters to insert, remove, replace or swap with the next
 * letter (optimal string alignment).
 */
function distance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const get = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= from.length; row += 1) {
    rows.push([row]);
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      rows[row]?.push(
        Math.min(
          get(row - 1, column) + 1,
          get(row, column - 1) + 1,
          get(row - 1, column - 1) + (isSame ? 0 : 1),
          isSwapped ? get(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return get(from.length, to.length);
}

/** Returns a question in parentheses that suggests the names close to the word; empty if none is close. */
export function suggestion(word: string, names: readonly string[]): string {
  const closeNames = names.filter((name) => distance(word, name) <= Math.min(2, word.length / 3));
  return closeNames.length === 0 ? '' : ` (did you mean ${closeNames.join(' or ')}?)`;
}
