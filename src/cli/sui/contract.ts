/** Reads and checks configs, enclaves and roots, for several commands. */
import { setTimeout as sleep } from 'node:timers/promises';
import { certificatesFromPem } from 'sui-enclave/attestation';
import { baseUrl, type Http } from 'sui-enclave/client/http';
import { WrongObjectTypeError } from 'sui-enclave/sui/errors';
import {
  type Contract,
  type EnclaveConfig,
  isOverlapping,
  type Registration,
  readConfig,
} from 'sui-enclave/sui/objects';
import { readTypeOrigin } from 'sui-enclave/sui/packages';
import { checkAddress } from 'sui-enclave/sui/values';
import { readFileArgument } from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import type { Chain } from './chain.ts';
import type { Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import type { OVERLAP_OPTION } from './options.ts';

const ENCLAVE_TIMEOUT_MS = 10_000;

/**
 * Returns the certificates of the file of `--root`, or undefined for AWS's.
 *
 * @throws SuiCommandError: DEVELOPMENT_TRUST
 */
export async function readRoots(
  chain: Chain,
  root: string | undefined,
): Promise<[Uint8Array, ...Uint8Array[]] | undefined> {
  if (root === undefined) return undefined;
  if (chain.isOnRealNetwork) {
    throw new SuiCommandError(
      'DEVELOPMENT_TRUST',
      `the root ${root} is for development, and ${chain.description} is a real network, whose contracts accept only AWS's root: leave out --root or the file's root, and unset SUI_ENCLAVE_ROOT. Nothing was sent`,
    );
  }
  return certificatesFromPem((await readFileArgument(root)).toString()) as [Uint8Array, ...Uint8Array[]];
}

/** Interval at which a node that lags is read again, in milliseconds. */
const ASK_MS = 200;

/**
 * Reads a config in at least the version that the deployment file names. Several nodes may share an address,
 * and one of them may lag. In an older version, a change that is still necessary could seem to have been made
 * already.
 *
 * @throws SuiCommandError: DEPLOYMENT if the node still lags after `chain.indexingMs`; SuiError
 */
export async function readLatestConfig(
  chain: Chain,
  configId: string,
  deployments: Deployments | undefined,
): Promise<EnclaveConfig> {
  const entries = [...(deployments?.readApplications().values() ?? [])];
  const recordedVersion = entries.find(({ config }) => config?.id === configId)?.config?.version ?? 0;
  const deadline = performance.now() + chain.indexingMs;
  for (;;) {
    const config = await readConfig(chain.client, configId);
    if (config.configVersion >= BigInt(recordedVersion)) return config;
    if (performance.now() >= deadline) {
      throw new SuiCommandError(
        'DEPLOYMENT',
        `${deployments?.path} has version ${recordedVersion} of the config ${configId}, and the node shows version ${config.configVersion}: the node lags behind. Run the command again when it has caught up, or name another node by --rpc-url. Nothing was sent`,
      );
    }
    await sleep(ASK_MS);
  }
}

/** @throws SuiCommandError: WOULD_ABORT */
export function checkNotRetired({ id, isRetired }: EnclaveConfig): void {
  if (isRetired) {
    throw new SuiCommandError(
      'WOULD_ABORT',
      `the config ${id} is permanently retired: use the config that the application uses now`,
    );
  }
}

/**
 * Returns the end of an overlap that begins now, in milliseconds since 1970; undefined without an overlap.
 *
 * @throws SuiCommandError: WOULD_ABORT if the config already has an overlap
 */
export function overlapEnd(
  config: EnclaveConfig,
  { overlap: minutes }: OptionValues<typeof OVERLAP_OPTION>,
): number | undefined {
  const now = Date.now();
  if (minutes === undefined) return undefined;
  if (isOverlapping(config, now)) {
    throw new SuiCommandError(
      'WOULD_ABORT',
      `the config ${config.id} has an overlap until ${new Date(Number(config.overlap?.untilMs)).toISOString()}: end it by end_overlap, or leave out --overlap, which makes the enclaves of both older versions stale immediately`,
    );
  }
  return now + minutes * 60_000;
}

/** Returns the field of a report that has the end of an overlap; no field without an overlap. */
export function overlapField(untilMs: number | undefined): { readonly overlapUntil?: Date } {
  return untilMs === undefined ? {} : { overlapUntil: new Date(untilMs) };
}

/** @throws SuiCommandError: NOT_REGISTERED */
export function checkRegistered({ state }: Registration, { id }: EnclaveConfig, url: string): void {
  if (state === 'registered') return;
  const advice =
    state === 'free'
      ? 'not registered: run register_enclave'
      : 'destroyed: restart the enclave, and register it';
  throw new SuiCommandError(
    'NOT_REGISTERED',
    `the enclave at ${url} runs the image of the config ${id}, but its key is ${advice}. Nothing was sent`,
  );
}

/** Returns the base URL and time-out of requests to an enclave. @throws ClientError: CLIENT_OPTION */
export function enclaveAt(url: string): Http {
  return { base: baseUrl(url), timeoutMs: ENCLAVE_TIMEOUT_MS };
}

/**
 * Checks that an object belongs to the packages that the command line names. The id of a package may be that
 * of any version that has the object's type.
 *
 * @throws WrongObjectTypeError; SuiError
 */
export async function checkContract(
  chain: Chain,
  object: Contract & { readonly id: string },
  expectedNames: { readonly enclavePackage?: string; readonly application?: string },
): Promise<void> {
  const isIntroducedBy = async (origin: string, packageId: string, datatype: string) =>
    origin === packageId || origin === (await readTypeOrigin(chain.client, packageId, datatype));
  if (expectedNames.enclavePackage !== undefined) {
    const packageId = checkAddress('<enclave_package_id>', expectedNames.enclavePackage);
    if (!(await isIntroducedBy(object.enclavePackage, packageId, 'enclave::EnclaveConfig'))) {
      throw new WrongObjectTypeError(object.id, `of the package ${packageId}`, `of ${object.enclavePackage}`);
    }
  }
  if (expectedNames.application !== undefined) {
    const [packageId = '', ...names] = expectedNames.application.split('::');
    const [origin = '', ...objectNames] = object.application.split('::');
    const datatype = names.join('::');
    if (datatype !== objectNames.join('::') || !(await isIntroducedBy(origin, packageId, datatype))) {
      throw new WrongObjectTypeError(
        object.id,
        `for ${expectedNames.application}`,
        `for ${object.application}`,
      );
    }
  }
}
