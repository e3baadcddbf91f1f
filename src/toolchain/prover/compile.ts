/** Runs circom, and maintains the folders of the cache. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { CIRCUIT_SOURCES } from './artifacts.ts';

/**
 * Compiles a circuit into `folder`, as `circuit.*`. The compiler is circom in WebAssembly: the small size
 * needs 1.2 GB of memory, and the full size 3.3 GB.
 *
 * @param main source of the main component, such as `mainComponent` returns
 * @throws ConfigError
 */
export function compileCircuit(folder: string, main: string, flags: readonly string[]): void {
  const compiler = join(CIRCUIT_SOURCES, 'node_modules/circom2/cli.js');
  if (!existsSync(compiler)) {
    throw new ConfigError(`circom is not installed: run npm ci --ignore-scripts in ${CIRCUIT_SOURCES}`);
  }
  const source = join(folder, 'circuit.circom');
  writeFileSync(source, main);
  const args = [compiler, source, ...flags, '-l', '.', '-l', 'node_modules', '-o', folder];
  runTool(process.execPath, args, CIRCUIT_SOURCES);
}

/** Builds a folder if it does not exist. An interrupted build leaves no incomplete folder with this name. */
export function buildWhole(folder: string, build: (partial: string) => void): void {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
  const partial = `${folder}.${process.pid}.partial`;
  mkdirSync(partial);
  try {
    build(partial);
    try {
      renameSync(partial, folder);
    } catch (error) {
      // A concurrent build may have finished first, with the same bytes. `rename` does not replace a folder
      // that has content.
      if (!existsSync(folder)) throw error;
    }
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/**
 * Number of versions of a folder to keep, for example for two checkouts. A version of the full size has 900
 * MB.
 */
const KEPT_VERSIONS = 2;

/** Removes older versions of a folder, except the newest. Their names differ only in the hash at the end. */
export function removeOlder(folder: string): void {
  const cache = dirname(folder);
  const kind = basename(folder).replace(/[0-9a-f]{16}$/, '');
  const cachedFolders = readdirSync(cache)
    .filter((name) => name.startsWith(kind) && /^[0-9a-f]{16}$/.test(name.slice(kind.length)))
    .map((name) => join(cache, name))
    .filter((path) => path !== folder)
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const path of cachedFolders.slice(KEPT_VERSIONS - 1)) rmSync(path, { recursive: true });
}

/** Runs a program and shows its standard error. @throws ConfigError with the exit code or signal */
export function runTool(program: string, args: readonly string[], cwd: string): void {
  try {
    execFileSync(program, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  } catch (error) {
    const { status, signal } = error as { status?: number | null; signal?: string | null };
    throw new ConfigError(`${program} failed: ${signal ?? `exit code ${status}`}`);
  }
}
