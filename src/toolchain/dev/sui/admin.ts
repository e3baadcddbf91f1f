/** Runs the admin's commands on a model of a Sui node, each as a process. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { ConfigError } from 'sui-enclave/errors';
import { PROGRAM_FILE } from 'sui-enclave-cli/places';
import type { DevSui } from './service.ts';

const execute = promisify(execFile);

/** Runs a command with the node's account. @throws ConfigError with the output of the command */
export type Admin = (name: string, ...args: readonly string[]) => Promise<Record<string, string>>;

/** @param deployments folder of the deployment file */
export function adminOn({ node, account }: DevSui, deployments: string): Admin {
  const key = account.keyFile === undefined ? undefined : readFileSync(account.keyFile, 'utf8').trim();
  const env = { ...(key !== undefined && { SUI_PRIVATE_KEY: key }), DEPLOYMENTS: deployments };
  return async (name, ...args) =>
    await runProgram(name, [...args, '--network', 'localnet', '--rpc-url', node.url], env);
}

/**
 * Runs a command of the program in a process of its own.
 *
 * @param env variables that are added to the environment of this process
 * @returns the JSON that the command prints with --json. @throws ConfigError with the output of the command
 */
export async function runProgram(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  const options = { env: { ...process.env, ...env } };
  const { stdout } = await execute(process.execPath, [PROGRAM_FILE, name, ...args, '--json'], options).catch(
    (error) => {
      throw new ConfigError(`${name} failed: ${readFailure(error.stdout) ?? error.stderr.trim()}`);
    },
  );
  return JSON.parse(stdout);
}

/**
 * Reads the failure that a command printed as JSON. Returns undefined if it printed none.
 */
function readFailure(stdout: string): string | undefined {
  try {
    const { code, error } = JSON.parse(stdout);
    return `${code}: ${error}`.trim();
  } catch {
    return undefined;
  }
}

/**
 * Publishes the weather contract, and creates the config that it trusts. @param pcrs file with the registers
 */
export async function publishWeather(
  admin: Admin,
  pcrs: string,
): Promise<{ readonly packageId: string; readonly configId: string }> {
  const { package: packageId = '' } = await admin('publish', 'weather', '--again');
  const { config: configId = '' } = await admin('create_config', 'weather', '--pcrs', pcrs);
  return { packageId, configId };
}
