/** `rollout.yaml`: the old and the new enclaves, and the operator's own commands for the rollout. */
import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import type { Network } from '../sui/network.ts';
import { SOURCE_OPTION } from '../sui/options.ts';
import {
  enclaveUrls,
  filePath,
  integer,
  network,
  nodeUrls,
  normalizeUrls,
  parseYamlFile,
  quoted,
  YamlFileError,
} from '../sui/yaml_file.ts';
import { enclaveUrl, objectId } from '../values.ts';

/** The plan can't be used, so nothing was tried. */
export class RolloutPlanError extends YamlFileError {
  readonly code = 'ROLLOUT_PLAN';
}

/**
 * Maximum number of enclaves of a side. One transaction, of at most 128 KiB, registers them all, and a
 * document has about 5 KiB.
 */
const MAX_ENCLAVES = 16;
const MAX_COMMANDS = 64;
const MAX_WORDS = 64;
/**
 * Longest overlap in minutes: a day minus one minute. The contract's limit is a day by the chain's clock,
 * which may be behind.
 */
const MAX_OVERLAP = 1439;
/** Length of a day in seconds. */
const DAY = 86_400;

const word = v.pipe(
  v.string('must be a string, in quotes'),
  v.maxLength(4096, 'must have at most 4096 characters'),
);

/** Programs with their arguments, which run without a shell. */
const commands = v.pipe(
  v.array(
    v.pipe(
      v.array(word, 'must be a list of strings: a program and its arguments'),
      v.minLength(1, 'must name a program'),
      v.maxLength(MAX_WORDS, `must have at most ${MAX_WORDS} strings`),
      v.check(([program]) => program !== '', 'must name a program'),
    ),
    'must be a list of commands, each a list of strings',
  ),
  v.minLength(1, 'must have at least one command'),
  v.maxLength(MAX_COMMANDS, `must have at most ${MAX_COMMANDS} commands`),
);

const sourceUrl = v.pipe(v.string('must be a URL'), SOURCE_OPTION['source-url'].schema);
const side = v.strictObject({ pcrs: filePath, enclaves: enclaveUrls(MAX_ENCLAVES) });

const PlanYaml = v.pipe(
  v.strictObject({
    network,
    app: v.optional(v.string('must be the name of an application')),
    node: v.optional(nodeUrls),
    registrar: v.optional(v.pipe(quoted, objectId)),
    root: v.optional(filePath),
    old: side,
    new: side,
    balancer: v.optional(v.pipe(v.string('must be a URL'), enclaveUrl)),
    source_url: v.optional(sourceUrl),
    commands: v.strictObject({
      start: commands,
      provision: v.optional(commands),
      switch: commands,
      switch_back: commands,
      stop_old: commands,
      stop_new: commands,
    }),
    overlap: integer(1, MAX_OVERLAP),
    end_overlap: v.optional(v.picklist(['admin', 'time'], 'must be admin or time'), 'admin'),
    drain: v.optional(integer(0, DAY), 30),
    settle: v.optional(integer(0, DAY), 300),
    start_within: v.optional(integer(1, DAY), 600),
    command_within: v.optional(integer(1, DAY), 600),
    admin_within: v.optional(integer(0, DAY), 3600),
  }),
  v.forward(
    v.check((plan) => {
      const old = normalizeUrls(plan.old.enclaves);
      return !normalizeUrls(plan.new.enclaves).some((url) => old.includes(url));
    }, 'has a URL that is also in old: the old and the new enclaves run beside each other, so give each its own URL'),
    ['new'],
  ),
);

/** Names of the commands in a plan. */
export type CommandName = 'start' | 'provision' | 'switch' | 'switch_back' | 'stop_old' | 'stop_new';

/** The enclaves before the rollout, or those after it. */
export type SideName = 'old' | 'new';

export interface Side {
  /** Absolute path of the file with the registers. */
  readonly pcrs: string;
  readonly urls: readonly string[];
}

export interface Plan {
  /** Absolute path of the plan's folder, in which its commands run. */
  readonly folder: string;
  readonly network: Network;
  readonly app: string | undefined;
  /** URLs of nodes instead of the network's own node; empty to use the network's own. */
  readonly nodes: readonly string[];
  /** The RegistrarCap of the signer; undefined if the config is open, and so needs none. */
  readonly registrarId: string | undefined;
  /** Absolute path of a PEM file with the roots to trust in place of AWS's. */
  readonly root: string | undefined;
  readonly old: Side;
  readonly new: Side;
  /** The URL that callers use. Through this URL, a rollout sees which enclaves callers reach. */
  readonly balancer: string | undefined;
  /** The repository of both images, which the config will name. */
  readonly sourceUrl: string | undefined;
  /** The commands, each a program and its arguments. A list is empty if the plan has no such command. */
  readonly commands: Readonly<Record<CommandName, readonly (readonly string[])[]>>;
  /** Length of the overlap in minutes. */
  readonly overlap: number;
  /**
   * Whether the admin ends the overlap once the old enclaves are stopped. Otherwise it ends when its time is
   * over.
   */
  readonly isEndedByAdmin: boolean;
  /**
   * Time between a switch of callers and the stop of a side, in which its enclaves finish their requests, in
   * milliseconds.
   */
  readonly drainMs: number;
  /** Time within which users submit the last answers of the old enclaves, in milliseconds. */
  readonly settleMs: number;
  /**
   * Maximum time for an enclave to start, for a command to run, and for the admin to act, in milliseconds.
   */
  readonly startMs: number;
  readonly commandMs: number;
  readonly adminMs: number;
}

/**
 * Parses `rollout.yaml`.
 *
 * @param path the plan's path. Paths in the plan are relative to its folder
 * @throws RolloutPlanError that names the property and what it must be
 */
export function parsePlan(yaml: string, path: string): Plan {
  const output = parseYamlFile(PlanYaml, yaml, path, RolloutPlanError);
  const folder = resolve(dirname(path));
  const toSide = ({ pcrs, enclaves }: v.InferOutput<typeof side>): Side => ({
    pcrs: resolve(folder, pcrs),
    urls: enclaves,
  });
  return {
    folder,
    network: output.network,
    app: output.app,
    nodes: output.node ?? [],
    registrarId: output.registrar,
    root: output.root === undefined ? undefined : resolve(folder, output.root),
    old: toSide(output.old),
    new: toSide(output.new),
    balancer: output.balancer,
    sourceUrl: output.source_url,
    commands: { ...output.commands, provision: output.commands.provision ?? [] },
    overlap: output.overlap,
    isEndedByAdmin: output.end_overlap === 'admin',
    drainMs: output.drain * 1000,
    settleMs: output.settle * 1000,
    startMs: output.start_within * 1000,
    commandMs: output.command_within * 1000,
    adminMs: output.admin_within * 1000,
  };
}
