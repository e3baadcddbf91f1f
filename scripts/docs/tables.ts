/** `npm run tables`: writes the tables of settings and errors in the READMEs, from the tables in the code. */
import { command, runAsProcess } from '../../src/cli/command.ts';
import { writeTables } from './page_tables.ts';

export const main = command({
  name: 'tables',
  program: 'npm run tables --',
  purpose:
    'Writes the tables of settings and errors into the READMEs, between their markers, from the tables in the code. Prints\nthe pages that changed.',
  arguments: {},
  options: {},
  notes: 'exit codes: 0 written; 1 the markers of a page do not match its tables; 2 invalid command line',
  run() {
    const pages = writeTables();
    return { json: { pages }, text: pages.join('\n') };
  },
});

if (import.meta.main) await runAsProcess(main);
