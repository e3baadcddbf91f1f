/** Reads the runbooks of the alerts, deploy/observe/RUNBOOKS.md. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export const RUNBOOKS = readFileSync(new URL('../deploy/observe/RUNBOOKS.md', import.meta.url), 'utf8');

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook?: string; readonly page?: string };
}

const alerts = readFileSync(new URL('../deploy/observe/alerts.yml', import.meta.url), 'utf8');
const { groups } = parse(alerts) as { groups: { rules: Rule[] }[] };

export const RULES: readonly Rule[] = groups.flatMap((group) => group.rules);

export interface Runbook {
  readonly text: string;
  /** Lines of each block of commands, as the page has them. */
  readonly blocks: readonly (readonly string[])[];
  /** Second column of the table, by the first column: unit, changes, next key or way back. */
  readonly rows: ReadonlyMap<string, string>;
}

/** Returns the section below a heading. @throws Error if the page does not have the heading */
export function readRunbook(heading: string, page = RUNBOOKS): Runbook {
  const text = page.split(/^## /m).find((section) => section.startsWith(`${heading}\n`));
  if (text === undefined) throw new Error(`the page has no section ${heading}`);
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) =>
    block.trim().split('\n'),
  );
  const rows = [...text.matchAll(/^\| (unit|changes|next key|way back) \| (.+) \|$/gm)];
  return { text, blocks, rows: new Map(rows.map(([, name = '', cell = '']) => [name, cell])) };
}
