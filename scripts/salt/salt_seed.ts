/**
 * The salt service's seed: made, named by its fingerprint, and kept as shares of which some bring it back
 * (Shamir's scheme). Seeds and shares are in files that only their owner reads, never on a command line.
 *
 * Exit codes: 0 done; 1 refused or failed; 2 the command line can't be used.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { combine, split } from 'shamir-secret-sharing';
import { fingerprint, parseSeeds } from '../../src/apps/salt/derive.ts';
import { EnclaveError } from '../../src/errors.ts';

const USAGE = `usage: npm run salt_seed -- generate <new file>
       npm run salt_seed -- fingerprint <file>
       npm run salt_seed -- split <file> <new folder> --shares <n> --threshold <m>
       npm run salt_seed -- combine <new file> <share file> <share file> ...

generate     makes a seed of 32 random bytes: what SALT_SEED_FILE names
fingerprint  prints what names each version: the list for SALT_SEED_FINGERPRINTS
split        writes n share files, of which any m bring the file back, and fewer tell nothing
combine      brings the file back, and compares its fingerprints with those on the shares

A file with several versions of the seed (a line each) is split and combined whole.`;

class SeedError extends EnclaveError {
  readonly code: 'USAGE' | 'FILE' | 'SHARES';

  constructor(code: SeedError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

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
        throw new SeedError('SHARES', `${path}, line ${index + 1}, is not a share, or is damaged`);
      }
      return { seedFingerprint, threshold: Number(threshold), bytes: Buffer.from(hex, 'hex') };
    });
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch {
    throw new SeedError('FILE', `${path} can't be read`);
  }
}

/** Never over a file that is there: it may be the only copy of a seed. */
function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, `${text}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const there = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw new SeedError(
      'FILE',
      there ? `${path} is there already: name another` : `${path} can't be written`,
    );
  }
}

function fingerprintsOf(path: string): string[] {
  return parseSeeds(readText(path)).map(fingerprint);
}

function generate(path: string): void {
  writeNew(path, randomBytes(32).toString('hex'));
  console.log(`wrote ${path}\nfingerprint: ${fingerprintsOf(path)}`);
}

async function splitSeeds(path: string, folder: string, shares: number, threshold: number): Promise<void> {
  const seeds = parseSeeds(readText(path));
  const byVersion: Share[][] = [];
  for (const seed of seeds) {
    const parts = await split(Uint8Array.from(seed), shares, threshold);
    // Shares that don't bring the seed back would be found out too late.
    const back = await combine(parts.slice(-threshold));
    if (!seed.equals(back)) throw new SeedError('SHARES', 'the shares do not bring the seed back');
    byVersion.push(parts.map((bytes) => ({ seedFingerprint: fingerprint(seed), threshold, bytes })));
  }
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    throw new SeedError('FILE', `${folder} can't be made, or is there already`);
  }
  for (let n = 0; n < shares; n++) {
    const lines = byVersion.map((parts) => formatShare(parts[n] as Share));
    writeNew(join(folder, `share-${n + 1}.txt`), lines.join('\n'));
  }
  console.log(`wrote ${shares} shares to ${folder}: any ${threshold} of them bring the seed back`);
  console.log(`fingerprint: ${seeds.map(fingerprint)}`);
}

async function combineShares(path: string, files: readonly string[]): Promise<void> {
  const [first = [], ...rest] = files.map(parseShares);
  const same = (a: readonly Share[], b: readonly Share[]) =>
    a.length === b.length &&
    a.every(({ seedFingerprint, threshold }, index) => {
      const other = b[index];
      return other?.seedFingerprint === seedFingerprint && other.threshold === threshold;
    });
  if (!rest.every((shares) => same(first, shares))) {
    throw new SeedError('SHARES', 'the shares are not of one split: their fingerprints or thresholds differ');
  }
  const seeds: Buffer[] = [];
  for (const [version, { seedFingerprint, threshold }] of first.entries()) {
    const parts = [first, ...rest].map((shares) => (shares[version] as Share).bytes);
    if (files.length < threshold) {
      throw new SeedError('SHARES', `${files.length} shares are not enough: it takes ${threshold}`);
    }
    // The last byte of a share is its place on the polynomial.
    if (new Set(parts.map((bytes) => bytes.at(-1))).size < parts.length) {
      throw new SeedError('SHARES', 'one share is given twice');
    }
    const seed = Buffer.from(await combine(parts.map((bytes) => Uint8Array.from(bytes))));
    if (fingerprint(seed) !== seedFingerprint) {
      throw new SeedError(
        'SHARES',
        `the shares bring back another seed than ${seedFingerprint}: one is damaged`,
      );
    }
    seeds.push(seed);
  }
  writeNew(path, seeds.map((seed) => seed.toString('hex')).join('\n'));
  console.log(`wrote ${path}\nfingerprint: ${seeds.map(fingerprint)}`);
}

function usage(message: string): SeedError {
  return new SeedError('USAGE', `${message}\n\n${USAGE}`);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { shares: { type: 'string' }, threshold: { type: 'string' }, help: { type: 'boolean' } },
    });
  } catch (error) {
    throw usage((error as Error).message);
  }
}

async function main(): Promise<void> {
  const { positionals, values } = readArguments();
  if (values.help) return console.log(USAGE);
  const [command, ...paths] = positionals;
  const count = (text = '') => (/^[0-9]{1,3}$/.test(text) ? Number(text) : Number.NaN);
  const [shares, threshold] = [count(values.shares), count(values.threshold)];
  const [one = '', two = ''] = paths;
  if (command !== 'split' && (values.shares ?? values.threshold) !== undefined) {
    throw usage('--shares and --threshold belong to split');
  }
  if (command === 'generate' && paths.length === 1) return generate(one);
  if (command === 'fingerprint' && paths.length === 1) return console.log(fingerprintsOf(one).join(','));
  if (command === 'combine' && paths.length >= 3) return await combineShares(one, paths.slice(1));
  if (command === 'split' && paths.length === 2) {
    if (!(threshold >= 2 && threshold <= shares && shares <= 255)) {
      throw usage('it must be 2 <= threshold <= shares <= 255');
    }
    return await splitSeeds(one, two, shares, threshold);
  }
  throw usage(command === undefined ? 'say what to do' : `${command} can't be done with these arguments`);
}

try {
  await main();
} catch (error) {
  // Another error's text may hold a piece of what it failed on.
  console.error(error instanceof EnclaveError ? error.message : 'an internal error');
  process.exitCode = error instanceof SeedError && error.code === 'USAGE' ? 2 : 1;
}
