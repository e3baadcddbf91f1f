/** The environment that a rollout reads and changes: the chain, the enclaves, and the operator's commands. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { AttestationError, type Image } from 'sui-enclave/attestation';
import { ClientError } from 'sui-enclave/client/errors';
import { isEnclaveError } from 'sui-enclave/errors';
import {
  type EnclaveConfig,
  findRegistration,
  isKeyTooOld,
  readConfig,
  readEnclave,
} from 'sui-enclave/sui/objects';
import type { Environment, Io } from '../command.ts';
import { isAbort } from '../keeper/world.ts';
import { PROGRAM } from '../places.ts';
import { needsSecrets } from '../provision/enclave.ts';
import { askForAttestation, readAttestedKey } from '../sui/attest.ts';
import { Chain } from '../sui/chain.ts';
import { checkContract, checkNotRetired, enclaveAt, readRoots } from '../sui/contract.ts';
import type { Deployments } from '../sui/deployments.ts';
import { isSameImage, readImage } from '../sui/image_to_allow.ts';
import type { CommonOptions } from '../sui/options.ts';
import { type Candidate, register } from '../sui/registration.ts';
import { RolloutError } from './errors.ts';
import { type CommandName, type Plan, RolloutPlanError, type SideName } from './plan.ts';

/** The enclave at a URL, or the reason why there is none. */
export type LookOutcome =
  | { readonly url: string; readonly answers: true; readonly candidate: Candidate }
  | { readonly url: string; readonly answers: false; readonly reason: string };

/** State of a key for contracts. `free`: the key is not registered at a version that contracts accept. */
export type KeyState = 'accepted' | 'free' | 'destroyed' | 'too old';

export interface World {
  readonly plan: Plan;
  /** Reads the config. @throws RolloutError: ROLLOUT_CONFIG if it allows neither image; EnclaveError */
  config(): Promise<EnclaveConfig>;
  /** Returns the registers of a side's image. */
  findRegisters(side: SideName): Image;
  /** Returns the side whose image the config allows. */
  findSide(config: EnclaveConfig): SideName;
  /**
   * Attests the enclave at a URL, with a fresh nonce.
   *
   * @throws EnclaveError if something other than an enclave of the side's image answers
   */
  look(url: string, side: SideName): Promise<LookOutcome>;
  /** Returns whether an enclave of the side's image answers. */
  isRunning(url: string, side: SideName): Promise<boolean>;
  /** Returns whether the enclave reports that it has its secrets. */
  isReady(url: string): Promise<boolean>;
  readState(candidate: Candidate, config: EnclaveConfig): Promise<KeyState>;
  /** Registers all candidates in one transaction. @throws EnclaveError */
  register(candidates: readonly Candidate[], config: EnclaveConfig): Promise<void>;
  /** Runs the plan's commands of this name, one after the other. @throws RolloutError: ROLLOUT_COMMAND */
  run(name: CommandName): Promise<void>;
  /**
   * Returns a command line for the holder of the EnclaveCap. The command's first arguments are package and
   * config.
   */
  adminCommand(name: string, ...args: readonly string[]): string;
  /** Writes a line, without keys or secrets. */
  log(line: string): void;
  /** Returns the time in milliseconds since 1970, to compare with times of the chain. */
  now(): number;
  /**
   * Returns a monotonic time for durations, in milliseconds since 1970 by the wall clock at the start of the
   * process.
   */
  clock(): number;
  pause(ms: number): Promise<void>;
}

export type Signing = Pick<CommonOptions, 'address' | 'keystore'>;

/** Plan, deployment file and settings from which a world is created. */
export interface Surroundings {
  readonly plan: Plan;
  readonly deployments: Deployments;
  readonly signing: Signing;
  readonly env: Environment;
  readonly io: Pick<Io, 'log'>;
  /** Time limit within which the plan's nodes must agree, in milliseconds. Default: a minute. */
  readonly agreeMs?: number;
}

/** Pause in milliseconds before nodes that lag behind each other are read again. */
const LOOK_MS = 500;
const AGREE_MS = 60_000;

/**
 * Creates the world of a plan, and checks the chain of its nodes and its images.
 *
 * @throws SuiCommandError: DEPLOYMENT, DEVELOPMENT_TRUST; UnreadableFileError, AttestationError,
 *   RolloutPlanError
 */
export async function createWorld({
  plan,
  deployments,
  signing,
  env,
  io,
  agreeMs = AGREE_MS,
}: Surroundings): Promise<World> {
  const connectTo = (node: string | undefined) =>
    new Chain({ ...signing, network: plan.network, ...(node !== undefined && { 'rpc-url': node }) }, env);
  // Undefined means the network's own node. The first node sends transactions.
  const [first, ...further] = plan.nodes;
  const connect = () => connectTo(first);
  const chain = connect();
  const { enclavePackage = '', configId = '' } = deployments.fill(['enclavePackage', 'configId']);
  await deployments.checkChain(chain);
  for (const node of further) {
    await deployments.checkChain(connectTo(node));
    for (const side of [plan.old, plan.new]) await readImage(connectTo(node), side.pcrs);
    await readRoots(connectTo(node), plan.root);
  }
  const images: Readonly<Record<SideName, Image>> = {
    old: await readImage(chain, plan.old.pcrs),
    new: await readImage(chain, plan.new.pcrs),
  };
  if (isSameImage(images.old, images.new)) {
    throw new RolloutPlanError(
      `${plan.old.pcrs} and ${plan.new.pcrs} have the same registers: there is nothing to roll out`,
    );
  }
  const roots = await readRoots(chain, plan.root);
  for (const note of chain.notes) io.log(note);
  if (plan.root !== undefined) io.log(`Trusts the certificates of ${plan.root} in place of AWS's root.`);
  const childEnv = removeKey(env);

  /**
   * Reads the state on which all nodes agree.
   *
   * @throws RolloutError: ROLLOUT_NODES_DISAGREE; the errors of `read`
   */
  async function readAgreed<T>(read: (node: Chain) => Promise<T>): Promise<T> {
    const end = performance.now() + agreeMs;
    for (;;) {
      const [state, ...furtherStates] = await Promise.all([
        read(connect()),
        ...further.map((node) => read(connectTo(node))),
      ]);
      if (furtherStates.every((furtherState) => isDeepStrictEqual(furtherState, state))) return state;
      if (performance.now() >= end) {
        throw new RolloutError(
          'ROLLOUT_NODES_DISAGREE',
          `the nodes of the plan show different states of the config ${configId} or its enclaves: compare them, and remove a node that lags or lies from the plan`,
        );
      }
      await sleep(LOOK_MS);
    }
  }

  const world: World = {
    plan,
    findRegisters: (side) => images[side],
    async config() {
      const config = await readAgreed(async (current) => {
        const read = await readConfig(current.client, configId);
        await checkContract(current, read, { enclavePackage });
        return read;
      });
      checkNotRetired(config);
      world.findSide(config);
      return config;
    },
    findSide({ id, image }) {
      if (isSameImage(image, images.new)) return 'new';
      if (isSameImage(image, images.old)) return 'old';
      throw new RolloutError(
        'ROLLOUT_CONFIG',
        `the config ${id} allows an image that is neither the old nor the new image of the plan`,
      );
    },
    async look(url, side) {
      const expected = { images: [images[side]], roots, configId, deployments };
      try {
        const attested = await askForAttestation(url, roots?.[0], connect());
        const publicKey = await readAttestedKey(attested, expected);
        return { url, answers: true, candidate: { url, document: attested.document, publicKey } };
      } catch (error) {
        if (!isNoAnswer(error)) throw error;
        return { url, answers: false, reason: error.message.split('\n')[0] ?? '' };
      }
    },
    async isRunning(url, side) {
      try {
        return (await world.look(url, side)).answers;
      } catch (error) {
        if (error instanceof AttestationError) return false;
        throw error;
      }
    },
    async isReady(url) {
      return await needsSecrets(enclaveAt(url)).then(
        (needs) => !needs,
        (error) => {
          // Nothing answers, or something other than an enclave does.
          if (isEnclaveError(error)) return false;
          throw error;
        },
      );
    },
    async readState({ publicKey }, config) {
      return await readAgreed(async ({ client }): Promise<KeyState> => {
        const { enclaveId, state } = await findRegistration(client, config, publicKey);
        if (state !== 'registered') return state;
        return isKeyTooOld(await readEnclave(client, enclaveId), config, Date.now()) ? 'too old' : 'accepted';
      });
    },
    async register(candidates, config) {
      const current = connect();
      const send = () =>
        register(current, { enclavePackage, config, deployments }, candidates, plan.registrarId);
      // A keeper may have registered a candidate in between. The second attempt then registers the others.
      await send().catch((error: unknown) => {
        if (!isAbort(error, 'enclave::EAlreadyRegistered')) throw error;
        return send();
      });
      for (const note of current.notes) io.log(note);
    },
    async run(name) {
      for (const [program = '', ...args] of plan.commands[name]) {
        io.log(`${name}: ${[program, ...args].map(shellWord).join(' ')}`);
        await runProgram(name, program, args, plan, childEnv);
      }
    },
    adminCommand(name, ...args) {
      const options = [
        '--network',
        plan.network,
        ...(first === undefined ? [] : ['--rpc-url', first]),
        ...(plan.root !== undefined && name === 'rotate' ? ['--root', plan.root] : []),
      ];
      const ids = ['--enclave-package', enclavePackage, '--config', configId];
      const words = [...ids, ...args, ...options].map(shellWord);
      return `${PROGRAM} ${name} ${words.join(' ')}`;
    },
    log: (line) => io.log(line),
    now: Date.now,
    clock: () => Math.round(performance.timeOrigin + performance.now()),
    pause: async (ms) => {
      await sleep(ms);
    },
  };
  return world;
}

/** Returns whether an error means that no enclave answers. An answer of a proxy is not an enclave's. */
function isNoAnswer(error: unknown): error is ClientError {
  return error instanceof ClientError && error.code !== 'CLIENT_ATTESTED_KEY';
}

const STDERR = 2;
/** Time in milliseconds after which a command that SIGTERM did not end is killed. */
const KILL_AFTER_MS = 5000;

/** Returns the environment without the signer's key, which the operator's commands do not need. */
function removeKey({ SUI_PRIVATE_KEY: _, ...safeEnvironment }: Environment): NodeJS.ProcessEnv {
  return safeEnvironment;
}

/** Runs a program, whose output goes to standard error. */
async function runProgram(
  name: CommandName,
  program: string,
  args: readonly string[],
  { folder, commandMs }: Plan,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const child = spawn(program, args, {
    cwd: folder,
    env,
    stdio: ['ignore', STDERR, STDERR],
    timeout: commandMs,
  });
  const killing = setTimeout(() => child.kill('SIGKILL'), commandMs + KILL_AFTER_MS);
  const ended = await new Promise<string>((resolve) => {
    child.once('error', ({ code }: NodeJS.ErrnoException) => resolve(`could not be started: ${code}`));
    child.once('exit', (code, signal) =>
      resolve(code === 0 ? '' : `ended with ${signal ?? `exit code ${code}`}`),
    );
  });
  clearTimeout(killing);
  // A command that was stopped may still exit with 0.
  if (ended === '' && !child.killed) return;
  const reason = child.killed ? `took longer than command_within, ${commandMs / 1000} s` : ended;
  throw new RolloutError('ROLLOUT_COMMAND', `a command of ${name} ${reason}: ${program}`);
}

/** Quotes a word for a POSIX shell, if that is necessary. */
function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
