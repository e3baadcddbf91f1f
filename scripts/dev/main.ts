/**
 * `make dev`: the server as in production, against stand-ins on loopback. This is the only entry that has
 * any; `src/server/main.ts` reaches none of them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadApplication } from '../../src/app.ts';
import { ConfigError, EnclaveError } from '../../src/errors.ts';
import { boot } from '../../src/server/boot.ts';
import { readConfig } from '../../src/server/config.ts';
import { createLog } from '../../src/server/log.ts';
import { endOnSignal } from '../../src/server/signals.ts';
import { parseServerEnv } from '../image/settings.ts';
import { SoftwareNsm } from './software_nsm.ts';
import type { StandIns } from './stand_ins.ts';

const APPS = new URL('../../src/apps/', import.meta.url);
const OUT = new URL('../../out/', import.meta.url);

async function main(): Promise<void> {
  const attest = process.env['ATTEST'];
  if (attest !== undefined && attest !== 'emulated') {
    throw new ConfigError('ATTEST must be emulated, or not set');
  }
  const given = { APP: 'weather', ...process.env };
  const { app } = readConfig(given);
  const application = await loadApplication(APPS, app);
  const { endpoints, secrets } = application.manifest;
  const standIns = await startStandIns(app);
  if (!standIns) {
    console.log(
      `Nothing stands in for the world of ${app} (there is no scripts/dev/apps/${app}.ts). It asks its real hosts: ${list(endpoints)}. It takes its secrets from the environment: ${list(secrets)}.`,
    );
  }
  const env = { ...serverEnv(app, secrets), ...standIns?.settings, ...given };
  const config = readConfig(env);
  const nsm = attest && new SoftwareNsm();
  const server = await boot({
    config,
    env,
    log: createLog(config.logLevel, undefined, { withMessages: true }),
    ...application,
    ...(standIns && { origins: standIns.origins, secrets: standIns.secrets }),
    ...(nsm && { nsm }),
  });
  // Not earlier: they would take the place of those of a server that runs.
  if (nsm) writeTrust(nsm);
  if (standIns) {
    console.log(`\n${describe(endpoints, standIns)} Try, in another terminal:

  ${curl(server.url, standIns.example)}`);
  }
  console.log('\nCtrl-C ends it.');
  endOnSignal(async () => {
    await server.close();
    await standIns?.close();
  });
}

/** What the image's build would put into the environment of the application. */
function serverEnv(app: string, secrets: readonly string[]): Record<string, string> {
  const file = new URL(`${app}/server.env`, APPS);
  return existsSync(file) ? parseServerEnv(readFileSync(file, 'utf8'), secrets) : {};
}

async function startStandIns(app: string): Promise<StandIns | undefined> {
  const file = new URL(`./apps/${app}.ts`, import.meta.url);
  if (!existsSync(file)) return undefined;
  const { start }: { start: () => Promise<StandIns> } = await import(file.href);
  return start();
}

/** Registers and root of the software NSM, as files for whoever wants to verify its documents. */
function writeTrust(nsm: SoftwareNsm): void {
  mkdirSync(OUT, { recursive: true });
  writeFileSync(new URL('dev.pcrs', OUT), nsm.pcrsFile());
  writeFileSync(new URL('dev-root.pem', OUT), nsm.rootPem());
  console.log(
    'Attestation is emulated: its documents prove nothing. Wrote out/dev.pcrs and out/dev-root.pem.',
  );
}

function describe(endpoints: readonly string[], { origins }: StandIns): string {
  const real = endpoints.filter((host) => !(host in origins));
  const rest = real.length > 0 ? `; these are the real ones: ${list(real)}` : '';
  return `The server runs against stand-ins of ${list(Object.keys(origins))}${rest}.`;
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
