/**
 * Starts all services that a wallet calls, on loopback: the real salt service, the real proving service or a
 * fake of it, and fakes of a provider and a Sui node. All of them answer every page of this machine.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { RANDOM } from 'sui-enclave-devnet/ledger';
import { LoopbackNode } from 'sui-enclave-devnet/node';
import { readVerifyingKey } from 'sui-enclave-prover/verify';
import { boot } from 'sui-enclave-server/boot';
import { BUILT_ADDON } from 'sui-enclave-server/built_addon';
import { readServerConfig } from 'sui-enclave-server/config';
import { loadApplication } from 'sui-enclave-server/load_application';
import { NsmDevice } from 'sui-enclave-server/nsm/device';
import type { Logger } from 'sui-enclave-service/log';
import { LOOPBACK_ORIGINS } from 'sui-enclave-testing/loopback';
import type { Artifacts } from '../../prover/artifacts.ts';
import { startProver } from '../prover/service.ts';
import { createSignatureCheck } from '../sui/signatures.ts';
import { createPageServer, type WalletEnclave } from './page_server.ts';
import { type Ports, portsFrom, requireFree } from './ports.ts';
import { CLIENTS, createFakeProver, listen, startProvider } from './servers.ts';

/** A node that is already running, such as that of `make dev-sui`. */
export interface WalletChain {
  readonly node: LoopbackNode;
  readonly faucetUrl: string;
}

export interface WalletServices {
  /** Origin of the wallet's page. */
  readonly origin: string;
  readonly issuer: string;
  readonly saltUrl: string;
  readonly proverUrl: string;
  readonly faucetUrl: string;
  readonly node: LoopbackNode;
  /** Whether the fake of the proving service answers with an error. */
  proverIsBroken: boolean;
  /** Rejects if the proving service's backend ends. */
  readonly died: Promise<void>;
  close(): Promise<void>;
}

export interface WalletOptions {
  readonly log: Logger;
  /**
   * Seed of the salt service in hexadecimal. Together with client id and issuer, it determines the addresses.
   * The issuer contains the provider's port.
   */
  readonly seed: string;
  /** Ports of the page and its services. Default: the system chooses. */
  readonly ports?: Ports;
  /** Artifacts for the real proving service. Without them, a fake of the service runs. */
  readonly prover?: Artifacts;
  /** Node that checks this prover's proofs. Default: a new node. */
  readonly chain?: WalletChain;
  /** Returns the enclave for the page to ask. Called at each load of the page. Default: no enclave. */
  readonly enclave?: () => WalletEnclave;
}

/** @throws ConfigError that names the first busy port. In that case, no service keeps running */
export async function startWalletServices(options: WalletOptions): Promise<WalletServices> {
  const { ports = portsFrom(0), chain } = options;
  await requireFree(chain === undefined ? ports : { ...ports, node: 0 });
  const closers: (() => Promise<void> | void)[] = [];
  const close = async () => {
    await Promise.all(closers.splice(0).map((end) => end()));
  };
  try {
    return await start(options, ports, (end) => closers.push(end), close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function start(
  { log, seed, prover, chain, enclave }: WalletOptions,
  ports: Ports,
  onClose: (end: () => Promise<void> | void) => void,
  close: () => Promise<void>,
): Promise<WalletServices> {
  const { node, faucetUrl } = chain ?? (await startChain(ports.node, onClose));
  const { server: provider, issuer } = await startProvider(ports.issuer);
  onClose(() => closeServer(provider));
  const proving = prover
    ? await startRealProver(prover, { issuer, port: ports.prover, log, node })
    : await startFakeProver(() => services.proverIsBroken, ports.prover, node);
  onClose(proving.close);
  const salt = await startSalt({ issuer, port: ports.salt, seed, log });
  onClose(salt.close);
  const common = { issuer, saltUrl: salt.url, proverUrl: proving.url, faucetUrl };
  const clients = Object.entries(CLIENTS).map(([how, client]) => ({ how, ...client }));
  const page = createPageServer(
    { ...common, ways: clients, nodeUrl: node.url, provesReally: prover !== undefined },
    () => enclave?.() ?? null,
    (line) => log.error({}, line),
  );
  const origin = await listen(page, ports.page);
  onClose(() => closeServer(page));
  const services: WalletServices = {
    ...common,
    origin,
    node,
    proverIsBroken: false,
    died: proving.died,
    close,
  };
  return services;
}

function closeServer(server: Server): void {
  server.closeAllConnections();
  server.close();
}

async function startChain(port: number, onClose: (end: () => void) => void): Promise<WalletChain> {
  const node = await LoopbackNode.start(new Uint8Array(), port);
  onClose(() => node.close());
  node.servesPages = true;
  node.isFaucet = true;
  node.ledger.objects.set(RANDOM.id, RANDOM);
  return { node, faucetUrl: node.url };
}

interface ProvingService {
  readonly url: string;
  readonly died: Promise<void>;
  close(): Promise<void> | void;
}

/** Starts the fake prover. The node checks everything except its proofs, which are of another statement. */
async function startFakeProver(
  isBroken: () => boolean,
  port: number,
  node: LoopbackNode,
): Promise<ProvingService> {
  node.verify = createSignatureCheck(node, []);
  const server = createFakeProver(isBroken);
  const url = await listen(server, port);
  return { url, died: new Promise(() => {}), close: () => closeServer(server) };
}

/** Starts the real proving service. The node checks its proofs too. */
async function startRealProver(
  artifacts: Artifacts,
  { issuer, port, log, node }: { issuer: string; port: number; log: Logger; node: LoopbackNode },
): Promise<ProvingService> {
  const { url, backend, close } = await startProver({
    artifacts,
    issuer: { issuer, jwksUrl: `${issuer}/jwks` },
    log,
    port,
    env: { DEBUG: 'zkLogin:info' },
    onBackendLine: (line) => {
      const { level, msg } = JSON.parse(line) as { level: string; msg: string };
      if (level === 'error') log.error({}, `backend: ${msg}`);
      else log.debug({}, `backend: ${msg}`);
    },
  });
  const verifyingKey = readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')));
  node.verify = createSignatureCheck(node, [verifyingKey]);
  return { url, died: backend.died, close };
}

/**
 * Starts the salt service. Its manifest here also lists a host name from which it fetches the provider's
 * keys, and `origins` points that name at the fake provider.
 */
async function startSalt({
  issuer,
  port,
  seed,
  log,
}: {
  readonly issuer: string;
  readonly port: number;
  readonly seed: string;
  readonly log: Logger;
}): Promise<{ url: string; close(): Promise<void> }> {
  const jwks_url = 'https://id.wallet.example/jwks';
  const clients = Object.values(CLIENTS).map(({ clientId }) => ({
    issuer,
    client_id: clientId,
    seed: 1,
    jwks_url,
  }));
  const env = {
    APP: 'salt',
    PORT: String(port),
    // The service does not start without this setting. LOOPBACK_ORIGINS replaces it below.
    CORS_ORIGINS: 'none',
    SALT_CLIENTS: JSON.stringify(clients),
  };
  const { module, manifest } = await loadApplication(new URL('../../../apps/', import.meta.url), 'salt');
  const config = { ...readServerConfig(env), corsOrigins: LOOPBACK_ORIGINS };
  return await boot({
    config,
    env,
    log,
    nsm: new NsmDevice({ path: config.nsmDevice, addonPath: BUILT_ADDON }),
    module,
    manifest: { ...manifest, endpoints: [...manifest.endpoints, 'id.wallet.example'] },
    origins: { 'id.wallet.example': issuer },
    secrets: { SALT_SEED: seed },
  });
}
