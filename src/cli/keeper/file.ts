/** Parses `keeper.yaml`, which says what a keeper watches and what it may spend. */
import { dirname, resolve } from 'node:path';
import type { Image } from 'sui-enclave/attestation';
import { checkImage } from 'sui-enclave/attestation/image';
import * as v from 'valibot';
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
export class KeeperFileError extends YamlFileError {
  readonly code = 'KEEPER_FILE';
}

const SECOND = 1000;

const MAX_ENCLAVES = 64;
/** Maximum amount in MIST. YAML's numbers are exact up to this amount. */
const MAX_MIST = Number.MAX_SAFE_INTEGER;

const register = v.pipe(
  quoted,
  v.regex(/^[0-9a-f]{96}$/i, 'must be 96 hexadecimal digits, in quotes'),
  v.regex(/[^0]/, 'is zero, as in every debug enclave, whatever it runs'),
);

const Port = integer(1, 65_535);

const KeeperYaml = v.pipe(
  v.strictObject({
    network: v.optional(network),
    node: v.optional(nodeUrls),
    package: v.pipe(quoted, objectId),
    config: v.pipe(quoted, objectId),
    registrar: v.optional(v.pipe(quoted, objectId)),
    registers: v.strictObject({ pcr0: register, pcr1: register, pcr2: register }),
    enclaves: enclaveUrls(MAX_ENCLAVES),
    root: v.optional(filePath),
    interval: v.optional(integer(1, 3600), 60),
    max_pause: v.optional(integer(1, 86_400), 300),
    gas_a_day: integer(1, MAX_MIST),
    gas_budget: v.optional(integer(1, MAX_MIST), 50_000_000),
    max_gas_price: v.optional(integer(1, MAX_MIST), 3000),
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
      'must not be less than gas_budget, which one transaction needs (50000000 by default)',
    ),
    ['gas_a_day'],
  ),
);

export interface KeeperFile {
  readonly network: Network | undefined;
  /** URLs of nodes instead of the network's own node; empty to use the network's own. */
  readonly nodes: readonly string[];
  /** The latest version of the package that has `enclave::enclave`. */
  readonly enclavePackage: string;
  readonly configId: string;
  /** The RegistrarCap of the signer. An open config needs none. */
  readonly registrarId: string | undefined;
  /** The only image whose enclaves the keeper registers. */
  readonly image: Image;
  readonly urls: readonly string[];
  /** Absolute path of a PEM file with the roots to trust in place of AWS's. */
  readonly root: string | undefined;
  /** Pause between two rounds, in milliseconds. */
  readonly intervalMs: number;
  /** The longest pause after failures, in milliseconds. */
  readonly maxPauseMs: number;
  /**
   * Maximum gas of all transactions that the keeper signs in 24 hours, in MIST. Each counts with its whole
   * budget.
   */
  readonly gasADay: bigint;
  /** The gas budget of a transaction, in MIST. */
  readonly gasBudget: bigint;
  /** Maximum gas price at which the keeper signs a transaction, in MIST. */
  readonly maxGasPrice: bigint;
  /** Port of the metrics on loopback. */
  readonly metricsPort: number | undefined;
}

/**
 * Parses a keeper's file.
 *
 * @param path the file's path. Paths in the file are relative to its folder
 * @throws KeeperFileError that names the property and what it must be
 */
export function parseKeeperFile(yaml: string, path: string): KeeperFile {
  const output = parseYamlFile(KeeperYaml, yaml, path, KeeperFileError);
  return {
    network: output.network,
    nodes: output.node ?? [],
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
    maxGasPrice: BigInt(output.max_gas_price),
    metricsPort: output.metrics_port,
  };
}
