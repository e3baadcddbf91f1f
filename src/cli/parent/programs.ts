/** Runs the programs of the parent instance. */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Environment } from '../command.ts';
import { ParentError } from './errors.ts';

export interface ProgramResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program, and waits for its end.
 *
 * @param env the program's environment; the program is looked up on its PATH
 * @param input the program's standard input, which no other process can read: a string, or a file, which the
 *   program may open as /dev/stdin
 * @throws ParentError: PROGRAM_FAILED, if the program can't be started
 */
export function run(
  env: Environment,
  program: string,
  args: readonly string[],
  input: string | { file: string } = '',
): ProgramResult {
  const isString = typeof input === 'string';
  const stdin = isString ? 'pipe' : openSync(input.file, 'r');
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    env,
    encoding: 'utf8',
    maxBuffer: 16 * 1024 ** 2,
    stdio: [stdin, 'pipe', 'pipe'],
    ...(isString && { input }),
  });
  if (stdin !== 'pipe') closeSync(stdin);
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ENOENT') {
    throw new ParentError(
      'PROGRAM_FAILED',
      `${program} is not installed here: on the parent instance, the command doctor shows what is missing`,
    );
  }
  if (error) throw new ParentError('PROGRAM_FAILED', `${program} can't be started: ${code}`);
  return { status, stdout, stderr };
}

/** Returns the path of a program, looked up on PATH. */
export function find({ PATH = '' }: Environment, program: string): string | undefined {
  for (const folder of PATH.split(delimiter)) {
    const path = join(folder, program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The program is not in this folder.
    }
  }
  return undefined;
}
