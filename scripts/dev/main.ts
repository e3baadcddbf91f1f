/**
 * `make dev`: the server as in production, against stand-ins on loopback. This is the only entry that has
 * any; `src/main.ts` reaches none of them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadApplication } from '../../src/app.ts';
import { boot } from '../../src/boot.ts';
import { readConfig } from '../../src/config.ts';
import { ConfigError, EnclaveError } from '../../src/errors.ts';
import { createLog } from '../../src/log.ts';
import { SoftwareNsm } from './software_nsm.ts';
import { DEV_API_KEY, startWeatherStandIn } from './weather_api.ts';

const OUT = new URL('../../out/', import.meta.url);

/** Registers and root of the software NSM, as files for whoever wants to verify its documents. */
function emulateAttestation(): SoftwareNsm {
  const nsm = new SoftwareNsm();
  mkdirSync(OUT, { recursive: true });
  writeFileSync(new URL('dev.pcrs', OUT), nsm.pcrsFile());
  writeFileSync(new URL('dev-root.pem', OUT), nsm.rootPem());
  console.log(
    'Attestation is emulated: its documents prove nothing. Wrote out/dev.pcrs and out/dev-root.pem.',
  );
  return nsm;
}

async function main(): Promise<void> {
  const attest = process.env['ATTEST'];
  if (attest !== undefined && attest !== 'emulated') {
    throw new ConfigError('ATTEST must be emulated, or not set');
  }
  const weather = await startWeatherStandIn();
  // The developer's own key, if there is one, stays out of this.
  const env = { APP: 'weather', ...process.env, API_KEY: DEV_API_KEY };
  const config = readConfig(env);
  const application = await loadApplication(new URL('../../src/apps/', import.meta.url), config.app);
  const server = await boot({
    config,
    env,
    log: createLog(config.logLevel),
    ...application,
    origins: { 'api.weatherapi.com': weather.origin },
    ...(attest && { nsm: emulateAttestation() }),
  });
  console.log(`
The server runs against a stand-in of the weather service. Try, in another terminal:

  curl -s ${server.url}/process_data -H 'Content-Type: application/json' -d '{"payload":{"location":"San Francisco"}}'

Ctrl-C ends it.`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, async () => {
      await server.close();
      await weather.close();
      process.exit(0);
    });
  }
}

main().catch((error: unknown) => {
  if (!(error instanceof EnclaveError)) throw error;
  console.error(`make dev: ${error.message}`);
  process.exit(1);
});
