/** Runs a command in this process, with captured output, or as a process of its own. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Main } from '../../../src/cli/command.ts';

export interface Result {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Surroundings {
  /** The complete environment of the command. */
  readonly env?: Readonly<Record<string, string>>;
  /** The content of standard input. */
  readonly input?: string;
}

/** Calls the `main` of a command. */
export async function call(
  main: Main,
  argv: readonly string[],
  { env = {}, input = '' }: Surroundings = {},
): Promise<Result> {
  let stdout = '';
  let stderr = '';
  const status = await main(argv, env, {
    log: (line) => {
      stdout += `${line}\n`;
    },
    error: (line) => {
      stderr += `${line}\n`;
    },
    stdin: () => input,
  });
  return { status, stdout, stderr };
}

/** Calls the `main` of a module, by its path from `src/cli/`. */
export async function callScript(
  path: string,
  argv: readonly string[],
  surroundings?: Surroundings,
): Promise<Result> {
  const { main } = (await import(scriptUrl(path).href)) as { main: Main };
  return await call(main, argv, surroundings);
}

/** Runs a module as a process, by its path from `src/cli/`. */
export async function spawnScript(
  path: string,
  argv: readonly string[],
  { env = {}, input = '', cwd }: Surroundings & { cwd?: string } = {},
): Promise<Result> {
  const child = spawn(process.execPath, [fileURLToPath(scriptUrl(path)), ...argv], {
    env,
    ...(cwd !== undefined && { cwd }),
  });
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, stdout, stderr };
}

function scriptUrl(path: string): URL {
  return new URL(`../../../src/cli/${path}`, import.meta.url);
}
