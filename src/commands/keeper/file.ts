/** `keeper.yaml`: what a keeper watches, and what it may spend. */
import { dirname, resolve } from 'node:path';
import type { Image } from 'sui-enclave/attestation';
import { checkImage } from 'sui-enclave/attestation/image';
import { EnclaveError } from 'sui-enclave/errors';
import * as v from 'valibot';
import { parse as parseYaml } from 'yaml';
import { EXIT } from '../command.ts';
import { NETWORKS, nodeOf } from '../sui/network.ts';
import { enclaveUrl, objectId } from '../values.ts';

/** The file can't be used, so nothing was tried. */
export class KeeperFileError extends EnclaveError {
  readonly code = 'KEEPER_FILE';
  readonly exit = EXIT.notTried;
}

const SECOND = 1000;

/** YAML reads 0x… and digits without quotes as numbers, and so loses digits. */
const quoted = v.string('must be a string, in quotes');
const MAX_ENCLAVES = 64;
/** The highest amount that every number of YAML up to it is exact for. */
const MAX_MIST = Number.MAX_SAFE_INTEGER;

function integer(from: number, to: number) {
  const message = `must be an integer from ${from} to ${to}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(from, message), v.maxValue(to, message));
}

/** Without a user name, as a node's URL may have no secret. */
const nodeUrl = v.pipe(
  v.string('must be a URL'),
  v.check((url) => {
    try {
      nodeOf(undefined, url);
      return true;
    } catch {
      return false;
    }
  }, 'must be an https URL without user name, query and fragment; http only on this machine'),
);

const register = v.pipe(
  quoted,
  v.regex(/^[0-9a-f]{96}$/i, 'must be 96 hexadecimal digits, in quotes'),
  v.regex(/[^0]/, 'is zero: that is what debug enclaves measure, whatever they run'),
);

const Port = integer(1, 65_535);

const KeeperYaml = v.pipe(
  v.strictObject({
    network: v.optional(v.picklist(NETWORKS, `must be one of ${NETWORKS.join(', ')}`)),
    node: v.optional(nodeUrl),
    package: v.pipe(quoted, objectId),
    config: v.pipe(quoted, objectId),
    registrar: v.pipe(quoted, objectId),
    registers: v.strictObject({ pcr0: register, pcr1: register, pcr2: register }),
    enclaves: v.pipe(
      v.array(v.pipe(v.string('must be a URL'), enclaveUrl), 'must be a list of URLs'),
      v.minLength(1, 'must have at least one URL'),
      v.maxLength(MAX_ENCLAVES, `must have at most ${MAX_ENCLAVES} URLs`),
      v.check(
        (urls) => new Set(urls.map((url) => new URL(url).href)).size === urls.length,
        'has a URL twice',
      ),
    ),
    root: v.optional(
      v.pipe(v.string('must be the path of a file'), v.nonEmpty('must be the path of a file')),
    ),
    interval: v.optional(integer(1, 3600), 60),
    max_pause: v.optional(integer(1, 86_400), 300),
    gas_a_day: integer(1, MAX_MIST),
    gas_budget: v.optional(integer(1, MAX_MIST), 200_000_000),
    metrics_port: v.optional(Port),
  }),
  v.forward(
    v.check(({ network, node }) => network !== undefined || node !== undefined, 'is missing, and so is node'),
    ['network'],
  ),
  v.forward(
    v.check(({ interval, max_pause }) => max_pause >= interval, 'must not be less than interval'),
    ['max_pause'],
  ),
  v.forward(
    v.check(
      ({ gas_a_day, gas_budget }) => gas_a_day >= gas_budget,
      'must not be less than gas_budget, which one transaction needs (200000000 by default)',
    ),
    ['gas_a_day'],
  ),
);

export interface KeeperFile {
  readonly network: (typeof NETWORKS)[number] | undefined;
  /** In place of the network's own. */
  readonly node: string | undefined;
  /** The latest version of the package that has `enclave::enclave`. */
  readonly enclavePackage: string;
  readonly configId: string;
  readonly registrarId: string;
  /** The only image that it registers. */
  readonly image: Image;
  readonly urls: readonly string[];
  /** Absolute path of a PEM file with the roots to trust in place of AWS's. */
  readonly root: string | undefined;
  /** Between two rounds, in milliseconds. */
  readonly intervalMs: number;
  /** The longest pause after failures, in milliseconds. */
  readonly maxPauseMs: number;
  /** The most gas that it spends in 24 hours, in MIST. */
  readonly gasADay: bigint;
  /** The most gas of one transaction, in MIST. */
  readonly gasBudget: bigint;
  /** On loopback. */
  readonly metricsPort: number | undefined;
}

/**
 * @param path of the file: its own paths are relative to its folder
 * @throws KeeperFileError that names the property and what it must be
 */
export function parseKeeperFile(yaml: string, path: string): KeeperFile {
  let data: unknown;
  try {
    data = parseYaml(yaml);
  } catch (cause) {
    throw new KeeperFileError(`${path} is not YAML`, { cause });
  }
  // For valibot, a list is an object.
  const result = v.safeParse(KeeperYaml, Array.isArray(data) ? null : data);
  if (!result.success) throw new KeeperFileError(`${path}: ${describe(result.issues[0])}`);
  const { output } = result;
  return {
    network: output.network,
    node: output.node,
    enclavePackage: output.package,
    configId: output.config,
    registrarId: output.registrar,
    image: checkImage(output.registers),
    urls: output.enclaves,
    root: output.root === undefined ? undefined : resolve(dirname(path), output.root),
    intervalMs: output.interval * SECOND,
    maxPauseMs: output.max_pause * SECOND,
    gasADay: BigInt(output.gas_a_day),
    gasBudget: BigInt(output.gas_budget),
    metricsPort: output.metrics_port,
  };
}

/** Such as "registers.pcr0 must be …". */
function describe(issue: v.InferIssue<typeof KeeperYaml>): string {
  const name = v.getDotPath(issue);
  if (name === null) return 'must be a map of the properties that the README lists';
  if (issue.kind !== 'schema' || issue.type !== 'strict_object') return `${name} ${issue.message}`;
  if (issue.expected === 'never') return `there is no property ${name}`;
  return issue.received === 'undefined' ? `${name} is missing` : `${name} must be a map`;
}
