/** The settings in the application's ramdisk, for init (enclave/init/settings.h) and for the C library. */

import { ConfigError } from 'sui-enclave/errors';
import { readServerConfig } from 'sui-enclave-server/config';
import type { Manifest } from 'sui-enclave-server/manifest';

/** The parent's port for the first endpoint. The further endpoints have the ports after it. */
export const FIRST_ENDPOINT_PORT = 8101;
/** The enclave's vsock port at which the parent instance reads the server's metrics. */
export const METRICS_PORT = 9100;
/** The last byte of 127.0.0.x, the first endpoint's address inside the enclave. */
const FIRST_ADDRESS = 64;

export interface Forward {
  readonly host: string;
  /** Address on the enclave's loopback; the port is 443. */
  readonly address: string;
  /** The parent's port, on vsock. */
  readonly port: number;
}

/** Lists one forward for each endpoint of app.yaml, in its order. */
export function listForwards({ endpoints }: Manifest): Forward[] {
  return endpoints.map((host, at) => ({
    host,
    address: `127.0.0.${FIRST_ADDRESS + at}`,
    port: FIRST_ENDPOINT_PORT + at,
  }));
}

/**
 * Returns the variables of a server.env. No shell reads the file: everything after the first `=` is the
 * value.
 *
 * @param secrets the names of the secrets in app.yaml
 * @throws ConfigError. The message names the variable, or the line if it is not an assignment
 */
export function parseServerEnv(text: string, secrets: readonly string[]): Record<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const env: Record<string, string> = {};
  for (const line of lines) {
    const [, name = '', value = ''] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
    if (name === '') throw new ConfigError(`server.env: a line must be NAME=value: ${line.split('=')[0]}`);
    if (name in env) throw new ConfigError(`server.env: ${name} is set twice`);
    if (secrets.some((secret) => name === secret || name === `${secret}_FILE`)) {
      throw new ConfigError(
        `server.env: ${name} must not be here: everything in this file gets into the image, which is public. The secrets of app.yaml are handed to the server when it runs`,
      );
    }
    if (/^(["'`]).*\1$/.test(value)) {
      throw new ConfigError(`server.env: ${name}: quotes would be part of the value: leave them out`);
    }
    if (/\s#/.test(value) && !isJson(value)) {
      throw new ConfigError(
        `server.env: ${name}: a comment would be part of the value: give it a line of its own`,
      );
    }
    env[name] = value;
  }
  return env;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the server's environment in the image, except for the variables that init adds.
 *
 * @param serverEnv the content of enclave/server.env, then the content of the application's server.env
 * @throws ConfigError, if the server would not start with these settings
 */
export function makeEnvironment(
  app: string,
  { secrets }: Manifest,
  serverEnv: string,
  hasOwnCa: boolean,
): string[] {
  const env = parseServerEnv(`APP=${app}\n${serverEnv}`, secrets);
  const { metricsPort } = readServerConfig(env);
  if (metricsPort === 0) throw new ConfigError('server.env: METRICS_PORT must be a fixed port in an image');
  if (hasOwnCa) env['NODE_EXTRA_CA_CERTS'] = '/app/ca.pem';
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

/** Returns the content of /app/enclave.conf. */
export function makeSettings(manifest: Manifest, environment: readonly string[]): string {
  return [
    ...environment.map((line) => `env ${line}`),
    ...listForwards(manifest).map(({ address, port }) => `forward tcp:${address}:443 vsock:${port}`),
    ...listInboundPorts(environment),
    ...(environment.includes('EVENTS=true') ? ['events'] : []),
    ...(manifest.secrets.length > 0 ? ['secrets'] : []),
    '',
  ].join('\n');
}

/** Lists the ports that init opens towards the parent instance besides the server's port. */
function listInboundPorts(environment: readonly string[]): string[] {
  const port = environment.find((line) => line.startsWith('METRICS_PORT='))?.split('=')[1];
  return port === undefined ? [] : [`inbound vsock:${METRICS_PORT} tcp:127.0.0.1:${port}`];
}

/** Returns the server's environment in the /app/enclave.conf of an image. */
export function parseEnvironment(settings: string): Record<string, string> {
  const variables = settings.split('\n').map((line) => /^env ([A-Z][A-Z0-9_]*)=(.*)$/.exec(line));
  return Object.fromEntries(variables.flatMap((match) => (match ? [[match[1], match[2]]] : [])));
}

/**
 * Returns the content of /etc/hosts. It resolves each endpoint's name to the address of its forward, and no
 * other name but localhost.
 */
export function makeHosts(manifest: Manifest): string {
  const lines = listForwards(manifest).map(({ address, host }) => `${address} ${host}\n`);
  return `127.0.0.1 localhost\n${lines.join('')}`;
}
