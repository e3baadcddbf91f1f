/** Checks that the enclaves of a side can serve callers, before a step that sends callers to them. */
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { readConfig, type Seen } from './current_config.ts';
import { RolloutError } from './errors.ts';
import type { SideName } from './plan.ts';
import type { World } from './world.ts';

/**
 * Checks that a side can serve callers: all new enclaves, or any of the old ones, answer, are ready, and have
 * a key that contracts accept.
 *
 * @throws RolloutError: ROLLOUT_NOT_SERVING
 */
export async function checkServing(seen: Seen, side: SideName): Promise<void> {
  const { world } = seen;
  const config = await readConfig(seen);
  const states = await Promise.all(world.plan[side].urls.map((url) => readServing(world, url, side, config)));
  const faults = states.flatMap(({ url, fault }) => (fault === undefined ? [] : [`${url} ${fault}`]));
  if (faults.length === states.length || (side === 'new' && faults.length > 0)) {
    throw createServingError(side, faults);
  }
  for (const fault of faults) world.log(`An old enclave does not serve: ${fault}.`);
}

/**
 * Checks that a side can serve callers, and that callers reach it. @throws RolloutError: ROLLOUT_NOT_SERVING
 */
export async function checkReached(seen: Seen, side: SideName): Promise<void> {
  await checkServing(seen, side);
  const reason = await describeStrays(seen, side);
  if (reason !== undefined) throw createServingError(side, [reason]);
}

/**
 * Returns a phrase about the balancer if callers reach anything other than enclaves of this side. Returns
 * undefined if they don't, or if the plan names no balancer.
 */
export async function describeStrays({ world }: Seen, side: SideName): Promise<string | undefined> {
  const { plan } = world;
  const { balancer } = plan;
  if (balancer === undefined) return undefined;
  // A balancer that takes turns chooses each enclave at least twice.
  const requests = 2 * (plan.old.urls.length + plan.new.urls.length);
  for (let request = 0; request < requests; request += 1) {
    if (!(await world.isRunning(balancer, side)))
      return `${balancer} does not forward to ${side} enclaves alone`;
  }
  return undefined;
}

export function createServingError(side: SideName, faults: readonly string[]): RolloutError {
  return new RolloutError(
    'ROLLOUT_NOT_SERVING',
    `after the next step, callers would reach only the ${side} enclaves, but: ${faults.join('; ')}. Nothing was changed by this step`,
  );
}

/**
 * State of the enclave at a URL. Callers can use it unless there is a `fault`, a phrase that follows the URL
 * in messages.
 */
interface Serving {
  readonly url: string;
  readonly fault: string | undefined;
}

async function readServing(
  world: World,
  url: string,
  side: SideName,
  config: EnclaveConfig,
): Promise<Serving> {
  const look = await world.look(url, side);
  if (!look.answers) return { url, fault: `does not answer (${look.reason})` };
  const state = await world.readState(look.candidate, config);
  if (state !== 'accepted') return { url, fault: FAULTS[state] };
  return { url, fault: (await world.isReady(url)) ? undefined : 'is not ready' };
}

const FAULTS = {
  free: 'has a key that no contract accepts',
  destroyed: 'has a key that was destroyed: restart it',
  'too old': 'has a key that is too old: restart it',
} as const;
