/**
 * Runs `sui-enclave rollout` on the model of a Sui node, with emulated enclaves. The tests kill it at each
 * step, and run it again.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parsePcrs } from '../../src/library/attestation/index.ts';
import { writeRelease } from '../src/cli/releases/release_fixture.ts';
import { RolloutFixture } from '../src/cli/rollout/rollout_fixture.ts';
import { callScript } from '../src/cli/run.ts';
import { startServer } from '../src/server/support.ts';

const SCRIPT = fileURLToPath(new URL('../../src/cli/rollout/rollout.ts', import.meta.url));
const ADMIN = /^ {2}npx --offline (sui-enclave (?:update_pcrs|end_overlap|rotate) (?!.*--unsigned).*)$/gm;

let fixture: RolloutFixture;
beforeEach(async () => {
  fixture = await RolloutFixture.start();
});

interface Run {
  readonly exit: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/**
 * Runs the command as a process, with an admin who runs the commands that it prints.
 *
 * @param killAt returns, from the output so far, whether to kill the process now
 */
async function run(
  args: readonly string[],
  killAt: (output: string) => boolean = () => false,
  env: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [SCRIPT, fixture.plan(), ...args], {
    env: { PATH, HOME, ...fixture.env, ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  const executedLines = new Set<string>();
  const timer = setInterval(() => void (killAt(output) && child.kill('SIGKILL')), 10);
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
      for (const [, line = ''] of output.matchAll(ADMIN)) {
        if (executedLines.has(line) || killAt(output)) continue;
        executedLines.add(line);
        fixture.obey(line).catch((error) => {
          output += String(error);
        });
      }
    });
  }
  const [exit, signal] = await once(child, 'exit');
  clearInterval(timer);
  expect(output).not.toContain(fixture.env['SUI_PRIVATE_KEY']);
  return { exit, signal, output };
}

/** Returns which enclaves run, which of them callers reach, and the image and the overlap of the config. */
async function readState() {
  const { keeper, running, callersReach } = fixture;
  const { image, overlap } = await keeper.config();
  return { running, callersReach, pcr2: image.pcr2, overlap };
}

async function expectEnd(): Promise<void> {
  expect(await readState()).toMatchObject({ running: fixture.urls.new, callersReach: 'new', overlap: null });
  expect((await readState()).pcr2).not.toBe(fixture.keeper.image.pcr2);
  const { configVersion } = await fixture.keeper.config();
  const enclaves = await fixture.keeper.enclaves();
  expect(enclaves.filter((enclave) => enclave.configVersion === configVersion)).toHaveLength(1);
}

async function expectBeginning(): Promise<void> {
  const { image } = fixture.keeper;
  expect(await readState()).toEqual({
    running: fixture.urls.old,
    callersReach: 'old',
    pcr2: image.pcr2,
    overlap: null,
  });
  const { configVersion } = await fixture.keeper.config();
  const enclaves = await fixture.keeper.enclaves();
  expect(enclaves.filter((enclave) => enclave.configVersion === configVersion)).toHaveLength(1);
  expect(existsSync(`${fixture.deployments}/localnet.weather.rollout.json`)).toBe(false);
}

/**
 * Blocks a command forever, before or after its effect. @returns a function that returns whether the command
 * is blocked
 */
function holdAt(command: string, isAfter: boolean): () => boolean {
  let isHeld = false;
  fixture.hold = async (name, after) => {
    if (name !== command || after !== isAfter) return;
    isHeld = true;
    await new Promise(() => {});
  };
  return () => isHeld;
}

/** Kills a rollout at a moment, and removes the block, so that the next rollout continues. */
async function killRollout(moment: () => (output: string) => boolean): Promise<void> {
  const { signal, output } = await run([], moment());
  expect(signal, output).toBe('SIGKILL');
  fixture.hold = () => {};
  fixture.keeper.chain.node.faults.clear();
}

const whenPrinted = (text: string) => () => (output: string) => output.includes(text);
/**
 * Makes the node execute transactions without answering. @returns a function that returns whether the rollout
 * has sent its registration
 */
const whenRegistering = () => {
  const { faults } = fixture.keeper.chain.node;
  faults.set('ExecuteTransaction', 'executes, and does not answer');
  const { sent } = fixture.keeper;
  // The admin's transaction comes before the registration.
  return () => fixture.keeper.sent === sent + 2;
};
const MOMENTS: readonly (readonly [string, () => (output: string) => boolean])[] = [
  ['before start had its effect', () => holdAt('start', false)],
  ['after start had its effect', () => holdAt('start', true)],
  ['while it waited for the admin', whenPrinted('update_pcrs')],
  ['while it registered the enclave', whenRegistering],
  ['before switch had its effect', () => holdAt('switch', false)],
  ['after switch had its effect', () => holdAt('switch', true)],
];
const LATE_MOMENTS: typeof MOMENTS = [
  ['before stop_old had its effect', () => holdAt('stop_old', false)],
  ['after stop_old had its effect', () => holdAt('stop_old', true)],
  ['while it waited for the end of the overlap', whenPrinted('end_overlap')],
];

test('a rollout completes its steps, and a second run changes nothing', async () => {
  const { exit, output } = await run([]);
  expect(exit, output).toBe(0);
  await expectEnd();
  expect(fixture.readEnclaves().map(({ url }) => new URL(url).origin)).toEqual(fixture.urls.new);
  // The operator's commands do not see the key. If they did, their names here would say so.
  expect(fixture.calls).toEqual(['start', 'switch', 'stop_old']);
  const secondRun = await callScript('rollout/rollout.ts', [fixture.plan(), '--json'], { env: fixture.env });
  expect([secondRun.status, JSON.parse(secondRun.stdout)]).toMatchObject([0, { status: 'unchanged' }]);
  const back = await callScript('rollout/rollout.ts', [fixture.plan(), '--back'], { env: fixture.env });
  expect([back.status, back.stderr]).toEqual([
    1,
    expect.stringMatching(/^ROLLOUT_TOO_LATE: .*roll the old image out/),
  ]);
  expect(fixture.calls).toEqual(['start', 'switch', 'stop_old']);
});

test('a rollout ends in the same state if it is killed at every moment in turn and run again', async () => {
  for (const [, moment] of [...MOMENTS, ...LATE_MOMENTS]) await killRollout(moment);
  const { exit, output } = await run([]);
  expect(exit, output).toBe(0);
  expect(output).toMatch(/^Resumes in place of process \d+/);
  await expectEnd();
  expect(fixture.calls).toEqual([
    'start',
    'start',
    'switch',
    'switch',
    'switch',
    'stop_old',
    'stop_old',
    'stop_old',
  ]);
});

test.each(MOMENTS)('a rollout that was killed %s is undone by --back', async (_, moment) => {
  await killRollout(moment);
  const { exit, output } = await run(['--back']);
  expect(exit, output).toBe(0);
  await expectBeginning();
});

test('a rollout is refused while another rollout of the config runs on the machine; a dry run is not', async () => {
  const isHeld = holdAt('start', true);
  let isTried = false;
  const first = run([], () => isTried);
  await expect.poll(isHeld).toBe(true);
  for (const args of [[], ['--back']]) {
    const { exit, output } = await run(args);
    expect([exit, output]).toEqual([2, expect.stringMatching(/^ROLLOUT_RUNNING: process \d+ runs/)]);
  }
  expect((await run(['--dry-run'])).exit).toBe(0);
  isTried = true;
  expect((await first).signal).toBe('SIGKILL');
});

test('two machines that roll out the same plan at the same time end in the same state', async () => {
  const DEPLOYMENTS = fixture.keeper.chain.file('other_machine');
  cpSync(fixture.deployments, DEPLOYMENTS, { recursive: true });
  // Both sign with one key, and start the same enclaves. If their transactions or commands collide, one of
  // the rollouts fails, and is run again.
  const runToEnd = async (environment: Readonly<Record<string, string>>) => {
    for (let attempt = 1; ; attempt += 1) {
      const { exit, output } = await run([], undefined, environment);
      if (exit === 0) return;
      expect([exit, output]).toEqual([
        1,
        expect.stringMatching(/^(?:SUI_EQUIVOCATION|SUI_OBJECT_CHANGED|ROLLOUT_COMMAND): /m),
      ]);
      expect(attempt, output).toBeLessThan(5);
    }
  };
  await Promise.all([runToEnd({}), runToEnd({ DEPLOYMENTS })]);
  await expectEnd();
});

describe('a rollout changes nothing', () => {
  const call = async (args: readonly string[], changes: object = {}) =>
    await callScript('rollout/rollout.ts', [fixture.plan(changes), ...args], { env: fixture.env });

  test('in a dry run, which prints what each step finds', async () => {
    const { sent } = fixture.keeper;
    const { status, stdout } = await call(['--dry-run']);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^start: .* do not answer$/m)]);
    expect(stdout).toContain('allow: the config allows the old image\n');
    expect([fixture.calls, fixture.keeper.sent]).toEqual([[], sent]);
  });

  test('if another program runs at a URL of the new enclaves', async () => {
    const impostor = await startServer({ nsm: fixture.keeper.chain.nsm });
    const plan = { new: { pcrs: 'new.pcrs', enclaves: [impostor.url] } };
    const { status, stderr } = await call([], plan);
    expect([status, stderr, fixture.calls]).toEqual([1, expect.stringMatching(/^POLICY_PCRS: /), []]);
  });

  test('if the plan has the same registers twice, or the registers of another config', async () => {
    const sameRegisters = await call([], { new: { pcrs: 'dev.pcrs', enclaves: fixture.urls.new } });
    expect([sameRegisters.status, sameRegisters.stderr]).toEqual([
      2,
      expect.stringMatching(/^ROLLOUT_PLAN: .*the same registers/),
    ]);
    const otherConfig = await call([], { old: { pcrs: 'other.pcrs', enclaves: fixture.urls.old } });
    expect([otherConfig.status, otherConfig.stderr]).toEqual([
      1,
      expect.stringMatching(/^ROLLOUT_CONFIG: .*neither/),
    ]);
  });
});

describe('a rollout with a release', () => {
  const call = async (registers: string, args: readonly string[] = ['--dry-run']) => {
    const image = parsePcrs(readFileSync(fixture.keeper.chain.file(registers), 'utf8'));
    const release = await writeRelease(mkdtempSync(fixture.keeper.chain.file('release-')), image);
    const argv = [fixture.plan(), ...release, ...args];
    return await callScript('rollout/rollout.ts', argv, { env: fixture.env });
  };

  test('proceeds if its signer vouches for the new image', async () => {
    const { status, stdout } = await call('new.pcrs');
    expect([status, stdout]).toEqual([
      0,
      expect.stringContaining('The signer of the release v1.2.0 vouches'),
    ]);
  });

  test('refuses --back, and a release whose image or signer is not the one in the deployment file', async () => {
    const image = await call('dev.pcrs', []);
    expect([image.status, image.stderr]).toEqual([2, expect.stringMatching(/^ROLLOUT_PLAN: .* v1\.2\.0/)]);
    fixture.noteSigner({ publicKey: 'ab'.repeat(32) });
    const signer = await call('new.pcrs', []);
    expect([signer.status, signer.stderr]).toEqual([2, expect.stringMatching(/^RELEASE_SIGNER: /)]);
    const back = await call('new.pcrs', ['--back']);
    expect([back.status, back.stderr]).toEqual([2, expect.stringMatching(/^USAGE: --back needs no release/)]);
    expect(fixture.calls).toEqual([]);
  });
});

test('a command that fails or takes too long ends the rollout', async () => {
  const commands = (start: readonly string[]) => {
    const none = [['true']];
    return { start: [start], switch: none, switch_back: none, stop_old: none, stop_new: none };
  };
  const runWithStart = async (start: readonly string[]) => {
    const plan = fixture.plan({ commands: commands(start), command_within: 1 });
    return await callScript('rollout/rollout.ts', [plan], { env: fixture.env });
  };
  expect((await runWithStart(['false'])).stderr).toMatch(
    /^ROLLOUT_COMMAND: a command of start ended with exit code 1: false/,
  );
  expect((await runWithStart(['/nonexistent/start'])).stderr).toContain('could not be started: ENOENT');
  expect((await runWithStart(['sleep', '20'])).stderr).toContain(
    'took longer than command_within, 1 s: sleep',
  );
  // A program may end without an error when it is stopped, or ignore SIGTERM.
  for (const handler of ['() => process.exit(0)', '() => {}']) {
    const program = `process.on('SIGTERM', ${handler}); setInterval(() => {}, 1000)`;
    expect((await runWithStart([process.execPath, '-e', program])).stderr).toContain('command_within, 1 s');
  }
});
