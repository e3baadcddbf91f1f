/**
 * The steps that a rollout can't read from the chain or the enclaves later. They are stored in a file without
 * secrets.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { replaceFileDurably } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { readRegularFile } from '../read_file.ts';
import { RolloutError } from './errors.ts';

/**
 * Time in milliseconds since 1970, by the clock of the process that recorded it. Since that clock may be
 * wrong, another process limits how long it waits.
 */
const time = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const Remembered = v.strictObject({
  /** The digest of the old and the new images and enclaves. */
  rollout: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  /**
   * Times at which the commands `switch` began and had ended. From their end on, callers reach the new
   * enclaves.
   */
  switching: v.optional(time),
  switched: v.optional(time),
  /** Time at which the commands `switch_back` had ended. */
  switchedBack: v.optional(time),
  /** Times at which the commands `stop_old` began and had ended. They can't be undone. */
  stopping: v.optional(time),
  stopped: v.optional(time),
  /**
   * The newest version of the config that the rollout has seen. A node that shows an older version lags
   * behind.
   */
  configVersion: v.optional(v.pipe(v.string(), v.regex(/^\d{1,20}$/))),
});

type Remembered = v.InferOutput<typeof Remembered>;

/** The steps of one rollout. */
export interface Memory {
  readonly steps: Omit<Remembered, 'rollout' | 'configVersion'>;
  /**
   * Records a version of the config that a node shows: for this process immediately, for later processes with
   * the next `remember`.
   */
  see(configVersion: bigint): void;
  /** The newest version of the config that was seen. */
  readonly newestVersion: bigint;
  remember(steps: Memory['steps']): void;
  forget(): void;
}

/**
 * Returns the steps of this rollout that the file contains. Steps of another rollout, which has ended, do not
 * count.
 *
 * @param rollout the digest of the old and the new images and enclaves
 * @param isDryRun whether `forget()` leaves the file, which a rollout that runs meanwhile may have written
 * @throws RolloutError: ROLLOUT_UNFINISHED
 */
export function openMemory(path: string, rollout: string, isDryRun = false): Memory {
  const { rollout: storedRollout, configVersion, ...fileSteps } = read(path) ?? { rollout };
  const isAnother = storedRollout !== rollout;
  // A file with only the config's version belongs to a rollout that has changed nothing outside the chain.
  if (isAnother && Object.keys(fileSteps).length > 0 && fileSteps.stopped === undefined) {
    throw new RolloutError(
      'ROLLOUT_UNFINISHED',
      `${path} belongs to a rollout with other registers or URLs, which has not ended: finish that rollout with its own plan, forwards or by --back, or remove the file`,
    );
  }
  let steps: Memory['steps'] = isAnother ? {} : fileSteps;
  let newestVersion = BigInt((isAnother ? undefined : configVersion) ?? 0);
  return {
    get steps() {
      return steps;
    },
    get newestVersion() {
      return newestVersion;
    },
    see(version) {
      if (version > newestVersion) newestVersion = version;
    },
    remember(newSteps) {
      write(path, {
        rollout,
        ...newSteps,
        ...(newestVersion > 0n && { configVersion: String(newestVersion) }),
      });
      steps = newSteps;
    },
    forget() {
      if (!isDryRun) rmSync(path, { force: true });
      steps = {};
    },
  };
}

function read(path: string): Remembered | undefined {
  let text: string;
  try {
    text = readRegularFile(path).toString();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new RolloutError('ROLLOUT_UNFINISHED', `${path} can't be read: ${code}`, { cause: error });
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Remembered), text);
  if (parsed.success) return parsed.output;
  throw new RolloutError(
    'ROLLOUT_UNFINISHED',
    `${path} is not a file that a rollout wrote. Find out which enclaves callers reach, and remove it`,
  );
}

/** Replaces the file in one step: a reader sees the old content or the new one. */
function write(path: string, remembered: Remembered): void {
  mkdirSync(dirname(path), { recursive: true });
  replaceFileDurably(path, `${JSON.stringify(remembered, null, 2)}\n`);
}
