/**
 * Tests that a rollout which is stopped at any point and run again ends in the same state, and that callers
 * always reach an enclave.
 */
import { describe, expect, test } from 'vitest';
import { RolloutError } from '../../../../src/cli/rollout/errors.ts';
import type { Memory } from '../../../../src/cli/rollout/memory.ts';
import type { Plan } from '../../../../src/cli/rollout/plan.ts';
import {
  checkBeginning,
  checkWayBack,
  forgetEnded,
  type Rollout,
  type Step,
  stepsBack,
  stepsForward,
} from '../../../../src/cli/rollout/steps.ts';
import { takeSteps } from '../../../../src/cli/rollout/take_steps.ts';
import type { EnclaveConfig } from '../../../../src/library/sui/objects.ts';
import { Killed, SimulatedRollout } from './simulated_rollout.ts';

/** Runs the steps forwards, as the command does. */
async function forward(world: SimulatedRollout): Promise<string[]> {
  const rollout = { plan: world.plan, world, memory: world };
  await forgetEnded(rollout);
  await checkBeginning(rollout);
  return await takeAll(stepsForward(rollout), rollout);
}

async function back(world: SimulatedRollout): Promise<string[]> {
  const rollout = { plan: world.plan, world, memory: world };
  checkWayBack(rollout);
  const done = await takeAll(stepsBack(rollout), rollout);
  world.forget();
  return done;
}

/** Returns the names of the steps that were still necessary. */
async function takeAll(steps: readonly Step[], rollout: Rollout): Promise<string[]> {
  const taken = await takeSteps(steps, rollout);
  return taken.flatMap(({ step, result }) => (result === 'done' ? [step] : []));
}

/** Returns a rollout that was killed at an effect. */
async function createKilled(
  effect: number,
  isAfter: boolean,
  changes?: Partial<Plan>,
): Promise<SimulatedRollout> {
  const world = new SimulatedRollout(changes);
  world.killAt = { effect, isAfter };
  await expect(forward(world)).rejects.toThrow(Killed);
  return world.restart();
}

const whole = new SimulatedRollout();
const steps = await forward(whole);
/** Moments before and after each effect of a whole rollout. */
const MOMENTS = whole.effects.flatMap((name, effect) =>
  [false, true].map(
    (isAfter) => [`${isAfter ? 'after' : 'before'} ${name} (${effect})`, effect, isAfter] as const,
  ),
);
const END = { running: whole.plan.new.urls, callersReach: 'new', allowed: 'new', isOverlapping: false };
const BEGINNING = { running: whole.plan.old.urls, callersReach: 'old', allowed: 'old', isOverlapping: false };

test('a rollout goes through its steps in order, and finds nothing to do when it is run again', async () => {
  expect(steps).toEqual(['start', 'provision', 'allow', 'register', 'switch', 'stop_old', 'end_overlap']);
  expect(whole.effects.filter((name) => name !== 'remember')).toEqual([
    'start',
    'provision',
    "the admin's update_pcrs",
    'register',
    'switch',
    'stop_old',
    "the admin's end_overlap",
  ]);
  expect([whole.state, whole.outages]).toEqual([END, []]);
  expect(await forward(whole.restart())).toEqual([]);
});

test.each(MOMENTS)('a rollout ends in the same state after it was killed %s', async (_, effect, isAfter) => {
  const world = await createKilled(effect, isAfter);
  await forward(world);
  expect([world.state, world.outages]).toEqual([END, []]);
});

const stopsOld = whole.effects.lastIndexOf('remember', whole.effects.indexOf('stop_old'));

describe('a node that shows the config as it was before the last version', () => {
  /** Makes one read of the node show the config as it was before the last version. */
  function lagAt(world: SimulatedRollout, read: number): SimulatedRollout {
    let reads = 0;
    const versions: EnclaveConfig[] = [];
    world.lag = (current) => {
      versions.push(current);
      reads += 1;
      const previous = versions.findLast(({ configVersion }) => configVersion < current.configVersion);
      return reads === read + 1 && previous !== undefined ? previous : current;
    };
    return world;
  }
  const READS = 40;

  test('causes no step to be left out, at any read', async () => {
    for (let read = 0; read < READS; read += 1) {
      const world = lagAt(new SimulatedRollout(), read);
      expect(await forward(world), `read ${read}`).toEqual(steps);
      expect([world.state, world.outages]).toEqual([END, []]);
    }
  });

  test('makes the next process wait too, forwards and back', async () => {
    for (let read = 0; read < READS; read += 1) {
      const stopped = await createKilled(stopsOld, false);
      // The killed process saw the newer version.
      const [previous, current] = [await new SimulatedRollout().config(), await stopped.config()];
      let reads = 0;
      stopped.lag = (config) => {
        reads += 1;
        return reads <= 3 && config.configVersion === current.configVersion ? previous : config;
      };
      await (read % 2 === 0 ? forward(stopped) : back(stopped));
      expect([stopped.state, stopped.outages]).toEqual([read % 2 === 0 ? END : BEGINNING, []]);
    }
  });

  test('does not make a rollout that has ended begin again', async () => {
    const world = new SimulatedRollout();
    await forward(world);
    world.restart();
    const before = await new SimulatedRollout().config();
    let reads = 0;
    world.lag = (config) => {
      reads += 1;
      return reads <= 3 ? before : config;
    };
    expect(await forward(world)).toEqual([]);
    expect([world.state, world.outages]).toEqual([END, []]);
  });

  test('stops the rollout if it lags for longer than nodes do', async () => {
    const stopped = await createKilled(stopsOld, false);
    const before = await new SimulatedRollout().config();
    stopped.lag = () => before;
    await expect(forward(stopped)).rejects.toThrow(
      expect.objectContaining({
        code: 'ROLLOUT_CONFIG',
        message: expect.stringContaining('shows version 0 of the config'),
      }),
    );
  });
});

test.each(MOMENTS)(
  'a rollout goes back with --back, or refuses it, after it was killed %s',
  async (_, effect, isAfter) => {
    const world = await createKilled(effect, isAfter);
    if (effect > stopsOld || (effect === stopsOld && isAfter)) {
      const before = world.state;
      await expect(back(world)).rejects.toThrow(expect.objectContaining({ code: 'ROLLOUT_TOO_LATE' }));
      expect(world.state).toEqual(before);
      return;
    }
    await back(world);
    expect([world.state, world.outages, world.steps]).toEqual([BEGINNING, [], {}]);
  },
);

test('a rollout ends as expected after --back was killed at any effect, both with --back and forwards', async () => {
  const startOver = () => createKilled(stopsOld, false);
  const { effects } = await startOver().then(async (world) => {
    await back(world);
    return world;
  });
  for (let effect = stopsOld + 1; effect < effects.length; effect += 1) {
    for (const [isAfter, isBack] of [true, false].flatMap((a) => [true, false].map((b) => [a, b] as const))) {
      const world = await startOver();
      world.killAt = { effect, isAfter };
      await expect(back(world)).rejects.toThrow(Killed);
      await (isBack ? back(world.restart()) : forward(world.restart()));
      expect([world.state, world.outages]).toEqual([isBack ? BEGINNING : END, []]);
    }
  }
});

describe('callers keep their enclaves', () => {
  test('if the new enclaves disappear before the switch, or before the old enclaves are stopped', async () => {
    for (const name of ['switch', 'stop_old'] as const) {
      const world = await createKilled(whole.effects.indexOf(name) - 1, false);
      world.running.delete(world.plan.new.urls[0] ?? '');
      world.broken.add('start');
      await expect(forward(world)).rejects.toThrow(expect.objectContaining({ code: 'ROLLOUT_COMMAND' }));
      expect([world.effects.includes(name), world.outages]).toEqual([false, []]);
    }
  });

  test('if the new enclaves lose their secrets, or their registration, while requests drain', async () => {
    for (const [spoil, reason] of [
      [(world: SimulatedRollout) => world.ready.clear(), 'is not ready'],
      [(world: SimulatedRollout) => world.registered.clear(), 'that no contract accepts'],
    ] as const) {
      const world = new SimulatedRollout();
      const { pause } = world;
      world.pause = async (ms) => {
        if (ms > 1000) spoil(world);
        await pause.call(world, ms);
      };
      await expect(forward(world)).rejects.toThrow(
        expect.objectContaining({ code: 'ROLLOUT_NOT_SERVING', message: expect.stringContaining(reason) }),
      );
      expect(world.running).toContain(world.plan.old.urls[0]);
    }
  });

  test('if switch has no effect, or is undone, as the load balancer shows', async () => {
    const balancer = 'http://balancer/';
    const world = new SimulatedRollout({ balancer });
    world.broken.add('switch');
    await expect(forward(world)).rejects.toThrow(
      expect.objectContaining({
        code: 'ROLLOUT_COMMAND',
        message: expect.stringContaining('to new enclaves alone'),
      }),
    );
    world.broken.clear();
    const { pause } = world.restart();
    world.pause = async (ms) => {
      if (ms > 1000) world.callersReach = 'old';
      await pause.call(world, ms);
    };
    await expect(forward(world)).rejects.toThrow(expect.objectContaining({ code: 'ROLLOUT_NOT_SERVING' }));
    expect([world.running.size, world.outages]).toEqual([4, []]);
    world.pause = pause;
    expect(await forward(world.restart())).toEqual(['switch', 'stop_old', 'end_overlap']);
    expect([world.state, world.outages]).toEqual([END, []]);
    // The restarted load balancer has forgotten its settings.
    world.callersReach = 'old';
    expect(await forward(world.restart())).toEqual(['switch']);
  });

  test('on the way back, if switch_back has no effect', async () => {
    const world = await createKilled(stopsOld, false, { balancer: 'http://balancer/' });
    world.broken.add('switch_back');
    await expect(back(world)).rejects.toThrow(expect.objectContaining({ code: 'ROLLOUT_COMMAND' }));
    expect([world.running.size, world.outages]).toEqual([4, []]);
    world.broken.clear();
    await back(world);
    expect(world.state).toEqual(BEGINNING);
  });

  test('on the way back, if contracts accept no old enclave until the admin allows the old image', async () => {
    const world = await createKilled(stopsOld, false);
    await world.pause(world.plan.overlap * 60_000);
    await expect(back(world)).rejects.toThrow(expect.objectContaining({ code: 'ROLLOUT_NOT_SERVING' }));
    expect([world.callersReach, world.outages]).toEqual(['new', []]);
    // The admin allows the old image, but does not register its enclaves.
    world.admin('update_pcrs of the old image');
    await back(world);
    expect(world.state).toEqual(BEGINNING);
  });

  test('on the way back, if only one of two old enclaves is left', async () => {
    const world = await createKilled(stopsOld, false);
    const [stopped = '', remaining = ''] = world.plan.old.urls;
    world.running.delete(stopped);
    await back(world);
    expect(world.state).toEqual({ ...BEGINNING, running: [remaining] });
  });
});

describe('a rollout stops', () => {
  const refusal = (code: string, text = '') =>
    expect.objectContaining({ code, message: expect.stringContaining(text) });

  test('if the admin does not act in time, and continues when it is run again', async () => {
    const world = new SimulatedRollout();
    world.adminActs = false;
    await expect(forward(world)).rejects.toThrow(
      refusal('ROLLOUT_AWAITS_ADMIN', 'update_pcrs --pcrs /new.pcrs'),
    );
    expect(world.printed.join('\n')).toContain('update_pcrs --pcrs /new.pcrs --overlap 60 --unsigned');
    expect(world.effects).toEqual(['start', 'provision']);
    world.admin('update_pcrs');
    world.adminActs = true;
    expect(await forward(world.restart())).toEqual(['register', 'switch', 'stop_old', 'end_overlap']);
  });

  test('if a command has no effect in time', async () => {
    for (const name of ['start', 'provision', 'stop_old'] as const) {
      const world = new SimulatedRollout();
      world.broken.add(name);
      await expect(forward(world)).rejects.toThrow(
        refusal('ROLLOUT_COMMAND', `${name} had no effect within 10 s`),
      );
      world.broken.clear();
      await forward(world.restart());
      expect(world.state).toEqual(END);
    }
  });

  test('before each step, if a rollout on another machine has made the config allow a third image', async () => {
    for (const last of steps.slice(0, -1)) {
      const world = new SimulatedRollout();
      const { config } = world;
      let effects: readonly string[] | undefined;
      world.log = (line) => {
        if (line === `${last}: done.`) effects = [...world.effects];
      };
      world.config = async () => {
        if (effects === undefined) return await config.call(world);
        throw new RolloutError('ROLLOUT_CONFIG', 'the image is neither the old nor the new one');
      };
      await expect(forward(world), last).rejects.toThrow(refusal('ROLLOUT_CONFIG', 'neither'));
      expect(world.effects, last).toEqual(effects);
    }
  });

  test('before its first step, in an overlap of another rollout, or with a revoked registrar', async () => {
    const world = new SimulatedRollout();
    world.overlapUntil = world.now() + 60_000;
    await expect(forward(world)).rejects.toThrow(
      refusal('ROLLOUT_CONFIG', 'has an overlap until 2026-01-01T00:01'),
    );
    world.overlapUntil = undefined;
    world.registrars = [];
    await expect(forward(world)).rejects.toThrow(refusal('ROLLOUT_CONFIG', 'does not list the registrar'));
    expect(world.effects).toEqual([]);
  });

  test('without a registrar, unless the config is open', async () => {
    const closed = new SimulatedRollout({ registrarId: undefined });
    await expect(forward(closed)).rejects.toThrow(refusal('ROLLOUT_CONFIG', 'is not open'));
    expect(closed.effects).toEqual([]);
    const open = new SimulatedRollout({ registrarId: undefined });
    open.isOpen = true;
    await forward(open);
    expect(open.state).toEqual(END);
  });
});

test('a rollout takes all necessary steps when it is repeated after the old image was rolled out again', async () => {
  const world = new SimulatedRollout();
  await forward(world);
  world.admin('rotate');
  for (const url of world.plan.old.urls) world.running.add(url);
  world.callersReach = 'old';
  world.running.delete('http://new1/');
  expect(await forward(world.restart())).toEqual(steps.filter((name) => name !== 'provision'));
  expect(world.state).toEqual(END);
});

test('a rollout lets the overlap end by itself with end_overlap: time', async () => {
  const world = new SimulatedRollout({ isEndedByAdmin: false });
  expect(await forward(world)).not.toContain('end_overlap');
  expect(world.state).toEqual({ ...END, isOverlapping: true });
  expect(world.printed.at(-2)).toMatch(/ends by itself, at 2026-01-01T01:00/);
});

test('a rollout waits for requests to drain before it stops the old enclaves, and for answers to settle before the overlap ends', async () => {
  const world = new SimulatedRollout();
  const began = world.now();
  await forward(world);
  const { switched = 0, stopping = 0, stopped = 0 } = world.steps;
  expect([switched >= began, stopping - switched, world.now() - stopped >= 300_000]).toEqual([
    true,
    30_000,
    true,
  ]);
});

test.each([-1, 1])(
  'a rollout keeps every wait and deadline if the wall clock is set by %d days',
  async (days) => {
    class Adjusted extends SimulatedRollout {
      override remember(steps: Memory['steps']): void {
        super.remember(steps);
        this.wallAheadMs = days * 86_400_000;
      }

      override async pause(ms: number): Promise<void> {
        await super.pause(ms);
        this.wallAheadMs = days * 86_400_000;
      }
    }
    const world = new Adjusted();
    await forward(world);
    const { switched = 0, stopping = 0 } = world.steps;
    expect(stopping - switched).toBe(30_000);
    const stuck = new Adjusted();
    stuck.broken.add('start');
    const began = stuck.clock();
    await expect(forward(stuck)).rejects.toMatchObject({ code: 'ROLLOUT_COMMAND' });
    expect(stuck.clock() - began).toBe(10_000);
  },
);

test.each([8.64e15, Number.MAX_SAFE_INTEGER])(
  'a rollout waits no longer than the plan says if a time in the memory is far ahead: %d',
  async (time) => {
    const world = await createKilled(whole.effects.indexOf('switch') + 1, true);
    world.steps = { switching: time, switched: time };
    const began = world.clock();
    await forward(world);
    expect(world.clock() - began).toBeLessThan(30_000 + 300_000 + 10_000);
  },
);

test("the admin's commands name the source of the image, if the plan has one", async () => {
  const world = new SimulatedRollout({ sourceUrl: 'https://git.example/x' });
  await forward(world);
  expect(world.printed.join('\n')).toContain(
    '--pcrs /new.pcrs --source-url https://git.example/x --overlap 60',
  );
});

test('a rollout reports an update without an overlap', async () => {
  const world = new SimulatedRollout({ overlap: 0 });
  await forward(world);
  expect(world.printed.join('\n')).toContain('WARNING: contracts accept no old enclave');
  expect(world.state).toEqual(END);
});
