/**
 * Decides what a keeper does if several nodes show it the chain. It makes a change only if all nodes show
 * that the change is needed.
 */
import { isDeepStrictEqual } from 'node:util';
import { findCause } from '../rounds/cause.ts';
import type { Alert } from './alerts.ts';
import { type ChainState, type Decision, decide, type Observations, type Rules } from './decide.ts';

/** The state that one node shows. */
export interface Reading {
  /** Host of the node. */
  readonly node: string;
  readonly chainState: ChainState;
}

/** The reason why one node shows nothing. */
export interface Silence {
  readonly node: string;
  readonly error: unknown;
}

/** The states that nodes show, at least one, and the nodes that show none. */
export interface Readings {
  readonly readings: readonly [Reading, ...Reading[]];
  readonly silences: readonly Silence[];
}

type JudgedReading = Reading & { readonly decision: Decision };

/**
 * Returns the alerts of all nodes, but only the actions and accepted enclaves on which all nodes agree. If
 * the nodes show different configs, or a node shows nothing, it returns no actions.
 */
export function decideTogether(
  { readings, silences }: Readings,
  observations: Omit<Observations, keyof ChainState>,
  rules: Rules,
): Decision {
  const judge = (reading: Reading): JudgedReading => ({
    ...reading,
    decision: decide({ ...reading.chainState, ...observations }, rules),
  });
  const [first, ...otherReadings] = readings;
  const judged: readonly [JudgedReading, ...JudgedReading[]] = [judge(first), ...otherReadings.map(judge)];
  const { decision } = judged[0];
  const disputes = findDisputes(judged);
  const isUndisputed = (enclaveId: string) => !disputes.has(enclaveId);
  const isConfigShared = otherReadings.every(({ chainState }) =>
    isDeepStrictEqual(chainState.config, first.chainState.config),
  );
  const isComplete = isConfigShared && silences.length === 0;
  return {
    actions: isComplete ? decision.actions.filter((action) => isUndisputed(getEnclaveId(action))) : [],
    alerts: [
      ...silences.map(reportSilence),
      ...(isConfigShared ? [...disputes.values()] : [reportConfigs(readings)]),
      ...removeDuplicates(judged.flatMap(({ decision: { alerts } }) => alerts)),
    ],
    accepted: decision.accepted.filter(({ id }) => isUndisputed(id)),
    silent: decision.silent.filter(({ id }) => isUndisputed(id)),
    unregistered: [...new Set(judged.flatMap(({ decision: { unregistered } }) => unregistered))],
  };
}

function getEnclaveId(action: Decision['actions'][number]): string {
  return action.kind === 'register' ? action.enclaveId : action.enclave.id;
}

/** Returns an alert for each enclave for which the nodes show different states, by the enclave's id. */
function findDisputes(judged: readonly JudgedReading[]): ReadonlyMap<string, Alert> {
  const states = judged.map(({ decision }) => listStates(decision));
  const subjects = new Map(
    judged.flatMap(({ decision }) =>
      decision.actions.flatMap((action) =>
        action.kind === 'register' ? [[action.enclaveId, action.candidate.url] as const] : [],
      ),
    ),
  );
  const disputes = new Map<string, Alert>();
  for (const enclaveId of new Set(states.flatMap((byId) => [...byId.keys()]))) {
    const nodeStates = states.map((byId) => byId.get(enclaveId) ?? 'another state');
    if (new Set(nodeStates).size === 1) continue;
    const list = judged.map(({ node }, index) => `${node}: ${nodeStates[index]}`).join('; ');
    disputes.set(enclaveId, {
      code: 'NODES_DISAGREE',
      subject: subjects.get(enclaveId) ?? enclaveId,
      message: `the nodes show different states, so the keeper sends no transaction for this enclave: ${list}`,
    });
  }
  return disputes;
}

/** Returns the states of enclaves by their ids. */
function listStates({ accepted, actions }: Decision): ReadonlyMap<string, string> {
  return new Map([
    ...accepted.map(({ id }) => [id, 'accepted'] as const),
    ...actions.map((action) => {
      const state = action.kind === 'register' ? 'not registered' : 'stale';
      return [getEnclaveId(action), state] as const;
    }),
  ]);
}

function reportConfigs(readings: readonly [Reading, ...Reading[]]): Alert {
  const [{ chainState }] = readings;
  const versions = readings.map(({ node, chainState: { config } }) => `${node}: ${config.configVersion}`);
  return {
    code: 'NODES_DISAGREE',
    subject: chainState.config.id,
    message: `the nodes show different contents of the config, so the keeper sends no transactions. Versions of the config: ${versions.join('; ')}`,
  };
}

function reportSilence({ node, error }: Silence): Alert {
  const { code, reason } = findCause(error);
  return { code: 'NODE_UNREADABLE', subject: node, message: `${code}: ${reason}` };
}

/** Keeps the first of the alerts that have the same code and subject. */
function removeDuplicates(alerts: readonly Alert[]): Alert[] {
  const byName = new Map<string, Alert>();
  for (const alert of alerts) {
    const name = `${alert.code} ${alert.subject}`;
    if (!byName.has(name)) byName.set(name, alert);
  }
  return [...byName.values()];
}
