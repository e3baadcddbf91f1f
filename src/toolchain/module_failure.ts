/** Describes why a module of an application could not be loaded, with the line of its source. */
import { readFileSync } from 'node:fs';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Position {
  readonly path: string;
  /** Number of the line, from 1. */
  readonly line: number;
  /** Number of the column, from 1; undefined if only the line is known. */
  readonly column: number | undefined;
}

const SHOWN_WIDTH = 160;

/**
 * Describes an error that a module of the application threw while it was loaded.
 *
 * @param error that the import threw
 * @param folder of the application, as an absolute path
 * @returns the message, the position and the lines there; undefined if the error names no position in the
 *   application
 */
export function describeModuleFailure(error: unknown, folder: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const position = readSyntaxPosition(error) ?? readThrownPosition(error, folder);
  if (position === undefined) return undefined;
  const { path, line, column } = position;
  const place = [path, line, ...(column === undefined ? [] : [column])].join(':');
  return `${place}: ${error.name}: ${error.message}\n${formatLines(position)}`;
}

/**
 * Finds the position of a syntax error. Node writes it before the stack: a URL or path with the line, source
 * lines, and a line of `^` below the part that Node could not read.
 */
function readSyntaxPosition({ name, stack = '' }: Error): Position | undefined {
  const [, place, line, source = ''] = /^(\S[^\n]*):(\d+)\n([\s\S]*?)\n *at /.exec(stack) ?? [];
  if (name !== 'SyntaxError' || place === undefined) return undefined;
  const path = place.startsWith('file:') ? fileURLToPath(place) : place;
  const [, indent] = /^( *)\^/m.exec(source) ?? [];
  return { path, line: Number(line), column: indent === undefined ? undefined : indent.length + 1 };
}

/** Finds the innermost function of the application in the stack. */
function readThrownPosition({ stack = '' }: Error, folder: string): Position | undefined {
  for (const [, url = '', line, column] of stack.matchAll(/\(?(file:\/\/[^\s()]+):(\d+):(\d+)\)?$/gm)) {
    const path = fileURLToPath(url.replace(/\?.*/, ''));
    const isOfApplication = path.startsWith(`${folder}${sep}`) && !path.includes(`${sep}node_modules${sep}`);
    if (isOfApplication) return { path, line: Number(line), column: Number(column) };
  }
  return undefined;
}

function formatLines({ path, line, column }: Position): string {
  const lines = readSource(path);
  const width = String(line + 1).length;
  if (lines[line - 1] === undefined) return '';
  const numbered = [line - 1, line, line + 1].flatMap((number) => {
    const text = lines[number - 1];
    if (text === undefined) return [];
    const mark = number === line ? '>' : ' ';
    return [`${mark} ${String(number).padStart(width)} | ${text.slice(0, SHOWN_WIDTH)}`.trimEnd()];
  });
  if (column !== undefined && column <= SHOWN_WIDTH) {
    const index = numbered.findIndex((text) => text.startsWith('>'));
    numbered.splice(index + 1, 0, `  ${' '.repeat(width)} | ${' '.repeat(column - 1)}^`);
  }
  return numbered.join('\n');
}

function readSource(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return [];
  }
}
