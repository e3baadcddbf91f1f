/**
 * The steps of a rollout, and of the way back. Each step first checks whether it is done, so that a rollout
 * that was stopped anywhere resumes from the state that it finds.
 */
import { SuiError } from 'sui-enclave/sui/errors';
import { type EnclaveConfig, isOverlapping } from 'sui-enclave/sui/objects';
import { type Candidate, explainNoRight } from '../sui/registration.ts';
import { LOOK_MS, readConfig, SHOWN_MS } from './current_config.ts';
import { RolloutError } from './errors.ts';
import type { Memory } from './memory.ts';
import type { CommandName, Plan, SideName } from './plan.ts';
import { checkReached, checkServing, createServingError, describeStrays } from './serving.ts';
import type { World } from './world.ts';

export interface Step {
  readonly name: string;
  /** Returns the work that remains, in words; undefined if nothing remains. */
  missing(): Promise<string | undefined>;
  /** Takes the step, and returns when it is done. @throws EnclaveError */
  act(): Promise<void>;
}

/** Plan, environment and memory that the steps use. */
export interface Rollout {
  readonly plan: Plan;
  readonly world: World;
  readonly memory: Memory;
}

/** @throws RolloutError: ROLLOUT_CONFIG if the plan can't begin with this config */
export async function checkBeginning(rollout: Rollout): Promise<void> {
  const { plan, world } = rollout;
  const config = await readConfig(rollout);
  const { id } = config;
  const reason = explainNoRight(config, plan.registrarId);
  if (reason !== null) throw new RolloutError('ROLLOUT_CONFIG', reason);
  if (world.findSide(config) === 'old' && isOverlapping(config, world.now())) {
    throw new RolloutError(
      'ROLLOUT_CONFIG',
      `the config ${id} has an overlap until ${formatEnd(config)}, so the admin can't begin another overlap: wait, or have this overlap ended (${world.adminCommand('end_overlap')})`,
    );
  }
}

/** Forgets an earlier rollout of the same images that had ended, if the config allows the old image again. */
export async function forgetEnded(rollout: Rollout): Promise<void> {
  const { world, memory } = rollout;
  if (memory.steps.stopped === undefined) return;
  if (world.findSide(await readConfig(rollout)) === 'old') memory.forget();
}

/** Returns the steps to the new enclaves. */
export function stepsForward(rollout: Rollout): Step[] {
  const { plan, world, memory } = rollout;
  const describeSilent = async () => formatSubjects(await findSilent(world, 'new'), 'do not answer');
  const describeUnready = async () => formatSubjects(await findUnready(world, 'new'), 'are not ready');
  const isAllowed = async () => world.findSide(await readConfig(rollout)) === 'new';
  return [
    {
      name: 'start',
      missing: describeSilent,
      async act() {
        await world.run('start');
        await awaitState(rollout, plan.startMs, 'start', describeSilent);
      },
    },
    {
      name: 'provision',
      missing: describeUnready,
      async act() {
        await world.run('provision');
        await awaitState(rollout, plan.startMs, 'provision', describeUnready);
      },
    },
    {
      name: 'allow',
      missing: async () => ((await isAllowed()) ? undefined : 'the config allows the old image'),
      async act() {
        const overlap = ['--overlap', `${plan.overlap}`];
        const command = world.adminCommand('update_pcrs', ...imageOptions(plan, 'new'), ...overlap);
        await awaitAdmin(rollout, command, isAllowed);
        // This also stores the version that allows the image, so that the next process doesn't take an older
        // version for the latest.
        memory.remember(memory.steps);
        if (isOverlapping(await readConfig(rollout), world.now())) return;
        world.log('WARNING: contracts accept no old enclave, since the transaction began no overlap.');
      },
    },
    createRegistration(rollout, 'new'),
    {
      name: 'switch',
      missing: async () =>
        memory.steps.switched === undefined
          ? 'callers reach the old enclaves'
          : await describeStrays(rollout, 'new'),
      async act() {
        await checkServing(rollout, 'new');
        const { switchedBack: _, ...before } = memory.steps;
        const switching = world.clock();
        memory.remember({ ...before, switching });
        await world.run('switch');
        await awaitState(rollout, plan.commandMs, 'switch', () => describeStrays(rollout, 'new'));
        memory.remember({ ...before, switching, switched: world.clock() });
      },
    },
    {
      name: 'stop_old',
      missing: async () =>
        memory.steps.stopped === undefined ? 'the old enclaves are not known to be stopped' : undefined,
      async act() {
        await waitFrom(rollout, memory.steps.switched, plan.drainMs, 'requests to the old enclaves end');
        // Check this last: once the old enclaves are stopped, callers have only the new enclaves.
        await checkReached(rollout, 'new');
        const stopping = world.clock();
        memory.remember({ ...memory.steps, stopping });
        await stop(rollout, 'stop_old', 'old');
        memory.remember({ ...memory.steps, stopping, stopped: world.clock() });
      },
    },
    {
      name: 'end_overlap',
      async missing() {
        const config = await readConfig(rollout);
        if (!isOverlapping(config, world.now())) return undefined;
        if (plan.isEndedByAdmin) return `contracts accept the old enclaves until ${formatEnd(config)}`;
        world.log(`The overlap ends by itself, at ${formatEnd(config)}.`);
        return undefined;
      },
      async act() {
        await waitFrom(rollout, memory.steps.stopped, plan.settleMs, 'users submit the last answers');
        await awaitAdmin(rollout, world.adminCommand('end_overlap'), async () => {
          return !isOverlapping(await readConfig(rollout), world.now());
        });
      },
    },
  ];
}

/** Returns the steps back to the old enclaves. */
export function stepsBack(rollout: Rollout): Step[] {
  const { plan, world, memory } = rollout;
  return [
    // This step is needed if the admin has allowed the old image again without registering its enclaves.
    createRegistration(rollout, 'old'),
    {
      name: 'switch_back',
      missing: async () =>
        memory.steps.switching === undefined
          ? await describeStrays(rollout, 'old')
          : 'callers may reach the new enclaves',
      async act() {
        await checkServing(rollout, 'old');
        // Forget these steps first. If this process is stopped after the commands, a rollout forwards must
        // switch again.
        const { switched: _, switching: __, ...keptSteps } = memory.steps;
        memory.remember({ ...keptSteps, switching: world.clock() });
        await world.run('switch_back');
        await awaitState(rollout, plan.commandMs, 'switch_back', () => describeStrays(rollout, 'old'));
        memory.remember({ ...keptSteps, switchedBack: world.clock() });
      },
    },
    {
      name: 'allow_old',
      missing: async () =>
        world.findSide(await readConfig(rollout)) === 'old' ? undefined : 'the config allows the new image',
      async act() {
        const config = await readConfig(rollout);
        if (isOverlapping(config, world.now())) {
          world.log(
            `Contracts accept the old enclaves until ${formatEnd(config)}, unless the admin acts earlier.`,
          );
        }
        // Enclaves that contracts no longer accept are included: the transaction registers them again.
        const urls = await findRunning(world, 'old');
        if (urls.length === 0) throw createServingError('old', ['none of them answers']);
        const command = world.adminCommand('rotate', ...urls, ...imageOptions(plan, 'old'));
        await awaitAdmin(rollout, command, async () => world.findSide(await readConfig(rollout)) === 'old');
      },
    },
    createRegistration(rollout, 'old'),
    {
      name: 'stop_new',
      missing: async () => formatSubjects(await findRunning(world, 'new'), 'are running'),
      async act() {
        await waitFrom(rollout, memory.steps.switchedBack, plan.drainMs, 'requests to the new enclaves end');
        await checkReached(rollout, 'old');
        await stop(rollout, 'stop_new', 'new');
      },
    },
  ];
}

/** @throws RolloutError: ROLLOUT_TOO_LATE */
export function checkWayBack({ memory: { steps } }: Rollout): void {
  if (steps.stopping === undefined) return;
  throw new RolloutError(
    'ROLLOUT_TOO_LATE',
    'the old enclaves are stopped, or are being stopped: finish this rollout, and then roll the old image out as a new image',
  );
}

/**
 * Creates the step that registers enclaves of a side, once the config allows its image. It registers the keys
 * of the enclaves that answer, unless contracts accept these keys.
 */
function createRegistration(rollout: Rollout, side: SideName): Step {
  const { plan, world } = rollout;
  const findUnregistered = async (config: EnclaveConfig): Promise<Candidate[]> => {
    if (world.findSide(config) !== side) return [];
    const looks = await Promise.all(plan[side].urls.map((url) => world.look(url, side)));
    const candidates = looks.flatMap((look) => (look.answers ? [look.candidate] : []));
    const states = await Promise.all(candidates.map((candidate) => world.readState(candidate, config)));
    return candidates.filter((_, index) => states[index] === 'free');
  };
  const missing = async () => {
    const free = await findUnregistered(await readConfig(rollout));
    return formatSubjects(
      free.map(({ url }) => url),
      'are not registered',
    );
  };
  return {
    name: side === 'new' ? 'register' : 'register_old',
    missing,
    async act() {
      const config = await readConfig(rollout);
      await world.register(await findUnregistered(config), config);
      await awaitState(rollout, SHOWN_MS, 'register', missing);
    },
  };
}

/** Returns the options of a command that allows a side's image. */
function imageOptions({ sourceUrl, ...sides }: Plan, side: SideName): string[] {
  return ['--pcrs', sides[side].pcrs, ...(sourceUrl === undefined ? [] : ['--source-url', sourceUrl])];
}

/** Runs the commands that stop a side, and waits until none of its enclaves answers. */
async function stop(rollout: Rollout, name: CommandName, side: SideName): Promise<void> {
  await rollout.world.run(name);
  await awaitState(rollout, rollout.plan.commandMs, name, async () =>
    formatSubjects(await findRunning(rollout.world, side), 'still answer'),
  );
}

async function findSilent(world: World, side: SideName): Promise<string[]> {
  const looks = await Promise.all(world.plan[side].urls.map((url) => world.look(url, side)));
  return looks.flatMap((look) => (look.answers ? [] : [`${look.url} (${look.reason})`]));
}

async function findRunning(world: World, side: SideName): Promise<string[]> {
  const runningFlags = await Promise.all(world.plan[side].urls.map((url) => world.isRunning(url, side)));
  return world.plan[side].urls.filter((_, index) => runningFlags[index]);
}

async function findUnready(world: World, side: SideName): Promise<string[]> {
  const { urls } = world.plan[side];
  const ready = await Promise.all(urls.map((url) => world.isReady(url)));
  return urls.filter((_, index) => !ready[index]);
}

function formatSubjects(subjects: readonly string[], verb: string): string | undefined {
  return subjects.length === 0 ? undefined : `${subjects.join(', ')} ${verb}`;
}

function formatEnd({ overlap }: EnclaveConfig): string {
  return new Date(Number(overlap?.untilMs)).toISOString();
}

/** @throws RolloutError: ROLLOUT_COMMAND if the state is not reached in time */
async function awaitState(
  { world }: Rollout,
  ms: number,
  name: string,
  missing: () => Promise<string | undefined>,
): Promise<void> {
  const end = world.clock() + ms;
  for (;;) {
    const left = await missing();
    if (left === undefined) return;
    if (world.clock() >= end) {
      throw new RolloutError('ROLLOUT_COMMAND', `${name} had no effect within ${ms / 1000} s: ${left}`);
    }
    await world.pause(LOOK_MS);
  }
}

/** @throws RolloutError: ROLLOUT_AWAITS_ADMIN */
async function awaitAdmin(
  { plan, world }: Rollout,
  command: string,
  isDone: () => Promise<boolean>,
): Promise<void> {
  world.log(
    `The holder of the EnclaveCap must execute this transaction, or have it signed elsewhere (--unsigned):\n  ${command}\n  ${command} --unsigned`,
  );
  const end = world.clock() + plan.adminMs;
  const isShown = async () =>
    await isDone().catch((error: unknown) => {
      // The wait is long, and a node may be unreachable for a part of it.
      if (error instanceof SuiError && error.code === 'SUI_NODE_UNREACHABLE') return false;
      throw error;
    });
  while (!(await isShown())) {
    if (world.clock() >= end) {
      throw new RolloutError(
        'ROLLOUT_AWAITS_ADMIN',
        `the chain does not show the transaction of the admin yet: run the command again when it is executed (${command})`,
      );
    }
    await world.pause(LOOK_MS);
  }
}

/**
 * Waits until `ms` have passed since the time `from` of a step. An earlier process may have recorded that
 * time by a wrong clock, so the wait takes at most `ms`.
 */
async function waitFrom(
  { world }: Rollout,
  from: number | undefined,
  ms: number,
  purpose: string,
): Promise<void> {
  const now = world.clock();
  const left = Math.min((from ?? now) + ms - now, ms);
  if (left <= 0) return;
  world.log(`Waiting ${Math.ceil(left / 1000)} s, in which ${purpose}.`);
  await world.pause(left);
}
