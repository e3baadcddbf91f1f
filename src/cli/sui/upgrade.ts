/**
 * `sui-enclave upgrade`: replaces a package on chain by the package in `move/`, if packages that depend on it
 * continue to work.
 */

import { bcs } from '@mysten/sui/bcs';
import { Transaction } from '@mysten/sui/transactions';
import { normalizeStructTag } from '@mysten/sui/utils';
import { WrongObjectTypeError } from 'sui-enclave/sui/errors';
import { upgradePackage } from 'sui-enclave/sui/transactions';
import { listIncompatibilities } from 'sui-enclave-devnet/bytecode/compatibility';
import { readModule } from 'sui-enclave-devnet/bytecode/module_bytecode';
import { packageDigest } from 'sui-enclave-devnet/bytecode/package_digest';
import { runAsProcess, UsageError } from '../command.ts';
import { objectId, text } from '../values.ts';
import type { Chain } from './chain.ts';
import { suiCommand } from './command.ts';
import { BYTECODE_OPTIONS, checkBytecode, loadBytecode } from './compiled.ts';
import type { Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import type { Outcome } from './outcome.ts';
import { findLinkedEnclave } from './publish.ts';
import { readPublished, recordPublication, upgradeCapIn } from './published.ts';

const POLICIES: Readonly<Record<number, string>> = {
  0: 'compatible',
  128: 'additive',
  192: 'dependencies only',
};

interface UpgradeCap {
  readonly id: string;
  /** The latest version of the package. */
  readonly packageId: string;
  readonly version: bigint;
  readonly policy: number;
}

/** @throws SuiError */
async function readUpgradeCap(chain: Chain, id: string): Promise<UpgradeCap> {
  const { type, content } = await chain.object(id);
  if (type !== normalizeStructTag('0x2::package::UpgradeCap')) {
    throw new WrongObjectTypeError(id, 'a package::UpgradeCap', type);
  }
  const Content = bcs.struct('UpgradeCap', {
    id: bcs.Address,
    package: bcs.Address,
    version: bcs.u64(),
    policy: bcs.u8(),
  });
  const { package: packageId, version, policy } = Content.parse(content);
  return { id, packageId, version: BigInt(version), policy };
}

/** @throws SuiCommandError: INCOMPATIBLE; SuiError */
async function checkCompatible(
  modulesOnChain: readonly Uint8Array[],
  modulesInBase64: readonly string[],
  originalId: string,
): Promise<void> {
  const readModules = (modules: readonly Uint8Array[], origin: string) => {
    try {
      return modules.map((module) => readModule(module, originalId));
    } catch (cause) {
      const { message } = cause as RangeError;
      throw new SuiCommandError('INCOMPATIBLE', `a module ${origin} can't be compared: ${message}`, {
        cause,
      });
    }
  };
  const builtModules = modulesInBase64.map((module) => new Uint8Array(Buffer.from(module, 'base64')));
  const problems = listIncompatibilities(
    readModules(modulesOnChain, 'on chain'),
    readModules(builtModules, 'of move/'),
  );
  if (problems.length > 0) {
    throw new SuiCommandError(
      'INCOMPATIBLE',
      `the chain would refuse this upgrade, since other code may use what changes. Nothing was sent:\n${problems.map((line) => `  - ${line}`).join('\n')}`,
    );
  }
}

/** Writes the new version into the package's entries in the deployment file. */
async function recordUpgrade(
  deployments: Deployments | undefined,
  chain: Chain,
  outcome: Outcome,
  { originalId, linkedEnclave }: { readonly originalId: string; readonly linkedEnclave: string | undefined },
): Promise<void> {
  await deployments?.record(chain, outcome, (applications) => {
    const { package: id, version } = outcome.fields as { package: string; version: bigint };
    // A package may have several applications.
    const entries = [...applications].filter(([, { original }]) => original === originalId);
    if (entries.length === 0) return `no application there has the package ${originalId}`;
    return entries.map(([name, entry]) => {
      const enclavePackage = entry.enclavePackage === entry.package ? id : linkedEnclave;
      const newVersion = {
        package: id,
        version: Number(version),
        ...(enclavePackage !== undefined && { enclavePackage }),
      };
      return [name, { ...entry, ...newVersion }];
    });
  });
}

export const main = suiCommand({
  name: 'upgrade',
  purpose:
    'Compiles a package of move/ and upgrades the package on chain that `publish` published from it. Before it\nsends anything, it compares modules, types and public functions with those on chain, and refuses the upgrade if one\nthat other code may use is missing or has changed. The node simulates the rest. Set FRAMEWORK or SUI_FRAMEWORK_DIR as for publish.',
  example: 'weather --network testnet --dry-run',
  ids: [],
  arguments: { package: { schema: text } },
  options: {
    ...BYTECODE_OPTIONS,
    'upgrade-cap': {
      value: '<id>',
      help: "the package's UpgradeCap (default: the one in the deployment file, or else in Published.toml)",
      schema: objectId,
    },
  },
  check: ({ args, env, options }) => checkBytecode(args.package, options, env),
  async run({ args, options, env, deployments }, chain) {
    const { package: name } = args;
    const upgradeCapId = options['upgrade-cap'];
    await deployments?.checkChain(chain);
    const bytecode = await loadBytecode(name, { ...options, again: true }, env, chain);
    const path = bytecode.published;
    const entry = deployments?.read()?.applications.get(name);
    const capId =
      upgradeCapId ?? entry?.upgradeCap ?? (path && upgradeCapIn(readPublished(path), bytecode.network));
    if (!capId) {
      throw new UsageError(
        `give --upgrade-cap: ${path === undefined ? 'there is no Published.toml' : `${path} names none for ${bytecode.network}`}`,
      );
    }
    const cap = await readUpgradeCap(chain, capId);
    const { originalId, modules: modulesOnChain } = await chain.package(cap.packageId);
    await checkCompatible(modulesOnChain, bytecode.modules, originalId);
    const { modules, dependencies } = bytecode;
    const digest = packageDigest(
      modules.map((module) => Buffer.from(module, 'base64')),
      dependencies,
    );
    const tx = new Transaction();
    upgradePackage(tx, {
      modules,
      dependencies,
      upgradeCapId: cap.id,
      packageId: cap.packageId,
      digest,
      policy: cap.policy,
    });
    const version = cap.version + 1n;
    const linkedEnclave = await findLinkedEnclave(chain, dependencies);
    const outcome = await chain.submit(tx, {
      title: `upgrade ${bytecode.title}`,
      fields: {
        framework: bytecode.framework,
        before: cap.packageId,
        original: originalId,
        version,
        policy: POLICIES[cap.policy] ?? String(cap.policy),
        upgradeCap: cap.id,
      },
      report: ({ packageId }) => ({ package: packageId }),
    });
    const { package: publishedAt } = outcome.fields;
    if (outcome.status === 'done' && typeof publishedAt === 'string') {
      await recordPublication(chain, path, { publishedAt, originalId, version, upgradeCap: cap.id });
    }
    await recordUpgrade(deployments, chain, outcome, { originalId, linkedEnclave });
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
