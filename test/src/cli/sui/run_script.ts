/** Runs a command that talks to Sui, against a loopback node. */
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callScript, type Result as Run, spawnScript } from '../run.ts';

export interface Result {
  readonly exit: number | null;
  readonly out: string;
  readonly err: string;
  /** Returns the JSON on standard output. */
  json(): Record<string, unknown>;
}

/**
 * Function that runs a command.
 *
 * @param env the complete environment of the command, except for PATH and HOME of a process
 */
export type Runner = (
  name: string,
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
) => Promise<Result>;

/** Adds a folder without deployment files, so that no test reads or writes the files of this repository. */
const isolateEnvironment = (env: Readonly<Record<string, string>>) => ({
  DEPLOYMENTS: join(tmpdir(), `deployments-${randomUUID()}`),
  ...env,
});

/** Runs the command in this process. */
export const script: Runner = async (name, args, env = {}) =>
  toResult(await callScript(`sui/${name}.ts`, args, { env: isolateEnvironment(env) }));

/** Runs the command as a process of its own, as an admin does. */
export const scriptProcess: Runner = async (name, args, env = {}) => {
  const { PATH = '', HOME = '' } = process.env;
  return toResult(
    await spawnScript(`sui/${name}.ts`, args, { env: { PATH, HOME, ...isolateEnvironment(env) } }),
  );
};

function toResult({ status: exit, stdout: out, stderr: err }: Run): Result {
  return { exit, out, err, json: () => JSON.parse(out) };
}
