/** Provisions again whenever a new process of an enclave lacks its secrets. */
import { isEnclaveError } from 'sui-enclave/errors';
import { pause } from '../pause.ts';

/**
 * Result of a poll. `claim`: the enclave claims to have its secrets. `provisioned`: the poll gave them
 * to it. `refused`: it lacks them and did not get them. `unreachable`: it does not answer.
 */
export type PollResult = 'claim' | 'provisioned' | 'refused' | 'unreachable';

export interface Watched {
  /** Returns whether the enclave waits for its secrets. */
  needsSecrets(): Promise<boolean>;
  provision(): Promise<void>;
  /** Writes a line, which never contains a secret. */
  log(line: string): void;
  /** Called after each poll. */
  note?(pollResult: PollResult): void;
}

/** Line about an answer that anyone on the path can forge. */
const CLAIM = 'unconfirmed: /readyz reports that the enclave has secrets';

/** The longest pause after failures, as a multiple of the interval. */
const MAX_BACKOFF = 30;

/**
 * Polls every `intervalMs`, up to a fifth more or less, so that watchers do not act at the same time. Each
 * failure of provisioning doubles the pause. A failure to reach the enclave does not, so that its next start
 * is noticed soon. Logs each state once.
 *
 * @returns how often it has provisioned, once `stop` is aborted
 */
export async function watch(watched: Watched, intervalMs: number, stop: AbortSignal): Promise<number> {
  let provisioned = 0;
  let failures = 0;
  let lastLine: string | undefined;
  const logOnce = (line: string) => {
    if (line !== lastLine) watched.log(line);
    lastLine = line;
  };
  while (!stop.aborted) {
    let needs = false;
    try {
      needs = await watched.needsSecrets();
      if (needs) {
        await watched.provision();
        provisioned += 1;
        watched.log('provisioned');
        // A line for the claim is not needed now: the receipt has proved that the enclave has these secrets.
        lastLine = CLAIM;
      } else logOnce(CLAIM);
      watched.note?.(needs ? 'provisioned' : 'claim');
      failures = 0;
    } catch (error) {
      failures = needs ? failures + 1 : 0;
      logOnce(describe(error));
      watched.note?.(needs ? 'refused' : 'unreachable');
    }
    await pause(intervalMs * Math.min(2 ** failures, MAX_BACKOFF) * (0.8 + 0.4 * Math.random()), stop);
  }
  return provisioned;
}

function describe(error: unknown): string {
  // The message of any other error may contain anything.
  return isEnclaveError(error) ? `${error.code}: ${error.message}` : 'INTERNAL: an internal error';
}
