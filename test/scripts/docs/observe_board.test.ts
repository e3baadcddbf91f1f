/** Checks that the board that operators load is the one that the code generates. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BOARD, formatBoard } from '../../../scripts/docs/observe_board.ts';

const FILE = new URL('../../../deploy/observe/board.json', import.meta.url);

test('deploy/observe/board.json is as `npm run board` writes it (scripts/docs/board.ts)', () => {
  expect(readFileSync(FILE, 'utf8') === formatBoard(), 'it is out of date: run npm run board').toBe(true);
});

test('the board has every panel with its expressions, from the data source that the operator chooses', () => {
  const { panels } = JSON.parse(readFileSync(FILE, 'utf8')) as {
    panels: { title: string; type: string; datasource?: { uid: string }; targets?: { expr: string }[] }[];
  };
  const drawn = panels.filter(({ type }) => type !== 'row');
  expect(drawn.map(({ title, targets = [] }) => [title, targets.map(({ expr }) => expr)])).toEqual(
    Object.values(BOARD).flatMap((row) =>
      row.map(({ title, expressions }) => [title, Object.values(expressions)]),
    ),
  );
  for (const { datasource } of drawn) expect(datasource?.uid).toMatch(/^\$\{source\}$/);
});
