/** Takes the steps of a rollout, one after the other. */
import { readConfig } from './current_config.ts';
import type { Rollout, Step } from './steps.ts';

/** A step that is done. `found`: it was done before. */
export interface TakenStep {
  readonly step: string;
  readonly result: 'done' | 'found';
}

/**
 * Takes the steps that are not done. Reads the config before each: a rollout on another machine may have
 * changed it.
 *
 * @throws RolloutError: ROLLOUT_CONFIG if the config allows an image that is not of the plan; the errors of
 *   the steps
 */
export async function takeSteps(steps: readonly Step[], rollout: Rollout): Promise<TakenStep[]> {
  const { world } = rollout;
  const taken: TakenStep[] = [];
  for (const { name, missing, act } of steps) {
    await readConfig(rollout);
    const left = await missing();
    if (left !== undefined) {
      world.log(`${name}: ${left}.`);
      await act();
    }
    taken.push({ step: name, result: left === undefined ? 'found' : 'done' });
    world.log(`${name}: ${left === undefined ? 'nothing to do' : 'done'}.`);
  }
  return taken;
}
