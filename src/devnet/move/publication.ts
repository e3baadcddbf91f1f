/** Publishes and upgrades packages. Checks replaced packages and dependencies by the rules of Sui. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { toBase58 } from '@mysten/sui/utils';
import { listIncompatibilities } from '../bytecode/compatibility.ts';
import { readModule } from '../bytecode/module_bytecode.ts';
import { listDeclarations } from '../bytecode/normalized.ts';
import { packageDigest } from '../bytecode/package_digest.ts';
import type { Upgrade } from '../commands.ts';
import type { Published } from '../engine.ts';
import { CommandFailure } from '../failures.ts';
import type { Changes } from '../ledger.ts';
import { loadModules, originalOf, type Package } from '../packages.ts';
import { normalizePackageId } from './code.ts';
import { findPublicationLinkage, type Linkage } from './linkage.ts';

export interface Publishing {
  readonly modules: readonly Uint8Array[];
  readonly dependencies: readonly string[];
}

/** The upgrade that an UpgradeCap has authorized. */
interface Ticket {
  readonly packageId: string;
  readonly policy: number;
  readonly digest: Uint8Array;
}

/** Context in which a package is written to the chain. */
interface Writing {
  readonly packages: Map<string, Package>;
  readonly changes: Changes;
  /** Index of the command. */
  readonly command: number;
}

const UNPUBLISHED = `0x${'0'.repeat(64)}`;
const POLICY = { compatible: 0, additive: 128, dependenciesOnly: 192 } as const;

/** Publishes a package. @throws CommandFailure, Refusal */
export function publishPackage(
  writing: Writing,
  publishing: Publishing,
): { readonly published: Published; readonly linkage: Linkage } {
  const id = writing.changes.freshId();
  return writePackage(writing, publishing, id, id);
}

/** Upgrades a package. @throws CommandFailure, Refusal */
export function upgradePackage(writing: Writing, upgrade: Upgrade, ticket: Ticket): Published {
  const { packages, command } = writing;
  const { modules, dependencies } = upgrade;
  const before = normalizePackageId(upgrade.packageId);
  const createUpgradeFailure = (name: string, error: Partial<GrpcTypes.PackageUpgradeError>) =>
    new CommandFailure(command, 'PACKAGE_UPGRADE_ERROR', `PackageUpgradeError { upgrade_error: ${name} }`, {
      oneofKind: 'packageUpgradeError',
      packageUpgradeError: GrpcTypes.PackageUpgradeError.create(error),
    });
  const { PackageUpgradeError_PackageUpgradeErrorKind: Kind } = GrpcTypes;
  if (ticket.packageId !== before) {
    throw createUpgradeFailure(
      `PackageIDDoesNotMatch { package_id: ${before}, ticket_id: ${ticket.packageId} }`,
      {
        kind: Kind.PACKAGE_ID_DOES_NOT_MATCH,
        packageId: before,
        ticketId: ticket.packageId,
      },
    );
  }
  const digest = packageDigest(modules, dependencies);
  if (!Buffer.from(digest).equals(ticket.digest)) {
    throw createUpgradeFailure(`DigestDoesNotMatch { digest: [${digest.join(', ')}] }`, {
      kind: Kind.DIGEST_DOES_NOT_MATCH,
      digest: toBase58(digest),
    });
  }
  const old = packages.get(before);
  if (old === undefined) {
    throw createUpgradeFailure(`UnableToFetchPackage { package_id: ${before} }`, {
      kind: Kind.UNABLE_TO_FETCH_PACKAGE,
      packageId: before,
    });
  }
  const { published } = writePackage(
    writing,
    upgrade,
    writing.changes.freshId(),
    originalOf(packages, before),
  );
  if (!isPolicy(ticket.policy)) {
    throw createUpgradeFailure(`UnknownUpgradePolicy { policy: ${ticket.policy} }`, {
      kind: Kind.UNKNOWN_UPGRADE_POLICY,
      policy: ticket.policy,
    });
  }
  if (!isAllowed(old, published, ticket.policy)) {
    throw createUpgradeFailure('IncompatibleUpgrade', { kind: Kind.INCOMPATIBLE_UPGRADE });
  }
  return published;
}

function writePackage(
  { packages, command }: Writing,
  { modules, dependencies }: Publishing,
  id: string,
  original: string,
): { readonly published: Published; readonly linkage: Linkage } {
  const published = { id, original, modules, dependencies };
  try {
    if (modules.some((module) => readModule(module).address !== UNPUBLISHED)) {
      throw new CommandFailure(command, 'PUBLISH_ERROR_NON_ZERO_ADDRESS', 'PublishErrorNonZeroAddress');
    }
    const linkage = findPublicationLinkage(packages, published, command);
    packages.set(id, published);
    return { published, linkage };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const description = `VMVerificationOrDeserializationError: ${error.message}`;
    throw new CommandFailure(command, 'VM_VERIFICATION_OR_DESERIALIZATION_ERROR', description);
  }
}

function isPolicy(policy: number): boolean {
  return Object.values(POLICY).some((value) => value === policy);
}

/** Returns whether the policy allows the upgrade (`check_compatibility` of Sui's execution layer). */
function isAllowed(old: Package, next: Package, policy: number): boolean {
  const listInterfaces = (movePackage: Package) =>
    [...loadModules(movePackage).values()].map(({ moduleInterface }) => moduleInterface);
  if (policy === POLICY.compatible)
    return listIncompatibilities(listInterfaces(old), listInterfaces(next)).length === 0;
  const [before, after] = [declarationsIn(old), declarationsIn(next)];
  const isSuperset = [...before].every(([name, text]) => after.get(name) === text);
  // The stricter policies forbid changes to the code of functions. The strictest also forbids additions.
  return isSuperset && (policy === POLICY.additive || before.size === after.size);
}

function declarationsIn(movePackage: Package): ReadonlyMap<string, string> {
  return new Map(
    movePackage.modules.flatMap((module) => [...listDeclarations(module, movePackage.original)]),
  );
}
