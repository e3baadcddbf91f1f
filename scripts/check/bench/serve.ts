/** Starts a server of this project for the benchmark. */

import { loadApplication } from '../../../src/server/application/load_application.ts';
import { type BootOptions, boot } from '../../../src/server/boot.ts';
import { BUILT_ADDON } from '../../../src/server/built_addon.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { NsmDevice } from '../../../src/server/nsm/device.ts';
import { createLog } from '../../../src/service/log.ts';
import { announce } from './announce.ts';

export async function serve(
  settings: Readonly<Record<string, string>>,
  fakes: Partial<Pick<BootOptions, 'origins' | 'secrets' | 'nsm'>>,
): Promise<void> {
  const env = { ...process.env, ...settings, PORT: '0' };
  const config = readServerConfig(env);
  const application = await loadApplication(new URL('../../../src/apps/', import.meta.url), config.app);
  const nsm = new NsmDevice({ path: config.nsmDevice, addonPath: BUILT_ADDON });
  const { url } = await boot({
    config,
    env,
    log: createLog(config.logLevel),
    nsm,
    ...application,
    ...fakes,
  });
  announce(url);
}
