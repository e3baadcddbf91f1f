/** Reads the config of a rollout, on nodes that lag behind. */
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { RolloutError } from './errors.ts';
import type { Memory } from './memory.ts';
import type { World } from './world.ts';

/** The node that shows the config, and the versions of it that the rollout has seen. */
export interface Seen {
  readonly world: World;
  readonly memory: Memory;
}

/** Interval at which an awaited state is read, in milliseconds. */
export const LOOK_MS = 500;
/** Maximum time that a node takes to show an executed transaction, in milliseconds. */
export const SHOWN_MS = 60_000;

/**
 * Returns the config in at least the newest version that the rollout has seen. Several nodes may share an
 * address, and one of them may lag. An old config could make a step look done, or a later step look not
 * begun.
 *
 * @throws RolloutError: ROLLOUT_CONFIG if the node lags for longer than nodes do; the errors of
 *   `World.config`
 */
export async function readConfig({ world, memory }: Seen): Promise<EnclaveConfig> {
  const end = world.clock() + SHOWN_MS;
  for (;;) {
    const config = await world.config();
    const { configVersion } = config;
    if (configVersion >= memory.newestVersion) {
      memory.see(configVersion);
      return config;
    }
    if (world.clock() >= end) {
      throw new RolloutError(
        'ROLLOUT_CONFIG',
        `the node shows version ${configVersion} of the config ${config.id}, and this rollout has seen version ${memory.newestVersion}: the node lags behind. Run the command again when it has caught up, or name another node in the plan`,
      );
    }
    await world.pause(LOOK_MS);
  }
}
