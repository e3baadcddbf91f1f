/** Defines the outcome of a command, and formats it for printing. */
import type { Result } from '../command.ts';

/** Outcome of a command that talks to Sui. */
export interface Outcome {
  readonly status: 'done' | 'unchanged' | 'dry-run' | 'unsigned';
  /** One line for people. */
  readonly title: string;
  /** Properties of the JSON, which are also the lines of the printed text. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Text to print in place of everything else. */
  readonly text?: string;
  /** Text to print in place of title and fields, or before them with `isWhole`. */
  readonly summary?: string;
  /** Whether to print title and fields after `summary`. */
  readonly isWhole?: boolean;
  /** Whether the command found a problem: exit code 1. */
  readonly alarm?: boolean;
}

/**
 * Returns the JSON and the text that a command prints.
 *
 * @param plan the commands of a dry run's transaction
 */
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
