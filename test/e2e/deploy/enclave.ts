/**
 * Runs an emulated enclave as a process: the real server with the emulated NSM, and the application `tally`,
 * which prints what it executes. It prints `listening` once it serves, and drains at SIGTERM, as in
 * production.
 *
 * Arguments: a folder (a URL that ends in a slash) with the root that the enclaves share, port.
 */

import { loadApplication } from '../../../src/server/application/load_application.ts';
import { boot } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/service/log.ts';
import { endOnSignal } from '../../../src/service/signals.ts';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';

const [folder = '', port = ''] = process.argv.slice(2);
// A call takes so long that it still runs when the test has seen it begin and kills this process, even on a
// busy machine.
const env = { APP: 'tally', PORT: port, LOG_LEVEL: 'warn', TALLY_MS: '150' };
const config = readServerConfig(env);
const server = await boot({
  config,
  env,
  log: createLog(config.logLevel),
  ...(await loadApplication(new URL('../../fixtures/apps/', import.meta.url), config.app)),
  nsm: DevelopmentTrust.load(new URL(folder), 'weather').nsm,
});
endOnSignal(() => server.close());
process.stdout.write('listening\n');
