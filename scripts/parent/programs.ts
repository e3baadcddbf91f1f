/** Runs the programs of the parent instance. */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ProgramFailed } from './errors.ts';

export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * @param input goes to its standard input, where no other process can read it: a text, or a file as it is, which the
 *   program may open as /dev/stdin
 * @throws ProgramFailed when it can't be started
 */
export function run(
  program: string,
  args: readonly string[],
  input: string | { file: string } = '',
): Outcome {
  const isText = typeof input === 'string';
  const stdin = isText ? 'pipe' : openSync(input.file, 'r');
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 ** 2,
    stdio: [stdin, 'pipe', 'pipe'],
    ...(isText && { input }),
  });
  if (stdin !== 'pipe') closeSync(stdin);
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ENOENT') {
    throw new ProgramFailed(
      `${program} is not installed here: on the parent instance, npm run doctor tells what is missing`,
    );
  }
  if (error) throw new ProgramFailed(`${program} can't be started: ${code}`);
  return { status, stdout, stderr };
}

/** Where a program is on PATH. */
export function find(program: string): string | undefined {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here.
    }
  }
  return undefined;
}
