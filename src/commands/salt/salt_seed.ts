/**
 * `npm run salt_seed`: generates the salt service's seed, shows its fingerprint, and keeps it as shares of which some
 * restore it (Shamir's secret sharing). Seeds and shares are in files that only their owner can read, never on a command
 * line.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CodedError, quantity } from 'sui-enclave/errors';
import {
  command,
  commandFailure,
  type Failure,
  INTERNAL_FAILURE,
  type Result,
  runAsProcess,
  UsageError,
} from '../command.ts';

const USAGE = `usage: npm run salt_seed -- generate <new file>
       npm run salt_seed -- fingerprint <file>
       npm run salt_seed -- split <file> <new folder> --shares <n> --threshold <m>
       npm run salt_seed -- combine <new file> <share file> <share file> ...

generate     generates a seed of 32 random bytes: the file for SALT_SEED_FILE
fingerprint  prints the fingerprint of each version: the list for SALT_SEED_FINGERPRINTS
split        writes n share files: any m of them restore the file, and fewer reveal nothing
combine      restores the file, and compares its fingerprints with those on the shares

A file with several versions of the seed (a line each) is split and combined whole.`;

/** Every code of a SaltSeedError, and what it means. */
export const SALT_SEED_CODES = {
  FILE: "A file can't be read or written.",
  SHARES: "The shares don't restore the seed.",
} as const;

export type SaltSeedCode = keyof typeof SALT_SEED_CODES;

export class SaltSeedError extends CodedError<SaltSeedCode> {}

/** One line of a share file: one version of the seed. */
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
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch {
    throw new SaltSeedError('FILE', `${path} can't be read`);
  }
}

/** Never overwrites a file: it may be the only copy of a seed. */
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

async function fingerprintsOf(path: string): Promise<string[]> {
  const { fingerprint, parseSeeds } = await import('sui-enclave-salt/derive');
  return parseSeeds(readText(path)).map(fingerprint);
}

function wrote(path: string, fingerprints: readonly string[]): Result {
  return { json: { path, fingerprints }, text: `wrote ${path}\nfingerprint: ${fingerprints}` };
}

async function generate(path: string): Promise<Result> {
  writeNew(path, randomBytes(32).toString('hex'));
  return wrote(path, await fingerprintsOf(path));
}

async function splitSeeds(
  path: string,
  folder: string,
  { shares, threshold }: { shares: number; threshold: number },
): Promise<Result> {
  const { combine, split } = await import('shamir-secret-sharing');
  const { fingerprint, parseSeeds } = await import('sui-enclave-salt/derive');
  const seeds = parseSeeds(readText(path));
  const byVersion: Share[][] = [];
  for (const seed of seeds) {
    const parts = await split(Uint8Array.from(seed), shares, threshold);
    // Shares that don't restore the seed would be noticed too late.
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
  const { combine } = await import('shamir-secret-sharing');
  const { fingerprint } = await import('sui-enclave-salt/derive');
  const [first = [], ...rest] = files.map(parseShares);
  const same = (a: readonly Share[], b: readonly Share[]) =>
    a.length === b.length &&
    a.every(({ seedFingerprint, threshold }, index) => {
      const other = b[index];
      return other?.seedFingerprint === seedFingerprint && other.threshold === threshold;
    });
  if (!rest.every((shares) => same(first, shares))) {
    throw new SaltSeedError(
      'SHARES',
      'the shares are not of one split: their fingerprints or thresholds differ',
    );
  }
  const seeds: Buffer[] = [];
  for (const [version, { seedFingerprint, threshold }] of first.entries()) {
    const parts = [first, ...rest].map((shares) => (shares[version] as Share).bytes);
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
        `the shares restore another seed than ${seedFingerprint}: one is damaged`,
      );
    }
    seeds.push(seed);
  }
  writeNew(path, seeds.map((seed) => seed.toString('hex')).join('\n'));
  return wrote(path, seeds.map(fingerprint));
}

export const main = command({
  usage: USAGE,
  options: { shares: { type: 'string' }, threshold: { type: 'string' } },
  repeats: true,
  async run({ positionals, values }) {
    const [action, ...paths] = positionals;
    const [one = '', two = ''] = paths;
    if (action !== 'split' && (values.shares ?? values.threshold) !== undefined) {
      throw new UsageError('--shares and --threshold belong to split', USAGE);
    }
    checkPaths(action, paths);
    if (action === 'generate') return await generate(one);
    if (action === 'combine') return await combineShares(one, paths.slice(1));
    if (action === 'split') return await splitSeeds(one, two, readCounts(values));
    const fingerprints = await fingerprintsOf(one);
    return { json: { fingerprints }, text: fingerprints.join(',') };
  },
  report,
});

/** The least and the most number of paths of each action. */
const PATHS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  generate: [1, 1],
  fingerprint: [1, 1],
  split: [2, 2],
  combine: [3, 256],
};

function checkPaths(action: string | undefined, paths: readonly string[]): void {
  if (action === undefined) throw new UsageError(`missing: ${Object.keys(PATHS).join(', ')}`, USAGE);
  const range = Object.hasOwn(PATHS, action) ? PATHS[action] : undefined;
  if (range === undefined) throw new UsageError(`unexpected argument: ${action}`, USAGE);
  const [least, most] = range;
  if (paths.length < least) throw new UsageError(`${action} needs ${least} paths at least`, USAGE);
  const unexpected = paths[most];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`, USAGE);
}

function readCounts({ shares, threshold }: { shares?: string | undefined; threshold?: string | undefined }) {
  const count = (text = '') => (/^[0-9]{1,3}$/.test(text) ? Number(text) : Number.NaN);
  const counts = { shares: count(shares), threshold: count(threshold) };
  if (!(counts.threshold >= 2 && counts.threshold <= counts.shares && counts.shares <= 255)) {
    throw new UsageError('it must be 2 <= threshold <= shares <= 255', USAGE);
  }
  return counts;
}

/** Hides the message of any other error: it may contain a part of a seed. */
function report(error: unknown): Failure {
  return commandFailure(error) ?? INTERNAL_FAILURE;
}

if (import.meta.main) await runAsProcess(main);
