/**
 * A process that lives as long as its enclave, for a supervisor such as systemd. This process may end in any
 * way and start again. After a restart, it watches the enclave that runs already. It never starts a second
 * enclave, and never replaces the running enclave, whose key would be lost.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { replaceBy } from 'sui-enclave-service/replace_file';
import type { Environment, Io } from '../command.ts';
import { pause } from '../pause.ts';
import { ParentError } from './errors.ts';
import { KEY_LOST } from './host_faults.ts';
import { loadImage } from './image.ts';
import { enclavesNamed, type RunningEnclave, runningEnclaves, terminateEnclave } from './nitro_cli.ts';
import { lastEnd } from './reports.ts';

const POLL_MS = 2000;
/** Maximum time in milliseconds for a start that an earlier process has begun. */
const START_MS = 120_000;

/**
 * Returns the path of the running enclave's image, whatever was installed since. The path is a link in the
 * folder of its state.
 */
export function runningImagePath(dir: string): string {
  return join(dir, 'image.eif');
}

/**
 * Records which image is started. @returns the image's own path, where `eif` may be a link to the newest
 * image
 */
export function recordImage(dir: string, eif: string): string {
  const imagePath = realpathSync(eif);
  replaceBy(runningImagePath(dir), (fresh) => symlinkSync(imagePath, fresh));
  return imagePath;
}

/**
 * Returns the enclave of this name that runs already.
 *
 * @param pcr0 PCR0 of the image that would be started
 * @throws ParentError: WRONG_STATE, if the enclave runs neither this image nor the recorded image
 */
export async function runningEnclave(
  env: Environment,
  name: string,
  pcr0: string,
  dir: string,
): Promise<RunningEnclave | undefined> {
  const enclave = await waitForStarts(env, name);
  if (enclave === undefined) return undefined;
  const measured = enclave.Measurements?.PCR0;
  if (measured === undefined || measured === pcr0 || measured === readRecordedPcr0(dir)) return enclave;
  throw new ParentError(
    'WRONG_STATE',
    `an enclave named ${name} runs another image, whose PCR0 is ${measured}: give another name, or stop it (${KEY_LOST})`,
  );
}

function readRecordedPcr0(dir: string): string | undefined {
  try {
    return loadImage(runningImagePath(dir)).registers.pcr0;
  } catch {
    // If no image was recorded, or it was deleted, only the image that would be started counts.
    return undefined;
  }
}

/**
 * Waits for a nitro-cli that an earlier process started: its enclave is not listed before it has booted.
 *
 * @returns the enclave of this name that runs then
 * @throws ParentError: WRONG_STATE, if the start takes too long
 */
export async function waitForStarts(env: Environment, name: string): Promise<RunningEnclave | undefined> {
  const until = performance.now() + START_MS;
  for (;;) {
    const isStarting = hasStarter(name);
    const [enclave] = enclavesNamed(env, name);
    if (enclave !== undefined || !isStarting) return enclave;
    if (performance.now() > until) {
      throw new ParentError(
        'WRONG_STATE',
        `nitro-cli has been starting an enclave named ${name} for ${START_MS / 1000} s: end that process first`,
      );
    }
    await sleep(POLL_MS / 10);
  }
}

/**
 * Returns whether a process starts or keeps an enclave of this name: nitro-cli's helper has the arguments of
 * its start.
 */
function hasStarter(name: string): boolean {
  return readdirSync('/proc').some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const args = readFileSync(join('/proc', pid, 'cmdline'), 'utf8').split('\0');
      const at = args.indexOf('run-enclave');
      return (
        at > 0 &&
        args[at - 1]?.endsWith('nitro-cli') === true &&
        args[args.indexOf('--enclave-name') + 1] === name
      );
    } catch {
      // The process has ended, or belongs to another user.
      return false;
    }
  });
}

/** Tells systemd that the enclave runs, if systemd has started this process: sd_notify(3). */
export function notifyReady(env: Environment, status: string): void {
  if (env['NOTIFY_SOCKET'] === undefined) return;
  spawnSync('systemd-notify', ['--ready', `--status=${status}`], { env, stdio: 'inherit' });
}

/**
 * Watches an enclave until it ends. Terminates it when `stop` is aborted.
 *
 * @param reports the folder with its reports
 * @param from the offset in bytes after which the reports are from this enclave
 * @throws ParentError: ENCLAVE_ENDED, with the reason that the enclave reported
 */
export async function watchEnclave(
  env: Environment,
  io: Pick<Io, 'error'>,
  { EnclaveID }: RunningEnclave,
  { reports, from, stop }: { reports: string; from: number; stop: AbortSignal },
): Promise<void> {
  let failure: string | undefined;
  while (!stop.aborted) {
    try {
      if (!runningEnclaves(env).some((enclave) => enclave.EnclaveID === EnclaveID)) {
        const reason = lastEnd(reports, from) ?? 'it reported no reason';
        throw new ParentError('ENCLAVE_ENDED', `${EnclaveID} has ended: ${reason}`);
      }
      failure = undefined;
    } catch (error) {
      if (!(error instanceof ParentError) || error.code === 'ENCLAVE_ENDED') throw error;
      // This failure must not end the watch: that would end or start an enclave whose state is unknown.
      if (error.message !== failure) io.error(`${error.code}: ${error.message}`);
      failure = error.message;
    }
    await pause(POLL_MS, stop);
  }
  terminateEnclave(env, EnclaveID);
}
