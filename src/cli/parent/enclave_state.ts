/** Reads everything that this host knows about an installed enclave. Changes nothing. */
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Image, parsePcrs } from 'sui-enclave/attestation/image';
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { printable } from '../printable.ts';
import { askServer, type Listen } from './expose.ts';
import { FOLDERS, type Host, nameEndUnit, nameUnits, readSettings } from './host.ts';
import type { RunningEnclave } from './nitro_cli.ts';
import { find, run } from './programs.ts';
import { isInEffect, readConf, reportsFolder } from './relay.ts';
import { lastEnd, lastReport } from './reports.ts';
import { readUnits, type UnitState } from './unit_states.ts';

/** Number of lines of the relay's journal that are searched for the last event of each enclave. */
const JOURNAL_LINES = 2000;

export interface EnclaveState {
  readonly name: string;
  readonly unit: UnitState;
  readonly expose: UnitState;
  /** The unit that ends the enclave if `unit` is stopped while no process watches the enclave. */
  readonly end: UnitState;
  /** The enclaves of this name that run; undefined if nitro-cli does not list them. */
  readonly running: readonly RunningEnclave[] | undefined;
  /** Registers of the image that the next start runs; undefined if they can't be read. */
  readonly installedImage: Image | undefined;
  /** Registers of the image that the last start ran. */
  readonly startedImage: Image | undefined;
  readonly listen: Listen;
  /** Port on loopback for the metrics; undefined without one. */
  readonly metricsPort: number | undefined;
  /** Whether the unit passes the secrets to the enclave. If false, secrets come from another machine. */
  readonly passesSecrets: boolean;
  /** Whether the relay forwards both ports to the enclave that runs. */
  readonly isForwarded: boolean;
  readonly lastReport: string | undefined;
  /** Reason for the end of the last enclave; undefined while no end was reported since the last boot. */
  readonly lastEnd: string | undefined;
  readonly lastEvent: string | undefined;
  /** State of the server; undefined if it does not answer. */
  readonly server: ServerState | undefined;
}

/**
 * A text of the server. It passes through the relay, so anyone who has taken over the relay can change it.
 */
const line = v.pipe(
  v.string(),
  v.transform((text) => printable(text)),
);
const Readiness = v.object({
  missing: v.optional(v.array(line), []),
  refused: v.optional(line),
  warnings: v.optional(v.array(line), []),
});
const Boot = v.object({
  clock: v.object({ source: line, difference_ms: v.optional(v.number()) }),
  last_end: v.nullish(line),
});

export interface ServerState extends v.InferOutput<typeof Readiness> {
  readonly isReady: boolean;
  /** Report of the start; undefined if the server does not give it. */
  readonly boot: v.InferOutput<typeof Boot> | undefined;
}

/** Returns the environment of the units, which names the folders of their state. */
export function unitEnvironment({ root, env }: Pick<Host, 'root' | 'env'>): Environment {
  return {
    ...env,
    SUI_ENCLAVE_STATE: join(root, FOLDERS.state),
    SUI_ENCLAVE_RELAY: join(root, FOLDERS.relayState),
  };
}

/**
 * Reads the state of an installed enclave.
 *
 * @param enclaves the running enclaves; undefined if nitro-cli does not list them
 * @param events the last event of each enclave
 * @throws ParentError: PROGRAM_FAILED, if systemd does not show the enclave's units
 */
export async function readEnclaveState(
  host: Pick<Host, 'root' | 'env'>,
  name: string,
  enclaves: readonly RunningEnclave[] | undefined,
  events: ReadonlyMap<string, string>,
): Promise<EnclaveState> {
  const { root } = host;
  const env = unitEnvironment(host);
  const [unit, expose, end] = readUnits(env, [...nameUnits(name), nameEndUnit(name)]);
  const settings = readSettings(host, name);
  const { listen, metricsPort } = readPorts(settings);
  const running = enclaves?.filter(({ EnclaveName }) => EnclaveName === name);
  const reports = reportsFolder(env, name);
  const images = join(root, FOLDERS.images, name);
  const started = readLink(join(root, FOLDERS.state, name, 'image.eif'));
  return {
    name,
    unit,
    expose,
    end,
    running,
    installedImage: readPcrs(join(images, 'nitro.pcrs')),
    startedImage:
      started === undefined ? undefined : readPcrs(join(images, `${basename(started, '.eif')}.pcrs`)),
    listen,
    metricsPort,
    passesSecrets:
      settings.includes('--secret-id') || existsSync(join(root, FOLDERS.settings, name, 'secrets.json')),
    isForwarded: isForwarded(env, name, running?.[0]?.EnclaveCID, [
      listen,
      ...(metricsPort === undefined ? [] : [{ address: '127.0.0.1', port: metricsPort }]),
    ]),
    lastReport: lastReport(reports),
    lastEnd: lastEnd(reports),
    lastEvent: events.get(name),
    server: running?.length === 0 ? undefined : await askState(listen),
  };
}

/** Reads the ports of the settings that host_install has written. */
function readPorts(settings: string): Pick<EnclaveState, 'listen' | 'metricsPort'> {
  const [, address = '0.0.0.0'] = /^EXPOSE_OPTIONS=.*--address (\S+)/m.exec(settings) ?? [];
  const [, port = '3000'] = /^EXPOSE_OPTIONS=.*--port (\d+)/m.exec(settings) ?? [];
  const [, metricsPort] = /^EXPOSE_OPTIONS=.*--metrics-port (\d+)/m.exec(settings) ?? [];
  return {
    listen: { address, port: Number(port) },
    metricsPort: metricsPort === undefined ? undefined : Number(metricsPort),
  };
}

function readPcrs(path: string): Image | undefined {
  try {
    return parsePcrs(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function isForwarded(
  env: Environment,
  name: string,
  cid: number | undefined,
  ports: readonly Listen[],
): boolean {
  try {
    const conf = readConf(env, name);
    const hasPort = ({ address, port }: Listen) =>
      conf?.listens.some((listen) => listen.address === address && listen.port === port) === true;
    return conf?.cid === cid && ports.every(hasPort) && isInEffect(env, name);
  } catch {
    // A relay that was taken over may have damaged its list.
    return false;
  }
}

async function askState(listen: Listen): Promise<ServerState | undefined> {
  const [ready, boot] = await Promise.all([askServer(listen, '/readyz'), askServer(listen, '/boot')]);
  const readiness = v.safeParse(Readiness, ready.body);
  if ((ready.status !== 200 && ready.status !== 503) || !readiness.success) return undefined;
  const parsed = v.safeParse(Boot, boot.body);
  return {
    ...readiness.output,
    isReady: ready.status === 200,
    boot: parsed.success ? parsed.output : undefined,
  };
}

const JournalLine = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({ MESSAGE: v.string(), __REALTIME_TIMESTAMP: v.pipe(v.string(), v.regex(/^\d{1,16}$/)) }),
);

/**
 * Reads the last event of each enclave from the journal of the relay, which prints the enclave's name before
 * the event.
 *
 * @returns time and event by the name of the enclave
 */
export function readEvents(env: Environment): Map<string, string> {
  if (!find(env, 'journalctl')) return new Map();
  const format = ['--quiet', '--output=json', '--output-fields=MESSAGE', `--lines=${JOURNAL_LINES}`];
  const { stdout } = run(env, 'journalctl', [...format, '--unit=sui-enclave-relay.service']);
  const events = stdout.split('\n').flatMap((text): [string, string][] => {
    const parsed = v.safeParse(JournalLine, text);
    const [, name, event] = parsed.success ? (/^(\S+) (\{.*)$/.exec(parsed.output.MESSAGE) ?? []) : [];
    if (!parsed.success || name === undefined || event === undefined) return [];
    const at = new Date(Number(parsed.output.__REALTIME_TIMESTAMP) / 1000);
    return [[name, `${at.toISOString()} ${printable(event)}`]];
  });
  return new Map(events);
}
