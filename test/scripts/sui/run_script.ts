/** Runs a script as a process, as an admin does, against a loopback node. */
import { execFile } from 'node:child_process';

export interface Result {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  /** The JSON on standard output. */
  json(): Record<string, unknown>;
}

/** @param env all of the environment that the script sees, but for PATH and HOME */
export function script(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const path = new URL(`../../../scripts/sui/${name}.ts`, import.meta.url).pathname;
  const { PATH = '', HOME = '' } = process.env;
  return new Promise((resolve) => {
    const options = { env: { PATH, HOME, ...env } };
    execFile(process.execPath, [path, ...args], options, (error, out, err) => {
      const exit = typeof error?.code === 'number' ? error.code : 0;
      resolve({ exit, out, err, json: () => JSON.parse(out) });
    });
  });
}
