/**
 * Starts everything that a wallet talks to on loopback: the real salt service, the real proving service or a fake
 * of it, and fakes of provider and Sui node.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readVerifyingKey } from 'sui-enclave-prover/verify';
import { boot, type RunningServer } from 'sui-enclave-server/boot';
import { BUILT_ADDON } from 'sui-enclave-server/built_addon';
import { readServerConfig } from 'sui-enclave-server/config';
import { loadApplication } from 'sui-enclave-server/load_application';
import { NsmDevice } from 'sui-enclave-server/nsm/device';
import type { Logger } from 'sui-enclave-service/log';
import { LoopbackNode } from 'sui-enclave-testing/sui/node';
import { issuerKeys, verifyZkLogin, zkLoginVerifier } from 'sui-enclave-testing/sui/zklogin';
import type { Artifacts } from '../../prover/artifacts.ts';
import { startProver } from '../prover/service.ts';
import { CLIENTS, createFakeProver, createPageServer, listen, startProvider } from './servers.ts';

export interface WalletServices {
  /** The origin of the wallet's page. */
  readonly origin: string;
  readonly issuer: string;
  readonly saltUrl: string;
  readonly proverUrl: string;
  readonly node: LoopbackNode;
  /** Makes the fake of the proving service answer with an error. */
  proverIsBroken: boolean;
  /** Rejects if the proving service's backend ends. */
  readonly died: Promise<void>;
  close(): Promise<void>;
}

export interface WalletOptions {
  readonly log: Logger;
  /** Of the wallet's page. Default: the system chooses, as it does for all others. */
  readonly port?: number;
  /** For the real proving service. Default: a fake. */
  readonly prover?: Artifacts;
}

export async function startWalletServices({ log, port = 0, prover }: WalletOptions): Promise<WalletServices> {
  const node = await LoopbackNode.start(new Uint8Array());
  const page = await createPageServer(
    () => ({ issuer, saltUrl: salt.url, proverUrl: proving.url, redirectUri }),
    node,
  );
  const origin = await listen(page, port);
  const redirectUri = `${origin}/back`;
  const { server: provider, issuer } = await startProvider(redirectUri);
  const proving = prover
    ? await startRealProver(prover, { issuer, origin, log, node })
    : await startFakeProver(() => services.proverIsBroken, node);
  const salt = await startSalt(issuer, origin, log);
  const services: WalletServices = {
    origin,
    issuer,
    saltUrl: salt.url,
    proverUrl: proving.url,
    node,
    proverIsBroken: false,
    died: proving.died,
    async close() {
      node.close();
      for (const server of [page, provider] satisfies Server[]) {
        server.closeAllConnections();
        server.close();
      }
      await Promise.all([salt.close(), proving.close()]);
    },
  };
  return services;
}

interface ProvingService {
  readonly url: string;
  readonly died: Promise<void>;
  close(): Promise<void>;
}

/** Lets the node check everything except for the proofs, which are of another statement. */
async function startFakeProver(isBroken: () => boolean, node: LoopbackNode): Promise<ProvingService> {
  node.verify = verifyZkLogin;
  const server = createFakeProver(isBroken);
  return {
    url: await listen(server),
    died: new Promise(() => {}),
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Lets the node check the proofs too. */
async function startRealProver(
  artifacts: Artifacts,
  { issuer, origin, log, node }: { issuer: string; origin: string; log: Logger; node: LoopbackNode },
): Promise<ProvingService> {
  const jwksUrl = `${issuer}/jwks`;
  const { url, backend, close } = await startProver({
    artifacts,
    issuer: { issuer, jwksUrl },
    log,
    env: { CORS_ORIGINS: origin, DEBUG: 'zkLogin:info' },
    onBackendLine: (line) => {
      const { level, msg } = JSON.parse(line) as { level: string; msg: string };
      if (level === 'error') log.error({}, `backend: ${msg}`);
      else log.debug({}, `backend: ${msg}`);
    },
  });
  const verifyingKey = readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')));
  node.verify = zkLoginVerifier({ verifyingKey, keyOf: issuerKeys({ [issuer]: jwksUrl }) });
  return { url, died: backend.died, close };
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
  const { module, manifest } = await loadApplication(new URL('../../../apps/', import.meta.url), 'salt');
  const config = readServerConfig(env);
  const server = await boot({
    config,
    env,
    log,
    nsm: new NsmDevice({ path: config.nsmDevice, addonPath: BUILT_ADDON }),
    module,
    manifest: { ...manifest, endpoints: [...manifest.endpoints, 'id.wallet.example'] },
    origins: { 'id.wallet.example': issuer },
  });
  rmSync(folder, { recursive: true });
  return server;
}
