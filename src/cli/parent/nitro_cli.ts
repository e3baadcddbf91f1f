/** Runs the functions of nitro-cli that the commands need. */
import * as v from 'valibot';
import { type Environment, UsageError } from '../command.ts';
import { integer } from '../values.ts';
import { ParentError } from './errors.ts';
import { explainOutput } from './nitro_codes.ts';
import { run } from './programs.ts';

/** Options for the size of an enclave, which several commands have. */
export const SIZE_OPTIONS = {
  cpus: {
    value: '<number>',
    help: 'the number of CPUs for the enclave',
    schema: integer(1, 1024),
    default: '2',
  },
  memory: {
    value: '<MiB>',
    help: "memory of the enclave (default: four times the image's size)",
    schema: integer(1, 1024 ** 2),
  },
} as const;

const RunningEnclave = v.object({
  EnclaveName: v.optional(v.string()),
  EnclaveID: v.pipe(v.string(), v.regex(/^[\w-]{1,128}$/)),
  EnclaveCID: v.pipe(v.number(), v.safeInteger(), v.minValue(4)),
  Flags: v.optional(v.string()),
  NumberOfCPUs: v.optional(v.number()),
  MemoryMiB: v.optional(v.number()),
  Measurements: v.optional(
    v.looseObject({
      PCR0: v.optional(v.string()),
      PCR1: v.optional(v.string()),
      PCR2: v.optional(v.string()),
    }),
  ),
});
export type RunningEnclave = v.InferOutput<typeof RunningEnclave>;

/** Runs nitro-cli. @throws ParentError: NITRO_FAILED. The message explains nitro-cli's code */
function runNitroCli<Schema extends v.GenericSchema>(
  env: Environment,
  schema: Schema,
  ...args: string[]
): v.InferOutput<Schema> {
  const { status, stdout, stderr } = run(env, 'nitro-cli', args);
  if (status !== 0) throw new ParentError('NITRO_FAILED', explainOutput(stderr + stdout));
  let data: unknown;
  try {
    data = JSON.parse(stdout);
  } catch {
    throw new ParentError('NITRO_FAILED', `nitro-cli ${args[0]} did not answer in JSON`);
  }
  const parsed = v.safeParse(schema, data);
  if (!parsed.success) {
    throw new ParentError(
      'NITRO_FAILED',
      `nitro-cli ${args[0]} answered without a usable ${v.getDotPath(parsed.issues[0])}`,
    );
  }
  return parsed.output;
}

/** Returns all enclaves of this instance. */
export function runningEnclaves(env: Environment): RunningEnclave[] {
  return runNitroCli(env, v.array(RunningEnclave), 'describe-enclaves');
}

/** Returns the running enclaves with a name. By default, nitro-cli names enclaves after their image. */
export function enclavesNamed(env: Environment, name: string): RunningEnclave[] {
  return runningEnclaves(env).filter(({ EnclaveName }) => EnclaveName === name);
}

export function runEnclave(
  env: Environment,
  options: { name: string; eif: string; cid: number; cpus: number; memoryMib: number; debug: boolean },
): RunningEnclave {
  return runNitroCli(
    env,
    RunningEnclave,
    'run-enclave',
    '--enclave-name',
    options.name,
    '--eif-path',
    options.eif,
    '--enclave-cid',
    String(options.cid),
    '--cpu-count',
    String(options.cpus),
    '--memory',
    String(options.memoryMib),
    ...(options.debug ? ['--debug-mode'] : []),
  );
}

export function terminateEnclave(env: Environment, id: string): void {
  runNitroCli(env, v.unknown(), 'terminate-enclave', '--enclave-id', id);
}

/** Returns the least memory of an enclave in MiB, since nitro-cli requires four times the image's size. */
export function computeMinimumMemory(eifBytes: number): number {
  return Math.max(512, Math.ceil((4 * eifBytes) / 1024 ** 2));
}

/**
 * Returns the enclave's memory in MiB: the value of `--memory`, or the least memory of an enclave.
 *
 * @throws UsageError, if the value is too small
 */
export function chooseMemory(option: number | undefined, eifBytes: number): number {
  const needed = computeMinimumMemory(eifBytes);
  const memoryMib = option ?? needed;
  if (memoryMib >= needed) return memoryMib;
  throw new UsageError(`--memory must be at least ${needed} MiB: four times the image's size`);
}
