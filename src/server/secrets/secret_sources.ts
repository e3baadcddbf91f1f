/**
 * Sources of the secrets: the environment, files, options of `boot`, a hand-off, or a sealed message from a
 * provisioner.
 */

import { ConfigError } from 'sui-enclave/errors';
import type { Env } from 'sui-enclave-service/settings';
import type { ApplicationModule } from '../application/app.ts';
import type { Manifest } from '../application/manifest.ts';
import type { Config } from '../config.ts';
import { requireNotInEnv, Secrets, secretsFromEnv } from './secrets.ts';

export interface SecretSources {
  readonly config: Pick<Config, 'secrets' | 'secretsFd'>;
  readonly env: Env;
  readonly manifest: Pick<Manifest, 'secrets' | 'provisioners'>;
  readonly module: Pick<ApplicationModule, 'secretsNotInEnvironment'>;
  /** Secrets instead of those of the environment, for development and tests. */
  readonly secrets?: Readonly<Record<string, string>>;
}

/**
 * Reads the secrets that are available at the start.
 *
 * @returns the secrets: a complete set, or an empty one if they arrive later
 * @throws ConfigError if the secrets are missing, are in a forbidden place, or could never arrive
 */
export function startSecrets({
  config,
  env,
  manifest,
  module,
  secrets: replacements,
}: SecretSources): Secrets {
  const { secretsNotInEnvironment = [] } = module;
  requireNotInEnv(secretsNotInEnvironment, env);
  if (config.secrets === 'sealed') return startSealedSecrets(config, env, manifest);
  if (config.secretsFd === undefined && !replacements) {
    return secretsFromEnv(manifest.secrets, env, secretsNotInEnvironment);
  }
  const secrets = new Secrets(manifest.secrets);
  if (config.secretsFd === undefined && secrets.missing().length > 0) secrets.provide(replacements);
  return secrets;
}

function startSealedSecrets(
  { secretsFd }: SecretSources['config'],
  env: Env,
  manifest: SecretSources['manifest'],
): Secrets {
  const { secrets: names, provisioners = [] } = manifest;
  const variable = names.flatMap((name) => [name, `${name}_FILE`]).find((name) => env[name] !== undefined);
  if (variable !== undefined) {
    throw new ConfigError(
      `${variable} must not be set: SECRETS=sealed accepts no secret from the environment`,
    );
  }
  if (names.length > 0 && secretsFd === undefined && provisioners.length === 0) {
    throw new ConfigError(
      'SECRETS=sealed needs a source of secrets: name provisioners in app.yaml, or set SECRETS_FD',
    );
  }
  return new Secrets(names);
}
