/** `npm run tables`: the tables of settings and errors in the READMEs, from those in the code. */
import { command, runAsProcess } from '../../src/commands/command.ts';

const USAGE = `usage: npm run tables

Writes the tables of settings and errors into the READMEs, between their markers, from the tables in the code. Prints
the pages that changed.

exit codes: 0 written; 1 a page has no place for a table; 2 invalid command line`;

export const main = command({
  usage: USAGE,
  options: {},
  async run() {
    const { writeTables } = await import('./page_tables.ts');
    const pages = writeTables();
    return { json: { pages }, text: pages.join('\n') };
  },
});

if (import.meta.main) await runAsProcess(main);
