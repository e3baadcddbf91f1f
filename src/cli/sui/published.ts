/**
 * Reads and writes `Published.toml`, which has the ids of a package on each network. The Sui CLI reads it.
 */
import { writeFileSync } from 'node:fs';
import { readRegularFile } from '../read_file.ts';
import type { Chain } from './chain.ts';
import { CHAIN_IDS } from './network.ts';

export interface Publication {
  /** The first 4 bytes of the digest of the chain's first checkpoint, in hexadecimal. */
  readonly chainId: string;
  /** The id of the latest version. */
  readonly publishedAt: string;
  /** The id of the first version. */
  readonly originalId: string;
  readonly version: bigint;
  /** Id of the UpgradeCap; null for a package that can't be upgraded. */
  readonly upgradeCap: string | null;
}

const HEADER = `# Ids of this package on each network. publish and upgrade write this file, and the Move compiler reads it.
# Commit this file.
`;

/** Returns the pattern of a section with its header, up to the next section. */
function sectionPattern(network: string): RegExp {
  return new RegExp(`^\\[\\s*published\\.${network}\\s*\\][^\\n]*\\n(?:(?!\\[).*(?:\\n|$))*`, 'm');
}

/** Returns the file's content with this publication in place of the network's earlier one. */
export function withPublication(toml: string, network: string, publication: Publication): string {
  const { chainId, publishedAt, originalId, version, upgradeCap } = publication;
  const section = [
    `[published.${network}]`,
    `chain-id = "${chainId}"`,
    `published-at = "${publishedAt}"`,
    `original-id = "${originalId}"`,
    `version = ${version}`,
    'build-config = { flavor = "sui", edition = "2024" }',
    ...(upgradeCap === null ? [] : [`upgrade-capability = "${upgradeCap}"`]),
    '',
  ].join('\n');
  const otherSections = (toml === '' ? HEADER : toml).replace(sectionPattern(network), '').trimEnd();
  return `${otherSections}\n\n${section}`;
}

/** Returns the upgrade capability that the file names for a network, or undefined. */
export function upgradeCapIn(toml: string, network: string): string | undefined {
  const [section = ''] = sectionPattern(network).exec(toml) ?? [];
  return /^upgrade-capability\s*=\s*"(0x[0-9a-f]{64})"/m.exec(section)?.[1];
}

/** Returns the content of the file; empty if the file does not exist. */
export function readPublished(path: string): string {
  try {
    return readRegularFile(path).toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/**
 * Records a publication in the file if the network is never reset. For other networks, only the deployment
 * file has the ids. Never throws: the package is on chain, and the command must still report it.
 */
export async function recordPublication(
  chain: Chain,
  path: string | undefined,
  publication: Omit<Publication, 'chainId'>,
): Promise<void> {
  const { network = '' } = chain;
  if (path === undefined || CHAIN_IDS[network] === undefined) return;
  try {
    const chainId = await chain.id();
    writeFileSync(path, withPublication(readPublished(path), network, { ...publication, chainId }));
    chain.notes.push(`Recorded in ${path}: commit that file.`);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 200);
    chain.notes.push(`${path} was not written: ${reason}. The Move compiler does not know the package.`);
  }
}
