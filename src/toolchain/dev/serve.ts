/**
 * Runs the server as in production, but with fakes on loopback. `main.ts` runs it for `make dev`. Only this
 * entry has fakes; `src/server/main.ts` can't reach them.
 */
import { join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import pretty from 'pino-pretty';
import { ConfigError, isEnclaveError } from 'sui-enclave/errors';
import { toSchemaType } from 'sui-enclave/wire/schema_type';
import { DEV_EMULATED, PROGRAM } from 'sui-enclave-cli/places';
import { boot } from 'sui-enclave-server/boot';
import { BUILT_ADDON } from 'sui-enclave-server/built_addon';
import { type Config, readServerConfig } from 'sui-enclave-server/config';
import { NsmDevice } from 'sui-enclave-server/nsm/device';
import { NsmError } from 'sui-enclave-server/nsm/errors';
import type { NsmTransport } from 'sui-enclave-server/nsm/transport';
import { integer } from 'sui-enclave-service/env';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { handleUncaught } from 'sui-enclave-service/uncaught';
import { DevelopmentTrust } from 'sui-enclave-testing/development_trust';
import type { Fakes } from 'sui-enclave-testing/fakes';
import { isLoopback, originsOnLoopback } from 'sui-enclave-testing/loopback';
import { allowOnlyLoopback } from 'sui-enclave-testing/only_loopback';
import { loadForAuthor } from '../application.ts';
import { readFiles } from '../image/files.ts';
import { findProject, shortPath } from '../project.ts';
import { STAND_IN, settingsInImage, startFakes } from './application.ts';
import { writeDevelopmentRecord } from './development_record.ts';
import { reportFile } from './loaded_files.ts';

async function main(): Promise<void> {
  const attest = process.env['ATTEST'];
  if (attest !== undefined && attest !== 'emulated') {
    throw new ConfigError('ATTEST must be emulated, or not set');
  }
  const image = integer(process.env, 'EMULATED_IMAGE', { from: 1, to: 9, default: 1 });
  // At this level, each request writes a log line, whatever log level the image's server.env sets.
  const logLevel = process.env['RUST_LOG'] === undefined && { LOG_LEVEL: 'debug' };
  const project = findProject();
  const { name: app, folder } = project.application(
    process.env['APP'] ?? (project.isClone ? 'weather' : undefined),
  );
  const childEnvironment = { ...logLevel, ...process.env, APP: app };
  const out = pathToFileURL(`${resolve(process.env['OUT'] || join(project.root, 'out'))}/`);
  const startFolder = process.cwd();
  // In an image, the current folder is the application's folder too, /app.
  process.chdir(folder);
  reportFile(fileIn(folder, 'app.yaml'));
  const application = await loadForAuthor(folder, app);
  const { endpoints, secrets } = application.manifest;
  readFiles(folder, application.manifest);
  const fakes = await startFakes(folder);
  if (!fakes) {
    console.log(
      `There are no fakes for ${app} (no ${relative(project.root, join(folder, STAND_IN))}). The application calls its real hosts: ${formatList(endpoints)}. It reads its secrets from the environment: ${formatList(secrets)}.`,
    );
  }
  const env = { ...settingsInImage(folder, secrets), ...fakes?.settings, ...childEnvironment };
  const config = restrictOrigins(readServerConfig(env));
  const trust = attest && DevelopmentTrust.load(out, app, { image });
  const signingSeed = trust && (await requestSeed());
  const log = createLog(config.logLevel, readableLines(), { withMessages: true });
  allowOnlyLoopback();
  const server = await boot({
    config,
    env,
    log,
    ...application,
    ...(fakes && { origins: fakes.origins, secrets: fakes.secrets }),
    nsm: trust ? trust.nsm : openDevice(config.nsmDevice),
    ...(signingSeed && { signingSeed }),
  });
  signingSeed?.fill(0);
  // The files are written only now. Earlier, they would replace the files of another server that already runs
  // on this port.
  if (trust) {
    console.log(trust.save());
    writeDevelopmentRecord(project, { name: app, folder }, out, trust.pcrsName, trust.nsm.pcrsFile());
  }
  console.log(describe(server.url, endpoints, fakes, trust && { pcrs: trust.pcrsName, out, startFolder }));
  console.log('\nThe server restarts when a file that it has loaded changes. Ctrl-C ends it.');
  const signs = JSON.stringify(application.module.signs.map(toSchemaType));
  process.send?.({
    port: new URL(server.url).port || '80',
    pcrsName: trust?.pcrsName,
    signs,
    tasks: server.tasks,
  });
  process.on('message', (message: object) => {
    if ('run' in message) for (const task of server.tasks) void server.runTask(task);
  });
  const end = async () => {
    await server.close();
    await fakes?.close();
  };
  endOnSignal(end);
  // The parent process has ended without sending a signal.
  process.on('disconnect', () => process.exit(1));
  // Errors are handled from now on. An earlier error ends the start and prints its stack.
  handleUncaught()(log, (error) => server.onUncaught(error));
}

/**
 * Returns the config of a server that, on loopback, refuses requests from pages of other sites, unless
 * CORS_ORIGINS names their origins.
 */
function restrictOrigins(config: Config): Config {
  if (!isLoopback(config.host)) return config;
  const isSet = process.env['CORS_ORIGINS'] !== undefined;
  return { ...config, corsOrigins: originsOnLoopback(config.corsOrigins, isSet) };
}

/**
 * Requests the seed that `main.ts` keeps for the servers that it starts in turn. Returns undefined without
 * `main.ts`.
 */
async function requestSeed(): Promise<Uint8Array | undefined> {
  if (!process.send) return undefined;
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  // Other messages are for a server that listens.
  process.on('message', ({ seed }: { readonly seed?: Uint8Array }) => {
    if (seed) resolve(seed);
  });
  process.send({ wants: 'seed' });
  return await promise;
}

/** Opens the NSM's device. If there is none, the error says how a developer gets attestation documents. */
function openDevice(path: string): NsmTransport {
  const device = new NsmDevice({ path, addonPath: BUILT_ADDON });
  return {
    transact: (request) =>
      device.transact(request).catch((error: unknown) => {
        if (!(error instanceof NsmError && error.code === 'NSM_UNAVAILABLE')) throw error;
        // The error has no cause, since the log would print the stack of the cause.
        throw new NsmError(
          'NSM_UNAVAILABLE',
          `${error.message} For documents of an emulated NSM, start ${DEV_EMULATED}.`,
        );
      }),
    close: () => device.close(),
  };
}

/** Returns an output that formats pino's JSON lines for people. */
function readableLines() {
  return pretty({
    colorize: process.stdout.isTTY ?? false,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'boot,secrets_missing',
    sync: true,
  });
}

function describe(
  url: string,
  endpoints: readonly string[],
  fakes: Fakes | undefined,
  trust: { readonly pcrs: string; readonly out: URL; readonly startFolder: string } | undefined,
): string {
  const lines = [''];
  if (fakes) {
    const realHosts = endpoints.filter((host) => !(host in fakes.origins));
    const realText =
      realHosts.length > 0 ? `; the application calls these real hosts: ${formatList(realHosts)}` : '';
    lines.push(`The server runs against fakes of ${formatList(Object.keys(fakes.origins))}${realText}.`);
    lines.push(...(fakes.notes ?? []));
  }
  const attestation =
    trust &&
    `${PROGRAM} verify ${url} --pcrs ${formatPath(trust.pcrs, trust)} --root ${formatPath('dev-root.pem', trust)}`;
  if (attestation === undefined) {
    lines.push(
      `The server does not attest its key. ${DEV_EMULATED} starts a server that does, and needs no NSM addon.`,
    );
  }
  const examples = [
    ...(fakes ? [formatCurl(url, fakes.example)] : []),
    ...(attestation ? [attestation] : []),
  ];
  if (examples.length > 0)
    lines.push('Try, in another terminal:', '', ...examples.map((line) => `  ${line}`));
  return lines.join('\n');
}

/** Formats a path as a user would type it in the folder where the command started. */
function formatPath(
  name: string,
  { out, startFolder }: { readonly out: URL; readonly startFolder: string },
): string {
  return shortPath(startFolder, fileURLToPath(new URL(name, out)));
}

function fileIn(folder: string, name: string): URL {
  return pathToFileURL(join(folder, name));
}

function formatList(names: readonly string[]): string {
  return names.join(', ') || 'none';
}

function formatCurl(url: string, { path, body }: Fakes['example']): string {
  if (!body) return `curl -s ${url}${path}`;
  const json = JSON.stringify(body).replaceAll("'", `'\\''`);
  return `curl -s ${url}${path} -H 'Content-Type: application/json' -d '${json}'`;
}

main().catch((error: unknown) => {
  if (!isEnclaveError(error)) throw error;
  console.error(`sui-enclave dev: ${error.message}`);
  process.exit(1);
});
