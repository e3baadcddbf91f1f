/**
 * `sui-enclave salt_seed`: generates the salt service's seed, shows its fingerprint, and splits it into
 * shares, some of which suffice to restore it (Shamir's secret sharing). Seeds and shares are in files that
 * only their owner can read, never on a command line.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { combine, split } from 'shamir-secret-sharing';
import { CodedError } from 'sui-enclave/errors';
import { quantity } from 'sui-enclave/wording';
import { fingerprint, parseSeeds } from 'sui-enclave-service/salt_seeds';
import * as v from 'valibot';
import { command, type Result, runAsProcess, UsageError } from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { integer, path } from '../values.ts';

/** Every code of a SaltSeedError, and what it means. */
export const SALT_SEED_CODES = {
  FILE: "A file can't be read or written.",
  SHARES: "The shares don't restore the seed.",
} as const;

export type SaltSeedCode = keyof typeof SALT_SEED_CODES;

export class SaltSeedError extends CodedError<SaltSeedCode> {}

/** One line of a share file: a share of one version of the seed. */
interface Share {
  readonly seedFingerprint: string;
  readonly threshold: number;
  readonly bytes: Uint8Array;
}

const SHARE =
  /^sui-enclave-salt-share-v1 seed=([0-9a-f]{32}) threshold=([0-9]{1,3}) share=((?:[0-9a-f]{2}){33})$/;

function formatShare({ seedFingerprint, threshold, bytes }: Share): string {
  return `sui-enclave-salt-share-v1 seed=${seedFingerprint} threshold=${threshold} share=${Buffer.from(bytes).toString('hex')}`;
}

function parseShares(path: string): Share[] {
  return readText(path)
    .split('\n')
    .map((line, index) => {
      const [, seedFingerprint, threshold, hex] = SHARE.exec(line) ?? [];
      if (seedFingerprint === undefined || hex === undefined) {
        throw new SaltSeedError('SHARES', `${path}, line ${index + 1}, is not a share, or is damaged`);
      }
      return { seedFingerprint, threshold: Number(threshold), bytes: Buffer.from(hex, 'hex') };
    });
}

function readText(path: string): string {
  try {
    return readRegularFile(path)
      .toString()
      .replace(/\r?\n$/, '');
  } catch {
    throw new SaltSeedError('FILE', `${path} can't be read`);
  }
}

/** Writes a new file. Never overwrites a file, which may be the only copy of a seed. */
function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, `${text}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw new SaltSeedError(
      'FILE',
      exists ? `${path} exists already: name another file` : `${path} can't be written`,
    );
  }
}

function readFingerprints(path: string): string[] {
  return parseSeeds(readText(path)).map(fingerprint);
}

function reportWritten(path: string, fingerprints: readonly string[]): Result {
  return { json: { path, fingerprints }, text: `wrote ${path}\nfingerprint: ${fingerprints}` };
}

function generate(path: string): Result {
  writeNew(path, randomBytes(32).toString('hex'));
  return reportWritten(path, readFingerprints(path));
}

async function splitSeeds(
  path: string,
  folder: string,
  { shares, threshold }: { shares: number; threshold: number },
): Promise<Result> {
  const seeds = parseSeeds(readText(path));
  const byVersion: Share[][] = [];
  for (const seed of seeds) {
    const parts = await split(Uint8Array.from(seed), shares, threshold);
    // Check this now, since shares that don't restore the seed would be noticed too late.
    const restored = await combine(parts.slice(-threshold));
    if (!seed.equals(restored)) throw new SaltSeedError('SHARES', 'the shares do not restore the seed');
    byVersion.push(parts.map((bytes) => ({ seedFingerprint: fingerprint(seed), threshold, bytes })));
  }
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    throw new SaltSeedError('FILE', `${folder} can't be created, or exists already`);
  }
  for (let n = 0; n < shares; n++) {
    const lines = byVersion.map((parts) => formatShare(parts[n] as Share));
    writeNew(join(folder, `share-${n + 1}.txt`), lines.join('\n'));
  }
  const fingerprints = seeds.map(fingerprint);
  return {
    json: { path: folder, shares, threshold, fingerprints },
    text: `wrote ${shares} shares to ${folder}: any ${threshold} of them restore the seed\nfingerprint: ${fingerprints}`,
  };
}

async function combineShares(path: string, files: readonly string[]): Promise<Result> {
  const [first = [], ...moreShares] = files.map(parseShares);
  const isSameSplit = (a: readonly Share[], b: readonly Share[]) =>
    a.length === b.length &&
    a.every(({ seedFingerprint, threshold }, index) => {
      const counterpart = b[index];
      return counterpart?.seedFingerprint === seedFingerprint && counterpart.threshold === threshold;
    });
  if (!moreShares.every((shares) => isSameSplit(first, shares))) {
    throw new SaltSeedError(
      'SHARES',
      'the shares are not of one split: their fingerprints or thresholds differ',
    );
  }
  const seeds: Buffer[] = [];
  for (const [version, { seedFingerprint, threshold }] of first.entries()) {
    const parts = [first, ...moreShares].map((shares) => (shares[version] as Share).bytes);
    if (files.length < threshold) {
      throw new SaltSeedError(
        'SHARES',
        `${quantity(files.length, 'share')} can't restore the seed: ${threshold} are needed`,
      );
    }
    // The last byte of a share is its x coordinate on the polynomial.
    if (new Set(parts.map((bytes) => bytes.at(-1))).size < parts.length) {
      throw new SaltSeedError('SHARES', 'one share is given twice');
    }
    const seed = Buffer.from(await combine(parts.map((bytes) => Uint8Array.from(bytes))));
    if (fingerprint(seed) !== seedFingerprint) {
      throw new SaltSeedError(
        'SHARES',
        `the shares do not restore the seed ${seedFingerprint}: one is damaged`,
      );
    }
    seeds.push(seed);
  }
  writeNew(path, seeds.map((seed) => seed.toString('hex')).join('\n'));
  return reportWritten(path, seeds.map(fingerprint));
}

/** The least and the greatest number of paths for each action. */
const PATHS = {
  generate: [1, 1],
  fingerprint: [1, 1],
  split: [2, 2],
  combine: [3, 256],
} as const;

type Action = keyof typeof PATHS;

/** Number of shares, and number of those that restore the seed. */
const count = integer(2, 255);

export const main = command({
  name: 'salt_seed',
  purpose: `generate     generates a seed of 32 random bytes: the file for SALT_SEED_FILE
fingerprint  prints the fingerprint of each version of the seed in a file: the list for SALT_SEED_FINGERPRINTS
split        writes n share files: any m of them restore the file, and fewer reveal nothing
combine      restores the file, and compares its fingerprints with those on the shares`,
  example: 'split /secure/seed /secure/shares --shares 5 --threshold 3',
  arguments: {
    action: {
      schema: v.picklist(
        ['generate', 'fingerprint', 'split', 'combine'],
        'must be generate, fingerprint, split or combine',
      ),
    },
    path: { schema: path, optional: true, repeated: true },
  },
  forms: [
    'generate <new file>',
    'fingerprint <file>',
    'split <file> <new folder> --shares <n> --threshold <m>',
    'combine <new file> <share file> <share file> ...',
  ],
  options: {
    shares: { value: '<n>', help: 'split: the number of shares to write, at most 255', schema: count },
    threshold: {
      value: '<m>',
      help: 'split: the number of shares that restore the seed, at least 2',
      schema: count,
    },
  },
  notes:
    'A file may have several versions of the seed, a line each; split and combine process all of them together.',
  // A message may contain a part of a seed.
  handlesSecrets: true,
  async run({ args: { action, path: paths }, options: { shares, threshold } }) {
    const [firstPath = '', folder = ''] = paths;
    if (action !== 'split' && (shares ?? threshold) !== undefined) {
      throw new UsageError('--shares and --threshold are for split only');
    }
    checkPaths(action, paths);
    if (action === 'generate') return generate(firstPath);
    if (action === 'combine') return await combineShares(firstPath, paths.slice(1));
    if (action === 'split') return await splitSeeds(firstPath, folder, requireCounts(shares, threshold));
    const fingerprints = readFingerprints(firstPath);
    return { json: { fingerprints }, text: fingerprints.join(',') };
  },
});

function checkPaths(action: Action, paths: readonly string[]): void {
  const [least, most] = PATHS[action];
  if (paths.length < least) throw new UsageError(`${action} needs at least ${quantity(least, 'path')}`);
  const unexpected = paths[most];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
}

function requireCounts(shares: number | undefined, threshold: number | undefined) {
  if (shares === undefined || threshold === undefined) {
    throw new UsageError('split requires both --shares and --threshold');
  }
  if (threshold > shares) throw new UsageError('--threshold must be at most --shares');
  return { shares, threshold };
}

if (import.meta.main) await runAsProcess(main);
