import { randomBytes } from 'node:crypto';
import { fstatSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { AppContext, ApplicationModule, Manifest } from '../app.ts';
import { ConfigError } from '../errors.ts';
import { NsmDevice } from '../nsm/device.ts';
import { Documents, timestampOf } from '../nsm/documents.ts';
import { NsmError, unusableAnswer } from '../nsm/errors.ts';
import { Nsm } from '../nsm/nsm.ts';
import type { NsmTransport } from '../nsm/transport.ts';
import type { EnclaveState } from '../sealing/secrets.ts';
import { encodeUserData } from '../sealing/user_data.ts';
import { type BootReport, makeBootReport, readLastEnd } from './boot_report.ts';
import { Clock, CONFIRM_EVERY_MS } from './clock.ts';
import type { Config, Env } from './config.ts';
import { EndpointHealth } from './health.ts';
import { listen, shutDown } from './http/http_server.ts';
import { EphemeralKey } from './key.ts';
import { hideFromLog, type Logger } from './log.ts';
import { Provisioning } from './provisioning.ts';
import { SealingKey } from './sealing_key.ts';
import { receiveSecrets, requireNotInEnv, Secrets, secretsFromEnv } from './secrets.ts';
import { createEnclaveServer } from './server.ts';
import { Signer } from './signer.ts';
import { createUpstreams } from './upstream.ts';

/** Nonce of the document that the clock is compared with. */
const CLOCK_NONCE_BYTES = 16;

export interface BootOptions {
  readonly config: Config;
  readonly env: Env;
  readonly log: Logger;
  readonly manifest: Manifest;
  readonly module: ApplicationModule;
  /** The server's version, for the boot report. */
  readonly version?: string;
  /** Absolute path of the NSM addon. Default: `build/nsm.node` of the repository. */
  readonly nsmAddon?: string;
  /** For development and tests, never from the environment: the origin to use instead of `https://<host>`. */
  readonly origins?: Readonly<Record<string, string>>;
  /** For development and tests, never from the environment: the secrets, instead of those of the environment. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** For development and tests, never from the environment: a replacement for the NSM's device. */
  readonly nsm?: NsmTransport;
  /** For development and tests, never from the environment: the signing key's seed, 32 bytes, instead of a new one. */
  readonly signingSeed?: Uint8Array;
}

export interface RunningServer {
  readonly url: string;
  readonly publicKey: Uint8Array;
  /** Refuses new connections, finishes the requests in flight within the grace period, then stops. */
  close(): Promise<void>;
}

/**
 * Starts the server: entropy, key, application, socket, and then the secrets.
 *
 * @throws ConfigError if the options are invalid; NsmError if an NSM is present and fails, or is required and
 *   missing
 */
export async function boot(options: BootOptions): Promise<RunningServer> {
  const { config, env, log, manifest, module, version = 'development', nsmAddon, origins = {} } = options;
  hideFromLog(log, manifest.secrets);
  const upstream = createUpstreams(manifest, origins);
  const { secretsFd } = config;
  const secrets = startSecrets(options);
  const handOff = secretsFd === undefined ? undefined : openPipe(secretsFd);
  if (config.reportFd !== undefined) requirePipe(config.reportFd, 'REPORT_FD');

  const nsm = new Nsm(
    options.nsm ??
      new NsmDevice({ path: config.nsmDevice, ...(nsmAddon !== undefined && { addonPath: nsmAddon }) }),
  );
  const nsmRandom = await nsm.getRandom().catch((error: unknown) => {
    const isAbsent = error instanceof NsmError && error.code === 'NSM_UNAVAILABLE';
    if (isAbsent && !config.nsmRequired) return undefined;
    throw error;
  });
  const { key, sealingKey } = createKeys(nsmRandom, options.signingSeed);
  const { publicKey } = key;
  const userData = encodeUserData({ sealingKey: sealingKey.publicKey, application: config.app, version });
  const documents = new Documents(nsm, { publicKey, userData });
  const clock = new Clock(config.clockState);
  const confirmClock = async () => {
    const nonce = randomBytes(CLOCK_NONCE_BYTES);
    const asked = Date.now();
    const document = await documents.urgent(nonce);
    clock.compare(timestampOf(document), asked, Date.now());
  };
  const warn = (err: unknown) => log.warn({ err }, 'the NSM did not confirm the clock');
  // Callers need the attestation of the key: an NSM that can't attest is useless, so a required one stops the start.
  if (config.nsmRequired) await confirmClock();
  else if (nsmRandom) await confirmClock().catch(warn);
  const confirming =
    nsmRandom && setInterval(() => void confirmClock().catch(warn), CONFIRM_EVERY_MS).unref();

  const entropy = nsmRandom ? ['kernel', 'nsm'] : ['kernel'];
  const registers = await readRegisters(nsm).catch((error: unknown) => {
    if (config.nsmRequired) throw error;
    return undefined;
  });
  if (config.secrets === 'sealed' && !registers) {
    throw new ConfigError('SECRETS=sealed needs an NSM: sealed secrets are bound to its registers');
  }
  const report = makeBootReport({
    ...{ version, app: config.app, pcr0: registers?.[0], entropy },
    clock: clock.state(),
    lastEnd: readLastEnd(config.lastEnd),
  });

  const signer = new Signer(key, module.signs);
  const context: AppContext = {
    env,
    log,
    secret: (name) => secrets.get(name),
    upstream,
    sign: (type, timestampMs, data) => {
      if (config.clockRequired) clock.requireConfirmed();
      return signer.sign(type, timestampMs, data);
    },
  };
  const application = module.create(context);
  if (application.checkSecrets) secrets.checkWith(application.checkSecrets);
  const health = new EndpointHealth(manifest.endpoints, upstream);
  const provisioning = new Provisioning({
    secrets,
    key: sealingKey,
    provisioners: manifest.provisioners ?? [],
    state: registers && { application: config.app, version, registers, signingKey: publicKey },
    accepted: config.secrets,
  });
  const parts = {
    config,
    log,
    application,
    manifest,
    publicKey,
    sealingKey,
    secrets,
    provisioning,
    health,
    upstreamHosts: manifest.endpoints.length,
    documents,
    clock,
    report,
  };
  const server = createEnclaveServer(parts);
  const url = await listen(server, config);
  log.info(
    {
      app: config.app,
      url,
      public_key: Buffer.from(publicKey).toString('hex'),
      boot: report,
      secrets_missing: secrets.missing(),
    },
    'listening',
  );
  if (config.reportFd !== undefined) sendReport(config.reportFd, report, log);
  const receiving = handOff && receiveSecrets(secrets, handOff, log, (json) => provisioning.handOff(json));
  // Closes the port of the hand-off once the secrets have arrived at POST /secrets.
  if (handOff) secrets.whenComplete(() => handOff.destroy());

  return {
    url,
    publicKey,
    close: async () => {
      await shutDown(server, config.shutdownGraceMs);
      clearInterval(confirming);
      nsm.close();
      handOff?.destroy();
      await receiving;
    },
  };
}

/** @param nsmRandom from GetRandom, which both keys use; wiped */
function createKeys(nsmRandom: Uint8Array | undefined, signingSeed: Uint8Array | undefined) {
  try {
    const key = signingSeed ? EphemeralKey.of(signingSeed) : EphemeralKey.create(nsmRandom);
    return { key, sealingKey: SealingKey.create(nsmRandom) };
  } finally {
    nsmRandom?.fill(0);
  }
}

/** @returns complete secrets, unless a hand-off will provide them */
function startSecrets({ config, env, manifest, module, secrets: given }: BootOptions): Secrets {
  const { secretsNotInEnvironment = [] } = module;
  requireNotInEnv(secretsNotInEnvironment, env);
  if (config.secrets === 'sealed') return startSealedSecrets(config, env, manifest);
  if (config.secretsFd === undefined && !given) {
    return secretsFromEnv(manifest.secrets, env, secretsNotInEnvironment);
  }
  const secrets = new Secrets(manifest.secrets);
  if (config.secretsFd === undefined && secrets.missing().length > 0) secrets.provide(given);
  return secrets;
}

/** @throws ConfigError if secrets could not arrive, or are in the environment */
function startSealedSecrets({ secretsFd }: Config, env: Env, manifest: Manifest): Secrets {
  const { secrets: names, provisioners = [] } = manifest;
  const plain = names.flatMap((name) => [name, `${name}_FILE`]).find((name) => env[name] !== undefined);
  if (plain !== undefined) {
    throw new ConfigError(`${plain} must not be set: SECRETS=sealed accepts no secret from the environment`);
  }
  if (names.length > 0 && secretsFd === undefined && provisioners.length === 0) {
    throw new ConfigError(
      'SECRETS=sealed leaves no way for the secrets: name provisioners in app.yaml, or set SECRETS_FD',
    );
  }
  return new Secrets(names);
}

const REGISTER_BYTES = 48;

/** PCR0 to PCR2. @throws NsmError */
async function readRegisters(nsm: Nsm): Promise<EnclaveState['registers']> {
  const read = async (index: number) => {
    const { data } = await nsm.describePcr(index);
    if (data.length !== REGISTER_BYTES) throw unusableAnswer(`PCR${index} is not of SHA-384`);
    return data;
  };
  return [await read(0), await read(1), await read(2)];
}

function openPipe(fd: number): Socket {
  requirePipe(fd, 'SECRETS_FD');
  return new Socket({ fd, readable: true, writable: false });
}

function requirePipe(fd: number, name: string): void {
  try {
    const stat = fstatSync(fd);
    if (stat.isFIFO() || stat.isSocket()) return;
  } catch {
    // The descriptor is not open: the same mistake.
  }
  throw new ConfigError(`${name} must be a pipe or a socket that the server was started with`);
}

/** A missing reader is not an error: the server works without one. */
function sendReport(fd: number, report: BootReport, log: Logger): void {
  try {
    writeSync(fd, `${JSON.stringify(report)}\n`);
  } catch (error) {
    log.warn({ err: error }, 'could not write the boot report');
  }
}
