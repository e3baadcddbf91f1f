/**
 * `sui-enclave rollout`: replaces the enclaves of an image by enclaves of the next image, without a gap in
 * service.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import {
  type Context,
  command,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { ROLLOUT_MEMORY } from '../places.ts';
import { RELEASE_OPTIONS, readRelease, type VouchedRelease } from '../releases/read_release.ts';
import { Deployments } from '../sui/deployments.ts';
import { checkSameSigner, isSameImage } from '../sui/image_to_allow.ts';
import { COMMON } from '../sui/options.ts';
import { readSigner } from '../sui/signer.ts';
import { path } from '../values.ts';
import { takeLock } from './lock.ts';
import { openMemory } from './memory.ts';
import { type Plan, parsePlan, RolloutPlanError } from './plan.ts';
import {
  checkBeginning,
  checkWayBack,
  forgetEnded,
  type Rollout,
  type Step,
  stepsBack,
  stepsForward,
} from './steps.ts';
import { type TakenStep, takeSteps } from './take_steps.ts';
import { createWorld, type Signing } from './world.ts';

export const main = command({
  name: 'rollout',
  purpose: `Replaces the old enclaves of a plan by new ones of another image: starts, attests and provisions the new ones, awaits the
transaction in which the admin allows the image, registers them with a RegistrarCap, switches callers to them, and stops
the old ones. It holds no EnclaveCap. You can stop it at any point; run it again and it resumes.`,
  example: 'rollout.yaml --dry-run',
  arguments: { plan: { schema: path } },
  options: {
    back: { help: 'go back to the old enclaves, as long as they are not being stopped' },
    address: COMMON.address,
    keystore: COMMON.keystore,
    ...RELEASE_OPTIONS,
    'dry-run': { help: 'print what remains for each step, and do nothing' },
  },
  notes: `The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore. It must own the
RegistrarCap.

exit codes: 0 done; 1 stopped at a step: run it again; 2 not tried (arguments, plan, signer, deployment file)`,
  async run({ args, options }, context) {
    const plan = parsePlan((await readFileArgument(args.plan)).toString(), args.plan);
    const { back: isBack, 'dry-run': isDryRun, release, log, signer, seen, ...signing } = options;
    // A release may have been withdrawn, which is a reason to go back. So --back verifies no release.
    if (isBack && release !== undefined) throw new UsageError('--back needs no release: leave --release out');
    await readSigner(context.env, signing);
    const deployments = new Deployments(plan.network, context.env, plan.app);
    const [app] = deployments.application();
    const path = join(dirname(deployments.path), `${plan.network}.${app}`);
    const lock = isDryRun ? undefined : takeLock(`${path}.rollout.lock`);
    try {
      if (lock?.takenFrom !== undefined) {
        context.io.log(`Resumes in place of process ${lock.takenFrom}, which ended before its rollout did.`);
      }
      const rollout = await createRollout({ plan, deployments, signing, path, isDryRun }, context);
      const vouched = await readRelease({ release, log, signer, seen });
      if (vouched !== undefined) checkReleased(rollout, deployments, vouched);
      await forgetEnded(rollout);
      if (isBack) checkWayBack(rollout);
      else await checkBeginning(rollout);
      const steps = isBack ? stepsBack(rollout) : stepsForward(rollout);
      if (isDryRun) return await listRemaining(steps);
      const done = await takeSteps(steps, rollout);
      if (isBack) rollout.memory.forget();
      return createResult(done, isBack);
    } finally {
      lock?.release();
    }
  },
});

/** Plan, files and signer with which a rollout starts. */
interface Start {
  readonly plan: Plan;
  readonly deployments: Deployments;
  readonly signing: Signing;
  /** Path of the rollout's files, without their suffixes. */
  readonly path: string;
  readonly isDryRun: boolean | undefined;
}

/**
 * Refuses new enclaves whose image is not the release's, and a signer who is not the config's.
 *
 * @throws RolloutPlanError; SuiCommandError: RELEASE_SIGNER
 */
function checkReleased(
  { plan, world }: Rollout,
  deployments: Deployments,
  { release, signer }: VouchedRelease,
): void {
  const { image, version, source } = release;
  if (!isSameImage(image, world.findRegisters('new'))) {
    throw new RolloutPlanError(`${plan.new.pcrs} does not have the registers of the release ${version}`);
  }
  const [, { config }] = deployments.application();
  checkSameSigner(deployments, config?.id, signer);
  world.log(
    `The signer of the release ${version} vouches that the new image was built from the commit ${source.commit}.`,
  );
}

async function createRollout(
  { plan, deployments, signing, path, isDryRun }: Start,
  { env, io }: Context,
): Promise<Rollout> {
  const world = await createWorld({ plan, deployments, signing, env, io });
  const [, { config }] = deployments.application();
  // A plan may be corrected during its rollout, except for the old and the new images and enclaves.
  const subject = [
    config?.id,
    world.findRegisters('old'),
    plan.old.urls,
    world.findRegisters('new'),
    plan.new.urls,
  ];
  const digest = createHash('sha256').update(JSON.stringify(subject)).digest('hex');
  return { plan, world, memory: openMemory(`${path}${ROLLOUT_MEMORY}`, digest, isDryRun) };
}

async function listRemaining(steps: readonly Step[]): Promise<Result> {
  const remaining = [];
  for (const { name, missing } of steps) remaining.push({ step: name, missing: (await missing()) ?? null });
  return {
    json: { status: 'dry-run', steps: remaining },
    text: remaining.map(({ step, missing }) => `${step}: ${missing ?? 'nothing to do'}`).join('\n'),
  };
}

function createResult(steps: readonly TakenStep[], isBack: boolean): Result {
  const text = isBack
    ? 'Callers reach the old enclaves, and the new ones are stopped.'
    : 'Callers reach the new enclaves, and the old ones are stopped.';
  const isUnchanged = steps.every(({ result }) => result === 'found');
  return { json: { status: isUnchanged ? 'unchanged' : 'done', steps }, text };
}

if (import.meta.main) await runAsProcess(main);
