/** The number of letters to insert, remove or replace between two words. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** Asks in parentheses whether a name was meant that is close to the word; otherwise says nothing. */
export function suggestion(word: string, names: readonly string[]): string {
  const near = names.filter((name) => distance(word, name) <= Math.min(2, word.length / 3));
  return near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`;
}
