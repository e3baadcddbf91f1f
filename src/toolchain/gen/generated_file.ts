/**
 * Writes files that a command may write again. The first line has a digest of the rest, which reveals edits.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { GenError } from './errors.ts';

const NOTE = 'Written by sui-enclave gen: change app.ts instead, and run it again.';
/** Matches the first line of a file, or in JSON the first property. */
const HEADER =
  /^(?:\/\/ |# |\{\n {2}"generated": ")Written by sui-enclave gen: [^"\n]* sha256:([0-9a-f]{64})(?:\n|",\n)/;

/**
 * Returns generated code with its header.
 *
 * @param content of Move, TypeScript, Go or Python
 * @param comment beginning of a comment in that language
 */
export function generatedCode(content: string, comment: '//' | '#' = '//'): string {
  return `${comment} ${NOTE} sha256:${computeDigest(content)}\n${content}`;
}

/** Returns a generated JSON object. @param members lines of its other properties */
export function generatedJson(members: string): string {
  const content = `${members}}\n`;
  return `{\n  "generated": "${NOTE} sha256:${computeDigest(content)}",\n${content}`;
}

function computeDigest(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * Writes files. Checks all files before it writes any.
 *
 * @param files content by path
 * @param check whether to write nothing, and to throw if a file would change
 * @returns the paths that were written
 * @throws GenError: GEN_FOREIGN_FILE, GEN_EDITED, GEN_OUTDATED
 */
export function writeGenerated(files: ReadonlyMap<string, string>, check: boolean): string[] {
  const changed = [...files].filter(([path, content]) => readUnedited(path) !== content);
  if (check && changed.length > 0) {
    const paths = changed.map(([path]) => path).join(', ');
    throw new GenError('GEN_OUTDATED', `${paths}: run sui-enclave gen, and look at what changed`);
  }
  for (const [path, content] of changed) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return changed.map(([path]) => path);
}

/** Returns whether the command wrote the file, even if it was edited since. */
export function isGenerated(path: string): boolean {
  return existsSync(path) && HEADER.test(readFileSync(path, 'utf8'));
}

/**
 * Reads the file, which `gen` must have written, and which must not have been edited; undefined if it does
 * not exist.
 */
function readUnedited(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const existingContent = readFileSync(path, 'utf8');
  const [header = '', digest] = HEADER.exec(existingContent) ?? [];
  if (digest === undefined) {
    throw new GenError(
      'GEN_FOREIGN_FILE',
      `${path} was not written by sui-enclave gen: move it elsewhere first`,
    );
  }
  if (digest !== computeDigest(existingContent.slice(header.length))) {
    throw new GenError(
      'GEN_EDITED',
      `${path} was edited since sui-enclave gen wrote it: put the change into app.ts, and delete the file`,
    );
  }
  return existingContent;
}
