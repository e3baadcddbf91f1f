/** Errors that stop a rollout: one `code` for each cause. */
import { CodedError } from 'sui-enclave/errors';
import { EXIT } from '../command.ts';

const { failed, notTried } = EXIT;

/** Every code of a RolloutError, with the exit code of the command and its meaning. */
export const ROLLOUT_CODES = {
  ROLLOUT_UNFINISHED: [notTried, 'Another rollout of the config has not ended, or its file is damaged.'],
  ROLLOUT_RUNNING: [
    notTried,
    'Another process runs a rollout of the config on this machine, or its lock can not be read or made.',
  ],
  ROLLOUT_CONFIG: [failed, "The config's state does not fit the plan, or was changed during the rollout."],
  ROLLOUT_NODES_DISAGREE: [
    failed,
    'Several nodes of the plan show different states of the config or of an enclave.',
  ],
  ROLLOUT_COMMAND: [failed, 'A command of the plan failed, or had no effect in time.'],
  ROLLOUT_NOT_SERVING: [
    failed,
    'After the next step, callers would reach only enclaves that do not answer, or that contracts do not accept.',
  ],
  ROLLOUT_AWAITS_ADMIN: [
    failed,
    'The transaction of the admin was not executed in time. Run the command again.',
  ],
  ROLLOUT_TOO_LATE: [
    failed,
    'The old enclaves are stopped, or are being stopped: there is no way back to them.',
  ],
} as const;

export type RolloutCode = keyof typeof ROLLOUT_CODES;

export class RolloutError extends CodedError<RolloutCode> {
  get exit(): number {
    return ROLLOUT_CODES[this.code][0];
  }
}
