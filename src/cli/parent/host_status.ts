/**
 * `sui-enclave host_status [NAME]`: on the parent instance, prints the faults of the installed enclaves, and
 * the command that mends each. Changes nothing.
 */
import { command, type Environment, EXIT, runAsProcess, UsageError } from '../command.ts';
import { PROGRAM } from '../places.ts';
import { READING, ROOT_OPTION } from '../sui/options.ts';
import { enclaveName } from '../values.ts';
import { findFaults, readMeasuredImage } from './enclave_faults.ts';
import { type EnclaveState, readEnclaveState, readEvents } from './enclave_state.ts';
import { ParentError } from './errors.ts';
import { formatUrl } from './expose.ts';
import { type Host, listInstalled, requireInstalled } from './host.ts';
import type { HostFault } from './host_faults.ts';
import { type RunningEnclave, runningEnclaves } from './nitro_cli.ts';
import type { ChainOptions, Registration } from './registration.ts';
import { readUnits, type UnitState } from './unit_states.ts';

const RELAY_UNITS = ['sui-enclave-relay.service', 'sui-enclave-relay.path'] as const;

/** An enclave with its faults, the worst first. */
interface JudgedEnclave {
  readonly state: EnclaveState;
  /** State of the key on chain; undefined without `--network`. */
  readonly registration: Registration | undefined;
  readonly faults: readonly HostFault[];
}

export interface HostStatus {
  /** Faults that concern every enclave. */
  readonly faults: readonly HostFault[];
  readonly relay: UnitState;
  readonly enclaves: readonly JudgedEnclave[];
  /** Enclaves that run and are not installed as units. */
  readonly uninstalled: readonly RunningEnclave[];
}

export const main = command({
  name: 'host_status',
  purpose: `Prints the state of this host and its installed enclaves: the faults first, each with the command that mends it and
the connections or enclaves that this command would end; then units, images, port, relay, reports, secrets and clock.
Changes nothing.`,
  example: 'weather --network testnet',
  arguments: { name: { schema: enclaveName, optional: true } },
  options: {
    network: {
      ...READING.network,
      help: `also read the registration on this network: ${READING.network.help}`,
    },
    app: READING.app,
    'rpc-url': READING['rpc-url'],
    ...ROOT_OPTION,
  },
  notes: `With --network, the config comes from deployments/<network>.json, which the admin's commands write: copy that file here.

exit codes: 0 no fault found; 1 a fault found, or the state can't be read; 2 invalid command line`,
  async run({ args: { name }, options: { network, ...options } }, { env }) {
    if (process.getuid?.() !== 0)
      throw new UsageError('this command reads the state of units: run it as root, with sudo');
    if (network === undefined && (options.app ?? options['rpc-url']) !== undefined) {
      throw new UsageError('give --network with --app or --rpc-url');
    }
    const chain = network === undefined ? undefined : { network, ...options };
    const status = await readHostStatus({ root: '/', env }, name, chain);
    const isHealthy = listFaults(status).length === 0;
    return {
      exit: isHealthy ? EXIT.done : EXIT.failed,
      json: { ok: isHealthy, ...toJson(status) },
      text: formatStatus(status),
    };
  },
});

/**
 * Reads the state of this host.
 *
 * @param name name of the only enclave to read; undefined for all enclaves
 * @param chain options for reading the registrations; undefined to leave them out
 * @throws ParentError: WRONG_STATE, if the enclave is not installed; PROGRAM_FAILED, if systemctl does not
 *   answer
 */
export async function readHostStatus(
  host: Pick<Host, 'root' | 'env'>,
  name?: string,
  chain?: ChainOptions,
): Promise<HostStatus> {
  if (name !== undefined) requireInstalled(host, name);
  const { env } = host;
  const [relay, pathUnit] = readUnits(env, RELAY_UNITS);
  const allNames = listInstalled(host);
  const names = name === undefined ? allNames : [name];
  const enclaves = readEnclaves(env);
  const running = Array.isArray(enclaves) ? enclaves : undefined;
  const events = readEvents(env);
  const registrations = chain && new (await import('./registration.ts')).Registrations(chain, env);
  const judge = async (enclave: string): Promise<JudgedEnclave> => {
    const state = await readEnclaveState(host, enclave, running, events);
    const faults = findFaults(state, relay.active === 'active');
    const registration = state.server && (await registrations?.read(state));
    return { state, registration, faults: [...faults, ...(registration?.fault ? [registration.fault] : [])] };
  };
  return {
    faults: [
      ...(allNames.length === 0 ? [describeNothingInstalled()] : findRelayFaults(relay, pathUnit)),
      ...(Array.isArray(enclaves) ? [] : [enclaves]),
    ],
    relay,
    enclaves: await Promise.all(names.map(judge)),
    uninstalled: running?.filter(({ EnclaveName }) => !allNames.includes(EnclaveName ?? '')) ?? [],
  };
}

/** Returns the running enclaves, or the fault of nitro-cli, which must not hide the other faults. */
function readEnclaves(env: Environment): RunningEnclave[] | HostFault {
  try {
    return runningEnclaves(env);
  } catch (error) {
    if (!(error instanceof ParentError)) throw error;
    const advice = `the enclaves that run are not affected. ${PROGRAM} doctor E36 explains an error code of nitro-cli`;
    return { code: 'NITRO_UNREADABLE', text: error.message, advice };
  }
}

function describeNothingInstalled(): HostFault {
  return {
    code: 'NOTHING_INSTALLED',
    text: 'no enclave is installed as a unit of this host',
    advice: `${PROGRAM} doctor says whether an enclave can run, and ${PROGRAM} host_install installs it. Neither ends a running enclave`,
  };
}

function findRelayFaults(relay: UnitState, pathUnit: UnitState): HostFault[] {
  const faults: HostFault[] = [];
  if (relay.active !== 'active') {
    const text = `the relay is ${relay.active} (${relay.sub}), so no enclave can be reached`;
    const advice = `systemctl start ${relay.unit}: it opens the ports again; the enclaves continue, and keep their keys`;
    faults.push({ code: 'RELAY_DOWN', text, advice });
  }
  if (pathUnit.active !== 'active') {
    const text = `${pathUnit.unit} is ${pathUnit.active}, so the relay is not told of changed ports`;
    const advice = `systemctl start ${pathUnit.unit}: this ends no connection and no enclave`;
    faults.push({ code: 'RELAY_PATH_DOWN', text, advice });
  }
  return faults;
}

function listFaults({ faults, enclaves }: HostStatus): HostFault[] {
  return [...faults, ...enclaves.flatMap((enclave) => enclave.faults)];
}

const describeUnit = ({ active, sub, since }: UnitState) =>
  `${active} (${sub})${since === undefined ? '' : ` since ${since.toISOString()}`}`;

const formatFault = ({ code, text, advice }: HostFault) => [`  ${code}: ${text}`, `    → ${advice}`];

export function formatStatus(status: HostStatus): string {
  const { relay, enclaves, uninstalled } = status;
  // Healthy enclaves come last, so that the reader need not scroll past them to a fault.
  const sortedEnclaves = enclaves.toSorted((a, b) => b.faults.length - a.faults.length);
  return [
    ...(status.faults.length === 0 ? [] : ['BAD host', ...status.faults.flatMap(formatFault)]),
    ...sortedEnclaves.flatMap(formatEnclave),
    `relay: ${describeUnit(relay)}`,
    ...uninstalled.map(
      ({ EnclaveName, EnclaveID, EnclaveCID }) =>
        `not installed here: enclave ${EnclaveName ?? 'without a name'} (${EnclaveID}) runs as CID ${EnclaveCID}`,
    ),
  ].join('\n');
}

function formatEnclave({ state, registration, faults }: JudgedEnclave): string[] {
  const { name, unit, expose, running, listen, server } = state;
  const rows: [label: string, text: string][] = [
    ['unit', `${unit.unit}: ${describeUnit(unit)}`],
    ['port', `${listen.address}:${listen.port}, ${expose.unit}: ${describeUnit(expose)}`],
    ['enclave', running === undefined ? 'unknown' : describeEnclaves(running)],
    ['image', describeImage(state)],
    ['last report', state.lastReport ?? 'none'],
    ['last event', state.lastEvent ?? 'none in the journal of the relay'],
    ['secrets', server === undefined ? 'unknown' : server.isReady ? 'complete' : 'missing'],
    ['clock', describeClock(state)],
    ['parts', describeParts(state)],
    ['registration', registration?.text ?? (server === undefined ? 'unknown' : 'not read: give --network')],
  ];
  return [
    `${faults.length === 0 ? 'ok ' : 'BAD'} ${name}`,
    ...faults.flatMap(formatFault),
    ...rows.map(([label, text]) => `  ${label.padEnd(14)}${text}`),
  ];
}

function describeEnclaves(running: readonly RunningEnclave[]): string {
  const texts = running.map(({ EnclaveID, EnclaveCID }) => `${EnclaveID}, CID ${EnclaveCID}`);
  return texts.join('; ') || 'none runs';
}

function describeImage({ running, installedImage }: EnclaveState): string {
  const measured = running?.[0] && readMeasuredImage(running[0]);
  const next = installedImage === undefined ? 'unknown' : `PCR0 ${installedImage.pcr0.slice(0, 16)}…`;
  if (measured === undefined) return `the next start runs ${next}`;
  const isSame = measured.pcr0 === installedImage?.pcr0;
  return `runs PCR0 ${measured.pcr0}, ${isSame ? 'which is installed' : `and the next start runs ${next}`}`;
}

function describeClock({ server }: EnclaveState): string {
  const clock = server?.boot?.clock;
  if (clock === undefined || clock.source === 'unknown') return 'unknown';
  if (clock.source === 'kernel') return 'not corrected by init';
  const difference = clock.difference_ms === undefined ? '' : `, ${clock.difference_ms} ms off`;
  return `corrected by ${clock.source}${difference}`;
}

/** Describes the last end of a part of the enclave, which init has restarted. */
function describeParts({ server }: EnclaveState): string {
  if (server?.boot === undefined) return 'unknown';
  return server.boot.last_end ?? 'none was restarted';
}

function toJson({ faults, relay, enclaves, uninstalled }: HostStatus): object {
  return {
    faults,
    relay: unitToJson(relay),
    enclaves: enclaves.map(({ state, registration, faults }) => ({
      name: state.name,
      faults,
      unit: unitToJson(state.unit),
      expose: unitToJson(state.expose),
      running: state.running?.map((enclave) => ({
        id: enclave.EnclaveID,
        cid: enclave.EnclaveCID,
        debug: enclave.Flags?.includes('DEBUG_MODE') ?? false,
        image: readMeasuredImage(enclave) ?? null,
      })),
      installedImage: state.installedImage ?? null,
      url: formatUrl(state.listen),
      isForwarded: state.isForwarded,
      lastReport: state.lastReport ?? null,
      lastEvent: state.lastEvent ?? null,
      server: state.server ?? null,
      registration: registration?.text ?? null,
    })),
    uninstalled: uninstalled.map(({ EnclaveName, EnclaveID, EnclaveCID }) => ({
      name: EnclaveName ?? null,
      id: EnclaveID,
      cid: EnclaveCID,
    })),
  };
}

const unitToJson = ({ unit, active, sub, result, since }: UnitState) => ({
  unit,
  active,
  sub,
  result,
  since: since ?? null,
});

if (import.meta.main) await runAsProcess(main);
