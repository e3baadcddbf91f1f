/** `npm run board`: writes the board for Grafana from its panels in the code. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { command, runAsProcess } from '../../src/cli/command.ts';
import { formatBoard } from './observe_board.ts';

const FILE = 'deploy/observe/board.json';

export const main = command({
  name: 'board',
  program: 'npm run board --',
  purpose: `Writes the board for Grafana, ${FILE}, from its panels in scripts/docs/observe_board.ts.`,
  arguments: {},
  options: {},
  run() {
    writeFileSync(fileURLToPath(new URL(`../../${FILE}`, import.meta.url)), formatBoard());
    return { json: { file: FILE }, text: FILE };
  },
});

if (import.meta.main) await runAsProcess(main);
