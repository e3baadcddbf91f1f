/** `poster.yaml`: what a poster asks, where it writes the answers, and what it may spend. */
import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import { functionName } from '../sui/move_function.ts';
import type { Network } from '../sui/network.ts';
import {
  enclaveUrls,
  filePath,
  integer,
  network,
  nodeUrls,
  parseYamlFile,
  quoted,
  YamlFileError,
} from '../sui/yaml_file.ts';
import { objectId } from '../values.ts';

/** The file can't be used, so nothing was tried. */
export class PosterFileError extends YamlFileError {
  readonly code = 'POSTER_FILE';
}

const SECOND = 1000;

const MAX_ENCLAVES = 16;
const MAX_OBJECTS = 16;
const MAX_ABORTS = 32;
/** Maximum amount in MIST, up to which numbers in YAML are exact. */
const MAX_MIST = Number.MAX_SAFE_INTEGER;
const DEFAULT_BUDGET = 50_000_000;

const name = v.pipe(v.string('must be a string'), v.nonEmpty('must not be empty'));

/** JSON values in YAML, whose integers above 2^53 are not exact. */
const body = v.pipe(
  v.unknown(),
  v.check(isExact, 'must consist of JSON values, with integers above 2^53 as strings'),
);

function isExact(value: unknown): boolean {
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (typeof value !== 'object' || value === null)
    return ['string', 'boolean'].includes(typeof value) || value === null;
  const prototype = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return false;
  return Object.values(value).every(isExact);
}

const PosterYaml = v.pipe(
  v.strictObject({
    network: v.optional(network),
    node: v.optional(nodeUrls),
    app: v.optional(name),
    function: v.pipe(quoted, functionName),
    path: v.optional(name),
    body: v.optional(body),
    intent: v.optional(integer(0, 255)),
    struct: v.optional(name),
    fields: v.optional(v.array(name, 'must be a list of names')),
    config: v.optional(v.pipe(quoted, objectId)),
    objects: v.optional(
      v.pipe(
        v.array(v.pipe(quoted, objectId), 'must be a list of ids'),
        v.maxLength(MAX_OBJECTS, `must have at most ${MAX_OBJECTS} ids`),
      ),
      [],
    ),
    any_answer: v.optional(v.boolean('must be true or false'), false),
    expected_aborts: v.optional(
      v.pipe(
        v.array(
          v.pipe(
            v.string('must be a string'),
            v.regex(/^\w+::\w+$/, 'must be a module and a name: "feed::ENotDue"'),
          ),
          'must be a list of names',
        ),
        v.maxLength(MAX_ABORTS, `must have at most ${MAX_ABORTS} names`),
      ),
      [],
    ),
    enclaves: enclaveUrls(MAX_ENCLAVES),
    root: v.optional(filePath),
    interval: v.optional(integer(1, 3600), 60),
    max_pause: v.optional(integer(1, 86_400), 300),
    max_age: v.optional(integer(1, 86_400), 3600),
    gas_an_hour: integer(1, MAX_MIST),
    gas_a_day: integer(1, MAX_MIST),
    gas_budget: v.optional(integer(1, MAX_MIST), DEFAULT_BUDGET),
    max_gas_price: v.optional(integer(1, MAX_MIST), 3000),
    metrics_port: v.optional(integer(1, 65_535)),
  }),
  v.forward(
    v.check(({ network, node }) => network !== undefined || node !== undefined, 'is missing, and so is node'),
    ['network'],
  ),
  v.forward(
    v.check(
      ({ app, network }) => app === undefined || network !== undefined,
      'needs network, whose deployment file names the application',
    ),
    ['app'],
  ),
  v.forward(
    v.check(({ interval, max_pause }) => max_pause >= interval, 'must not be less than interval'),
    ['max_pause'],
  ),
  v.forward(
    v.check(
      ({ gas_an_hour, gas_budget }) => gas_an_hour >= gas_budget,
      `must not be less than gas_budget, which one transaction needs (${DEFAULT_BUDGET} by default)`,
    ),
    ['gas_an_hour'],
  ),
  v.forward(
    v.check(({ gas_an_hour, gas_a_day }) => gas_a_day >= gas_an_hour, 'must not be less than gas_an_hour'),
    ['gas_a_day'],
  ),
);

export interface PosterFile {
  readonly network: Network | undefined;
  /** URLs of nodes in place of the network's own node; empty to use the network's own. */
  readonly nodes: readonly string[];
  /** The application's name in the deployment file, if the file has several. */
  readonly app: string | undefined;
  /** The Move function: see `functionName`. */
  readonly function: string;
  readonly path: string | undefined;
  readonly body: unknown;
  readonly intent: number | undefined;
  readonly struct: string | undefined;
  readonly fields: readonly string[] | undefined;
  readonly config: string | undefined;
  readonly objects: readonly string[];
  /** Whether a field of the answer may differ from the request's property of the same name. */
  readonly anyAnswer: boolean;
  /** Aborts of the contract that need no alert, such as `feed::ENotDue`. */
  readonly expectedAborts: readonly string[];
  readonly urls: readonly string[];
  /** Absolute path of a PEM file with the roots to trust in place of AWS's. */
  readonly root: string | undefined;
  /** Pause between two rounds, in milliseconds. */
  readonly intervalMs: number;
  /** The longest pause after failures, in milliseconds. */
  readonly maxPauseMs: number;
  /** Maximum age of a value by the clock of this machine, in milliseconds. */
  readonly maxAgeMs: number;
  /** Maximum gas of the transactions signed in an hour, in MIST. Each counts with its whole budget. */
  readonly gasAnHour: bigint;
  /** Maximum gas of the transactions signed in 24 hours, in MIST. */
  readonly gasADay: bigint;
  /** The gas budget of a transaction, in MIST. */
  readonly gasBudget: bigint;
  /** Maximum gas price at which a transaction is signed, in MIST. */
  readonly maxGasPrice: bigint;
  /** Port of the metrics on loopback. */
  readonly metricsPort: number | undefined;
}

/**
 * Parses `poster.yaml`.
 *
 * @param path the file's path. Paths in the file are relative to its folder
 * @throws PosterFileError that names the property and what it must be
 */
export function parsePosterFile(yaml: string, path: string): PosterFile {
  const output = parseYamlFile(PosterYaml, yaml, path, PosterFileError);
  return {
    network: output.network,
    nodes: output.node ?? [],
    app: output.app,
    function: output.function,
    path: output.path,
    body: output.body,
    intent: output.intent,
    struct: output.struct,
    fields: output.fields,
    config: output.config,
    objects: output.objects,
    anyAnswer: output.any_answer,
    expectedAborts: output.expected_aborts,
    urls: output.enclaves,
    root: output.root === undefined ? undefined : resolve(dirname(path), output.root),
    intervalMs: output.interval * SECOND,
    maxPauseMs: output.max_pause * SECOND,
    maxAgeMs: output.max_age * SECOND,
    gasAnHour: BigInt(output.gas_an_hour),
    gasADay: BigInt(output.gas_a_day),
    gasBudget: BigInt(output.gas_budget),
    maxGasPrice: BigInt(output.max_gas_price),
    metricsPort: output.metrics_port,
  };
}
