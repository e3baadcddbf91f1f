/** The weather contract and its enclaves on a model of a Sui node, by the commands of the admin's path. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ConfigError } from 'sui-enclave/errors';
import type { DevSui } from './service.ts';

const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url));
const run = promisify(execFile);

/** The published package, and the config that its contract trusts. */
export interface Registered {
  readonly packageId: string;
  readonly configId: string;
}

/**
 * @param urls of emulated enclaves
 * @param folder of their root and registers; gets the deployment file too, in `play`
 * @throws ConfigError with what a command has printed
 */
export async function registerOn(
  { node, account }: DevSui,
  urls: readonly string[],
  folder: string,
): Promise<Registered> {
  const key = account.keyFile === undefined ? undefined : readFileSync(account.keyFile, 'utf8').trim();
  const env = {
    ...process.env,
    ...(key !== undefined && { SUI_PRIVATE_KEY: key }),
    DEPLOYMENTS: join(folder, 'play'),
  };
  async function done(name: string, ...args: readonly string[]): Promise<Record<string, string>> {
    const all = [MAIN, name, ...args, '--network', 'localnet', '--rpc-url', node.url, '--json'];
    const { stdout } = await run(process.execPath, all, { env }).catch((error) => {
      throw new ConfigError(`${name} failed: ${error.stdout || error.stderr}`);
    });
    return JSON.parse(stdout);
  }
  const { package: packageId = '' } = await done('publish', 'weather', '--again');
  const { config: configId = '' } = await done(
    'create_config',
    'weather',
    '--pcrs',
    join(folder, 'dev.pcrs'),
  );
  await done('register_enclave', ...urls, '--root', join(folder, 'dev-root.pem'));
  return { packageId, configId };
}
