/** What the application's ramdisk says to init (enclave/init/settings.h) and to the C library. */
import type { Manifest } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

/** The parent's port for the first endpoint; the others follow. */
export const FIRST_ENDPOINT_PORT = 8101;
/** The last byte of 127.0.0.x, the first endpoint's address inside the enclave. */
const FIRST_ADDRESS = 64;

export interface Forward {
  readonly host: string;
  /** On the enclave's loopback; its port is 443. */
  readonly address: string;
  /** Of the parent, on vsock. */
  readonly port: number;
}

/** One for each endpoint of app.yaml, in its order. */
export function forwardsOf({ endpoints }: Manifest): Forward[] {
  return endpoints.map((host, at) => ({
    host,
    address: `127.0.0.${FIRST_ADDRESS + at}`,
    port: FIRST_ENDPOINT_PORT + at,
  }));
}

/**
 * @param serverEnv the text of enclave/server.env
 * @throws ConfigError when the server would not start with these settings
 */
export function makeSettings(app: string, manifest: Manifest, serverEnv: string, hasOwnCa: boolean): string {
  const lines = serverEnv.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const env = Object.fromEntries(
    lines.map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]),
  );
  readConfig({ ...env, APP: app });
  return [
    `env APP=${app}`,
    ...lines.map((line) => `env ${line}`),
    ...(hasOwnCa ? ['env NODE_EXTRA_CA_CERTS=/app/ca.pem'] : []),
    ...forwardsOf(manifest).map(({ address, port }) => `forward tcp:${address}:443 vsock:${port}`),
    ...(manifest.secrets.length > 0 ? ['secrets'] : []),
    '',
  ].join('\n');
}

/** /etc/hosts: an endpoint's name leads to its bridge, and every other name nowhere. */
export function makeHosts(manifest: Manifest): string {
  const lines = forwardsOf(manifest).map(({ address, host }) => `${address} ${host}\n`);
  return `127.0.0.1 localhost\n${lines.join('')}`;
}
