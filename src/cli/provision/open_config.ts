/**
 * Refuses to send secrets to an application whose config is open, since anyone may run its image. The
 * commands that send secrets check this in the deployment files and, if a network is named, on its chain.
 */
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import * as v from 'valibot';
import { type Environment, UsageError } from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { deploymentsFolder, ROLLOUT_MEMORY } from '../places.ts';
import { SuiCommandError } from '../sui/errors.ts';
import { NETWORKS } from '../sui/network_names.ts';
import { objectId, text } from '../values.ts';
import { OpenConfigError } from './errors.ts';

/** Options that name the config of the application that the secrets are for. */
export const CONFIG_OPTIONS = {
  network: {
    value: '<name>',
    help: `send nothing unless the config on this network is not open: ${NETWORKS.join(', ')}`,
    schema: v.picklist(NETWORKS, `must be one of ${NETWORKS.join(', ')}`),
  },
  app: {
    value: '<name>',
    help: 'the application in deployments/, if its files have several',
    schema: text,
  },
  config: {
    value: '<id>',
    help: 'with --network: the config (default: the config in deployments/<network>.json)',
    schema: objectId,
  },
  'rpc-url': {
    value: '<url>',
    help: 'with --network: a gRPC-web node (default: the node of the network)',
    schema: text,
  },
} as const;

export type ConfigOptions = OptionValues<typeof CONFIG_OPTIONS>;

/** @throws UsageError */
export function checkConfigOptions({ network, config, 'rpc-url': rpcUrl }: ConfigOptions): void {
  if (network === undefined && (config ?? rpcUrl) !== undefined) {
    throw new UsageError('--config and --rpc-url need --network');
  }
}

/**
 * Checks that no deployment file says that the application's config is open. With `--network`, also checks
 * that it is not open on chain. Without `--app`, an open config of any application counts, since nothing else
 * says which application the secrets are for.
 *
 * @throws OpenConfigError; SuiCommandError: DEPLOYMENT if a deployment file can't be used; SuiError if the
 *   node does not answer
 */
export async function requireNoOpenConfig(options: ConfigOptions, env: Environment): Promise<void> {
  const { network, app } = options;
  const names = network === undefined ? listNetworks(env) : [network];
  if (names.length > 0) await checkFiles(names, options, env);
  else if (app !== undefined) throw unknownApplication(app);
  if (network !== undefined) await askChain(options, env);
}

function unknownApplication(app: string): SuiCommandError {
  return new SuiCommandError('DEPLOYMENT', `no file of deployments/ has the application ${app}`);
}

async function checkFiles(names: readonly string[], options: ConfigOptions, env: Environment): Promise<void> {
  const { network, app } = options;
  // The module is loaded here, so that a command that reads no file starts without the modules for its
  // format.
  const { Deployments } = await import('../sui/deployments.ts');
  let isNamed = app === undefined || network !== undefined;
  for (const name of names) {
    const deployments = new Deployments(name, env, app);
    for (const [application, { config }] of deployments.read()?.applications ?? []) {
      if (app !== undefined && application !== app) continue;
      isNamed = true;
      if (config?.isOpen && matchesOption(options, config.id)) {
        throw createRefusal(
          `${deployments.path} says that the config ${config.id} of ${application} is open`,
        );
      }
    }
  }
  if (!isNamed) throw unknownApplication(app ?? '');
}

function matchesOption({ config }: ConfigOptions, id: string): boolean {
  return config === undefined || config === id;
}

async function askChain(options: ConfigOptions, env: Environment): Promise<void> {
  const { network, app, config: namedId, 'rpc-url': rpcUrl } = options;
  if (network === undefined) return;
  const { Deployments } = await import('../sui/deployments.ts');
  const { Chain } = await import('../sui/chain.ts');
  const { readConfig } = await import('sui-enclave/sui/objects');
  const chain = new Chain({ network, 'rpc-url': rpcUrl }, env);
  const deployments = new Deployments(network, env, app);
  if (namedId === undefined) await deployments.checkChain(chain);
  const id = namedId ?? deployments.fill(['configId']).configId ?? '';
  const { isOpen } = await readConfig(chain.client, id);
  if (isOpen) throw createRefusal(`${chain.description} says that the config ${id} is open`);
}

function createRefusal(finding: string): OpenConfigError {
  return new OpenConfigError(
    `${finding}: anyone may run its image, so it must not get secrets. Use a config that is not open. If the secrets are for another application, name that application by --app. Nothing was sent`,
  );
}

/**
 * Returns the names of the files of deployments/ that are not a rollout's.
 *
 * @throws SuiCommandError: DEPLOYMENT
 */
function listNetworks(env: Environment): string[] {
  const folder = deploymentsFolder(env);
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json') && !name.endsWith(ROLLOUT_MEMORY))
      .map((name) => basename(name, '.json'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new SuiCommandError('DEPLOYMENT', `${folder} can't be read: ${code}`);
  }
}
