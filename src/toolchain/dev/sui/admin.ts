/** The admin's commands on a model of a Sui node, as processes. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { ConfigError } from 'sui-enclave/errors';
import { PROGRAM_FILE } from 'sui-enclave-cli/places';
import type { DevSui } from './service.ts';

const run = promisify(execFile);

/** Runs a command with the account of the node. @throws ConfigError with what the command has printed */
export type Admin = (name: string, ...args: readonly string[]) => Promise<Record<string, string>>;

/** @param deployments the folder of the deployment file */
export function adminOn({ node, account }: DevSui, deployments: string): Admin {
  const key = account.keyFile === undefined ? undefined : readFileSync(account.keyFile, 'utf8').trim();
  const env = {
    ...process.env,
    ...(key !== undefined && { SUI_PRIVATE_KEY: key }),
    DEPLOYMENTS: deployments,
  };
  return async (name, ...args) => {
    const all = [PROGRAM_FILE, name, ...args, '--network', 'localnet', '--rpc-url', node.url, '--json'];
    const { stdout } = await run(process.execPath, all, { env }).catch((error) => {
      throw new ConfigError(`${name} failed: ${error.stdout || error.stderr}`);
    });
    return JSON.parse(stdout);
  };
}

/** The published weather contract, and the config that it trusts. @param pcrs the file of the registers */
export async function publishWeather(
  admin: Admin,
  pcrs: string,
): Promise<{ readonly packageId: string; readonly configId: string }> {
  const { package: packageId = '' } = await admin('publish', 'weather', '--again');
  const { config: configId = '' } = await admin('create_config', 'weather', '--pcrs', pcrs);
  return { packageId, configId };
}
