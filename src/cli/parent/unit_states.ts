/** Reads the states of systemd's units. */
import type { Environment } from '../command.ts';
import { ParentError } from './errors.ts';
import { run } from './programs.ts';

export interface UnitState {
  readonly unit: string;
  /** State such as `active`, `activating` or `failed`: see "ActiveState" in org.freedesktop.systemd1(5). */
  readonly active: string;
  /** More exact state, which depends on the kind of the unit, such as `running` or `auto-restart`. */
  readonly sub: string;
  /** Reason of the last end, such as `start-limit-hit`. */
  readonly result: string;
  /** Time of the last change of the state; undefined for a unit that has never been started. */
  readonly since: Date | undefined;
  /** Whether systemd is about to start, stop or restart the unit. */
  readonly hasJob: boolean;
}

const PROPERTIES = ['Id', 'ActiveState', 'SubState', 'Result', 'StateChangeTimestamp', 'Job'];

/**
 * Reads the states of units.
 *
 * @returns the states, in the order of `units`
 * @throws ParentError: PROGRAM_FAILED, if systemctl does not show all of them
 */
export function readUnits<const Units extends readonly string[]>(
  env: Environment,
  units: Units,
): { [Index in keyof Units]: UnitState } {
  const args = ['show', `--property=${PROPERTIES.join(',')}`, ...units];
  // Times are printed in the zone of this variable.
  const { status, stdout, stderr } = run({ ...env, TZ: 'UTC', LC_ALL: 'C' }, 'systemctl', args);
  const states = new Map(stdout.split('\n\n').map((block) => parseState(block)));
  const orderedStates = units.map((unit) => {
    const state = states.get(unit);
    if (status === 0 && state !== undefined) return state;
    throw new ParentError('PROGRAM_FAILED', `systemctl does not show ${unit}: ${stderr.trim()}`);
  });
  return orderedStates as { [Index in keyof Units]: UnitState };
}

function parseState(block: string): [unit: string, state: UnitState] {
  const values = new Map(
    block.split('\n').map((line): [string, string] => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
  const get = (name: string) => values.get(name) ?? '';
  const [, date, time] = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC$/.exec(get('StateChangeTimestamp')) ?? [];
  const state = {
    unit: get('Id'),
    active: get('ActiveState'),
    sub: get('SubState'),
    result: get('Result'),
    since: date === undefined ? undefined : new Date(`${date}T${time}Z`),
    hasJob: !['', '0'].includes(get('Job')),
  };
  return [state.unit, state];
}
