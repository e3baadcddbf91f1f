import { ConfigError } from 'sui-enclave/errors';
import type { EnclaveState } from 'sui-enclave/sealing/secrets';
import { encodeUserData } from 'sui-enclave/sealing/user_data';
import { listen, shutDown } from 'sui-enclave-service/http/http_server';
import { type MetricsListener, serveMetrics } from 'sui-enclave-service/http/metrics_listener';
import { hideFromLog, type Logger } from 'sui-enclave-service/log';
import type { Env } from 'sui-enclave-service/settings';
import { createUpstreams } from 'sui-enclave-service/upstream';
import { presentTask } from 'sui-enclave-service/waiting';
import type { AppContext, Application, ApplicationModule } from './application/app.ts';
import type { Manifest } from './application/manifest.ts';
import type { Config } from './config.ts';
import { EphemeralKey } from './keys/key.ts';
import { Signer } from './keys/signer.ts';
import { Clock } from './nsm/clock.ts';
import { Documents } from './nsm/documents.ts';
import { Nsm } from './nsm/nsm.ts';
import { keepClockConfirmed, readNsmRegisters, readRandom } from './nsm/nsm_steps.ts';
import type { NsmTransport } from './nsm/transport.ts';
import { openHandOff, requirePipe, sendReport } from './pipes.ts';
import { type BootReport, makeBootReport, readLastEnd } from './reports/boot_report.ts';
import { declaredEvent, Events, logSink, pipeSink, requireSameEvents } from './reports/events.ts';
import { UpstreamHealth } from './reports/health.ts';
import { Metrics } from './reports/metrics.ts';
import { SealingKey } from './sealing/sealing_key.ts';
import { Provisioning } from './secrets/provisioning.ts';
import { startSecrets } from './secrets/secret_sources.ts';
import { receiveSecrets, type Secrets } from './secrets/secrets.ts';
import { createEnclaveServer } from './server.ts';
import type { TaskClock, TaskOutcome } from './tasks/task.ts';
import { Tasks } from './tasks/tasks.ts';

export interface BootOptions {
  readonly config: Config;
  readonly env: Env;
  readonly log: Logger;
  readonly manifest: Manifest;
  readonly module: ApplicationModule;
  /** The content of schema.json. Default: none. */
  readonly schema?: string | undefined;
  /** The NSM's device, or for development and tests a replacement, which the environment can't choose. */
  readonly nsm: NsmTransport;
  /** The server's version, for the boot report. */
  readonly version?: string;
  /**
   * Origins to use instead of `https://<host>`, by host. For development and tests: the environment can't set
   * them.
   */
  readonly origins?: Readonly<Record<string, string>>;
  /** Secrets instead of those of the environment, for development and tests. */
  readonly secrets?: Readonly<Record<string, string>>;
  /**
   * Seed of the signing key, 32 bytes, instead of a new one. For development and tests: the environment can't
   * set it.
   */
  readonly signingSeed?: Uint8Array;
  /** Clock by which tasks run, for tests. Default: the process's monotonic clock. */
  readonly taskClock?: TaskClock;
}

export interface RunningServer {
  readonly url: string;
  readonly publicKey: Uint8Array;
  /** URL of the metrics. Undefined without `METRICS_PORT`. */
  readonly metricsUrl: string | undefined;
  /** Records an uncaught error, which no answer reports. */
  onUncaught(error: unknown): void;
  /** Names of the application's tasks. */
  readonly tasks: readonly string[];
  /**
   * Runs a task now, for development and tests. If a run has begun already, waits for its end instead.
   *
   * @throws ApplicationMistake if there is no such task
   */
  runTask(name: string): Promise<TaskOutcome>;
  /**
   * Refuses new connections, begins no further run of a task, and aborts the runs that have begun. Waits up
   * to the grace period for these runs and the requests in flight, then stops.
   */
  close(): Promise<void>;
}

/**
 * Starts the server: reads random bytes, makes the keys, creates the application, listens, and then receives
 * the secrets.
 *
 * @throws ConfigError if the options are invalid; NsmError if an NSM is present and fails, or is required and
 *   missing
 */
export async function boot(options: BootOptions): Promise<RunningServer> {
  const { config, log, manifest, module, origins = {} } = options;
  const { secretsFd, reportFd } = config;
  hideFromLog(log, manifest.secrets);
  const secrets = startSecrets(options);
  const events = openEvents(options);
  const handOff = secretsFd === undefined ? undefined : openHandOff(secretsFd);
  if (reportFd !== undefined) requirePipe(reportFd, 'REPORT_FD');

  const enclave = await startEnclave(options, events);
  const { publicKey, sealingKey, documents, clock, report } = enclave;
  const tasks = new Tasks({
    log,
    clock: options.taskClock,
    isReady: () => secrets.missing().length === 0 && (!config.clockRequired || clock.isConfirmed),
    onReport: (report) => events?.emit('task', report),
  });
  const metrics = createMetrics(config, secrets, clock, events, tasks);
  const upstream = createUpstreams(manifest, origins, undefined, (isAnswered) =>
    metrics?.upstreamEnded(isAnswered),
  );
  const application = createApplication(options, enclave, secrets, { upstream, metrics, events, tasks });
  const provisioning = createProvisioning(options, enclave, secrets);
  const server = createEnclaveServer({
    config,
    log,
    manifest,
    application,
    secrets,
    provisioning,
    schema: options.schema,
    before: module.before ?? [],
    publicKey,
    sealingKey,
    documents,
    clock,
    report,
    metrics,
    events,
    tasks,
    health: new UpstreamHealth(manifest.endpoints, upstream),
    upstreamHosts: manifest.endpoints.length,
  });
  const url = await listen(server, config);
  const listener = metrics && (await exposeMetrics(config, metrics));
  announce(options, enclave, secrets, url);
  events?.emit('listening', { ms: Math.round(performance.now()) });
  if (reportFd !== undefined) sendReport(reportFd, report, log);
  const receiving = handOff && receiveSecrets(secrets, handOff, log, (json) => provisioning.handOff(json));
  // Closes the port of the hand-off once the secrets have arrived at POST /secrets.
  secrets.whenComplete(() => {
    handOff?.destroy();
    events?.emit('secrets', { missing: 0 });
  });
  tasks.start();

  return {
    url,
    publicKey,
    metricsUrl: listener?.url,
    onUncaught: (error) => {
      metrics?.uncaught();
      events?.uncaught(error);
    },
    tasks: tasks.states().map(({ name }) => name),
    runTask: (name) => tasks.run(name),
    close: async () => {
      const { shutdownGraceMs } = config;
      await Promise.all([shutDown(server, shutdownGraceMs), tasks.stop(shutdownGraceMs)]);
      listener?.close();
      metrics?.close();
      events?.close();
      enclave.close();
      handOff?.destroy();
      await receiving;
    },
  };
}

/** Keys, and the NSM's statements about them and this enclave. */
interface Enclave {
  readonly key: EphemeralKey;
  readonly publicKey: Uint8Array;
  readonly sealingKey: SealingKey;
  readonly documents: Documents;
  readonly clock: Clock;
  /** Registers of the image. Undefined without an NSM. */
  readonly registers: EnclaveState['registers'] | undefined;
  readonly report: BootReport;
  close(): void;
}

/** @throws NsmError; ConfigError if `SECRETS=sealed` is set, and no registers can be read */
async function startEnclave(options: BootOptions, events: Events | undefined): Promise<Enclave> {
  const { config, log, version = 'development', signingSeed } = options;
  const { nsmRequired } = config;
  const nsm = new Nsm(options.nsm);
  const random = await readRandom(nsm, nsmRequired);
  const entropy = random ? ['kernel', 'nsm'] : ['kernel'];
  const { key, sealingKey } = createKeys(random, signingSeed);
  const { publicKey } = key;
  const userData = encodeUserData({ sealingKey: sealingKey.publicKey, application: config.app, version });
  const documents = new Documents(nsm, { publicKey, userData });
  const clock = new Clock(config.clockState, undefined, (isConfirmed, differenceMs) =>
    events?.emit('clock', {
      code: isConfirmed ? 'CLOCK_CONFIRMED' : 'CLOCK_UNCONFIRMED',
      difference_ms: differenceMs,
    }),
  );
  const stopClock = random && (await keepClockConfirmed(clock, documents, log, nsmRequired));
  const registers = await readNsmRegisters(nsm, nsmRequired);
  if (config.secrets === 'sealed' && !registers) {
    throw new ConfigError(
      'SECRETS=sealed needs an NSM whose registers can be read: secrets are sealed for them',
    );
  }
  const report = makeBootReport({
    version,
    app: config.app,
    pcr0: registers?.[0],
    entropy,
    clock: clock.state(),
    lastEnd: readLastEnd(config.lastEnd),
  });
  const close = () => {
    stopClock?.();
    nsm.close();
  };
  return { key, publicKey, sealingKey, documents, clock, registers, report, close };
}

/** @throws ConfigError */
function openEvents({ config, log, manifest, module }: BootOptions): Events | undefined {
  requireSameEvents(manifest.events, module.events);
  if (!config.events) return undefined;
  const { eventsFd } = config;
  if (eventsFd === undefined) return new Events(logSink(log));
  requirePipe(eventsFd, 'EVENTS_FD');
  return new Events(pipeSink(eventsFd));
}

function createMetrics(
  config: Config,
  secrets: Secrets,
  clock: Clock,
  events: Events | undefined,
  tasks: Tasks,
): Metrics | undefined {
  if (config.metricsPort === undefined) return undefined;
  return new Metrics(config.requests, () => ({
    secretsMissing: secrets.missing().length,
    isClockConfirmed: clock.isConfirmed,
    hasPartEnded: readLastEnd(config.lastEnd) !== null,
    eventsDropped: events?.dropped,
    tasks: tasks.states(),
  }));
}

/** @throws ConfigError if the port can't be listened on */
async function exposeMetrics({ metricsPort: port = 0 }: Config, metrics: Metrics): Promise<MetricsListener> {
  return await serveMetrics({ port, expose: () => metrics.snapshot });
}

function createApplication(
  { config, env, log, module, manifest }: BootOptions,
  { key, clock }: Enclave,
  secrets: Secrets,
  {
    upstream,
    metrics,
    events,
    tasks,
  }: {
    readonly upstream: AppContext['upstream'];
    readonly metrics: Metrics | undefined;
    readonly events: Events | undefined;
    readonly tasks: Tasks;
  },
): Application {
  const signer = new Signer(key, module.signs);
  const application = module.create({
    env,
    log,
    upstream,
    secret: (name) => secrets.get(name),
    sign: (type, timestampMs, data) => {
      if (config.clockRequired) clock.requireConfirmed();
      presentTask()?.takeSignature();
      const signed = signer.sign(type, timestampMs, data);
      metrics?.signed();
      return signed;
    },
    latest: (name) => tasks.latest(name),
    emit: (name, fields) => {
      const event = declaredEvent(manifest.events ?? {}, name, fields);
      events?.application(event);
    },
  });
  if (application.checkSecrets) secrets.checkWith(application.checkSecrets);
  tasks.set(application.tasks);
  return application;
}

function createProvisioning(
  { config, manifest, version = 'development' }: BootOptions,
  { registers, publicKey, sealingKey }: Enclave,
  secrets: Secrets,
): Provisioning {
  return new Provisioning({
    secrets,
    key: sealingKey,
    provisioners: manifest.provisioners ?? [],
    state: registers && { application: config.app, version, registers, signingKey: publicKey },
    accepted: config.secrets,
  });
}

function announce(
  { config, log }: BootOptions,
  { publicKey, report }: Enclave,
  secrets: Secrets,
  url: string,
): void {
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
}

/** @param nsmRandom random bytes from GetRandom, which both keys use. This function wipes them */
function createKeys(nsmRandom: Uint8Array | undefined, signingSeed: Uint8Array | undefined) {
  try {
    const key = signingSeed ? EphemeralKey.of(signingSeed) : EphemeralKey.create(nsmRandom);
    return { key, sealingKey: SealingKey.create(nsmRandom) };
  } finally {
    nsmRandom?.fill(0);
  }
}
