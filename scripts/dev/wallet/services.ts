/** Starts everything that a wallet talks to on loopback: the real salt service, and stand-ins for the rest. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadApplication } from '../../../src/app.ts';
import { boot, type RunningServer } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import type { Logger } from '../../../src/server/log.ts';
import { LoopbackNode } from '../sui/node.ts';
import { verifyZkLogin } from '../sui/zklogin.ts';
import { CLIENTS, createPageServer, createProverStandIn, listen, startProvider } from './servers.ts';

export interface WalletServices {
  /** The origin of the wallet's page. */
  readonly origin: string;
  readonly issuer: string;
  readonly saltUrl: string;
  readonly proverUrl: string;
  readonly node: LoopbackNode;
  proverIsBroken: boolean;
  close(): Promise<void>;
}

/** @param port of the wallet's page: by default the system chooses, as it does for all others */
export async function startWalletServices(log: Logger, port = 0): Promise<WalletServices> {
  const node = await LoopbackNode.start(new Uint8Array());
  node.verify = verifyZkLogin;
  const page = await createPageServer(() => ({ issuer, saltUrl: salt.url, proverUrl, redirectUri }), node);
  const origin = await listen(page, port);
  const redirectUri = `${origin}/back`;
  const { server: provider, issuer } = await startProvider(redirectUri);
  const prover = createProverStandIn(() => services.proverIsBroken);
  const proverUrl = await listen(prover);
  const salt = await startSalt(issuer, origin, log);
  const services: WalletServices = {
    origin,
    issuer,
    saltUrl: salt.url,
    proverUrl,
    node,
    proverIsBroken: false,
    async close() {
      node.close();
      for (const server of [page, provider, prover] satisfies Server[]) {
        server.closeAllConnections();
        server.close();
      }
      await salt.close();
    },
  };
  return services;
}

/** The salt service, which asks the provider for its keys under a name of app.yaml. */
async function startSalt(issuer: string, origin: string, log: Logger): Promise<RunningServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-wallet-'));
  const seed = join(folder, 'seed');
  writeFileSync(seed, randomBytes(32).toString('hex'), { mode: 0o600 });
  const jwks_url = 'https://id.wallet.example/jwks';
  const clients = Object.values(CLIENTS).map(({ clientId }) => ({
    issuer,
    client_id: clientId,
    seed: 1,
    jwks_url,
  }));
  const env = {
    APP: 'salt',
    PORT: '0',
    CORS_ORIGINS: origin,
    SALT_CLIENTS: JSON.stringify(clients),
    SALT_SEED_FILE: seed,
  };
  const { module, manifest } = await loadApplication(new URL('../../../src/apps/', import.meta.url), 'salt');
  const server = await boot({
    config: readServerConfig(env),
    env,
    log,
    module,
    manifest: { ...manifest, endpoints: [...manifest.endpoints, 'id.wallet.example'] },
    origins: { 'id.wallet.example': issuer },
  });
  rmSync(folder, { recursive: true });
  return server;
}
