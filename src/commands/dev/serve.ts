/**
 * The server as in production, against fakes on loopback, as `main.ts` runs it for `make dev`. Only this
 * entry has fakes; `src/server/main.ts` can't reach them.
 */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pretty from 'pino-pretty';
import { ConfigError, EnclaveError } from 'sui-enclave/errors';
import { boot } from 'sui-enclave-server/boot';
import { BUILT_ADDON } from 'sui-enclave-server/built_addon';
import { readServerConfig } from 'sui-enclave-server/config';
import { loadApplication } from 'sui-enclave-server/load_application';
import { NsmDevice } from 'sui-enclave-server/nsm/device';
import { NsmError } from 'sui-enclave-server/nsm/errors';
import type { NsmTransport } from 'sui-enclave-server/nsm/transport';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { DevelopmentTrust } from 'sui-enclave-testing/development_trust';
import type { StandIns } from 'sui-enclave-testing/stand_ins';
import { parseServerEnv } from '../image/settings.ts';
import { reportFile } from './loaded_files.ts';

const APPS = new URL('../../apps/', import.meta.url);
const OUT = new URL('../../../out/', import.meta.url);

async function main(): Promise<void> {
  const attest = process.env['ATTEST'];
  if (attest !== undefined && attest !== 'emulated') {
    throw new ConfigError('ATTEST must be emulated, or not set');
  }
  // At this level each request leaves a line, whatever an image's server.env sets.
  const logLevel = process.env['RUST_LOG'] === undefined && { LOG_LEVEL: 'debug' };
  const given = { APP: 'weather', ...logLevel, ...process.env };
  const { app } = readServerConfig(given);
  reportFile(new URL(`${app}/app.yaml`, APPS));
  const application = await loadApplication(APPS, app);
  const { endpoints, secrets } = application.manifest;
  const standIns = await startStandIns(app);
  if (!standIns) {
    console.log(
      `There are no stand-ins for ${app} (no src/apps/${app}/stand_in.ts). It calls its real hosts: ${list(endpoints)}. It reads its secrets from the environment: ${list(secrets)}.`,
    );
  }
  const env = { ...serverEnv(app, secrets), ...standIns?.settings, ...given };
  const config = readServerConfig(env);
  const trust = attest && DevelopmentTrust.load(OUT, app);
  const signingSeed = trust && (await keptSeed());
  const server = await boot({
    config,
    env,
    log: createLog(config.logLevel, readableLines(), { withMessages: true }),
    ...application,
    ...(standIns && { origins: standIns.origins, secrets: standIns.secrets }),
    nsm: trust ? trust.nsm : deviceOrAdvice(config.nsmDevice),
    ...(signingSeed && { signingSeed }),
  });
  signingSeed?.fill(0);
  // Written only now: earlier, they would replace the files of a server that already runs on this port.
  if (trust) console.log(trust.save());
  console.log(describe(server.url, endpoints, standIns, trust?.pcrsName));
  console.log('\nIt restarts when a file that it has loaded changes. Ctrl-C ends it.');
  process.send?.({ port: new URL(server.url).port || '80' });
  const end = async () => {
    await server.close();
    await standIns?.close();
  };
  endOnSignal(end);
  // The parent process has ended without sending a signal.
  process.on('disconnect', () => process.exit(1));
}

/** The seed that `main.ts` keeps for the servers that it starts one after the other; undefined without `main.ts`. */
async function keptSeed(): Promise<Uint8Array | undefined> {
  if (!process.send) return undefined;
  process.send({ wants: 'seed' });
  const [{ seed }] = await once(process, 'message');
  return seed;
}

/** The NSM's device. Where there is none, its error says how a developer gets documents nevertheless. */
function deviceOrAdvice(path: string): NsmTransport {
  const device = new NsmDevice({ path, addonPath: BUILT_ADDON });
  return {
    transact: (request) =>
      device.transact(request).catch((error: unknown) => {
        if (!(error instanceof NsmError && error.code === 'NSM_UNAVAILABLE')) throw error;
        // Without the cause, whose stack the log would print.
        throw new NsmError(
          'NSM_UNAVAILABLE',
          `${error.message} For documents of an emulated NSM, start make dev ATTEST=emulated.`,
        );
      }),
    close: () => device.close(),
  };
}

/** pino's lines of JSON as a person reads them. */
function readableLines() {
  return pretty({
    colorize: process.stdout.isTTY ?? false,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'boot,secrets_missing',
    sync: true,
  });
}

/** The settings that the image's build would put into the environment of the application. */
function serverEnv(app: string, secrets: readonly string[]): Record<string, string> {
  const file = new URL(`${app}/server.env`, APPS);
  reportFile(file);
  return existsSync(file) ? parseServerEnv(readFileSync(file, 'utf8'), secrets) : {};
}

async function startStandIns(app: string): Promise<StandIns | undefined> {
  const file = new URL(`${app}/stand_in.ts`, APPS);
  reportFile(file);
  if (!existsSync(file)) return undefined;
  const { start }: { start: () => Promise<StandIns> } = await import(file.href);
  return start();
}

function describe(
  url: string,
  endpoints: readonly string[],
  standIns: StandIns | undefined,
  pcrsName: string | undefined,
): string {
  const lines = [''];
  if (standIns) {
    const real = endpoints.filter((host) => !(host in standIns.origins));
    const rest = real.length > 0 ? `; these are the real ones: ${list(real)}` : '';
    lines.push(`The server runs against stand-ins of ${list(Object.keys(standIns.origins))}${rest}.`);
    lines.push(...(standIns.notes ?? []));
  }
  const attestation =
    pcrsName && `npm run verify -- ${url} --pcrs ${path(pcrsName)} --root ${path('dev-root.pem')}`;
  if (attestation === undefined) {
    lines.push('It does not attest its key: make dev ATTEST=emulated does, and needs no NSM addon.');
  }
  const examples = [
    ...(standIns ? [curl(url, standIns.example)] : []),
    ...(attestation ? [attestation] : []),
  ];
  if (examples.length > 0)
    lines.push('Try, in another terminal:', '', ...examples.map((line) => `  ${line}`));
  return lines.join('\n');
}

/** The path as a command that runs in the repository's folder accepts it. */
function path(name: string): string {
  const file = fileURLToPath(new URL(name, OUT));
  return file.startsWith(`${process.cwd()}/`) ? file.slice(process.cwd().length + 1) : file;
}

function list(names: readonly string[]): string {
  return names.join(', ') || 'none';
}

function curl(url: string, { path, body }: StandIns['example']): string {
  if (!body) return `curl -s ${url}${path}`;
  const json = JSON.stringify(body).replaceAll("'", `'\\''`);
  return `curl -s ${url}${path} -H 'Content-Type: application/json' -d '${json}'`;
}

main().catch((error: unknown) => {
  if (!(error instanceof EnclaveError)) throw error;
  console.error(`make dev: ${error.message}`);
  process.exit(1);
});
