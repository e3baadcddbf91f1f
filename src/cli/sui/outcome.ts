/** The outcome of a command, and how it is printed. */
import type { Result } from '../command.ts';

/** The result of a command. */
export interface Outcome {
  readonly status: 'done' | 'unchanged' | 'dry-run' | 'unsigned';
  /** One line for people. */
  readonly title: string;
  /** The properties of the JSON, and the lines of the printed result. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The printed result, if it does not consist of title and fields. */
  readonly text?: string;
  /** Text to print in place of title and fields; with `isWhole`, before these. */
  readonly summary?: string;
  readonly isWhole?: boolean;
  /** Whether the command found a problem: exit code 1. */
  readonly alarm?: boolean;
}

/** @param plan the commands of the transaction of a dry run */
export function createResult(
  { status, title, fields, text, summary, isWhole }: Outcome,
  notes: readonly string[],
  plan: readonly string[] | null,
): Result {
  const head = { status, ...(plan && { plan }), ...(notes.length > 0 && { notes }) };
  const allLines = [title, ...formatLines(fields)];
  const lines = summary === undefined ? allLines : [summary, ...(isWhole ? ['', ...allLines] : [])];
  if (plan) {
    if (plan.length > 0) lines.unshift('It would send:', ...plan.map((line) => `  - ${line}`), '');
    lines.push('', 'Nothing was signed or sent.');
  }
  return { json: { ...head, title, ...fields }, text: text ?? lines.join('\n') };
}

/** Formats properties as lines of name and value, with lists and objects below their name. */
function formatLines(fields: object, indent = '  '): string[] {
  const width = Math.max(...Object.keys(fields).map((name) => name.length)) + 2;
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = field instanceof Date ? field.toISOString() : field;
    if (typeof value !== 'object' || value === null) return [`${indent}${name.padEnd(width)}${value ?? '-'}`];
    if (!Array.isArray(value)) return [`${indent}${name}`, ...formatLines(value, `${indent}  `)];
    if (value.length === 0) return [`${indent}${name.padEnd(width)}none`];
    const lines = value.flatMap((entry) =>
      typeof entry === 'object'
        ? [`${indent}  -`, ...formatLines(entry, `${indent}    `)]
        : [`${indent}  - ${entry}`],
    );
    return [`${indent}${name}`, ...lines];
  });
}
