/**
 * The relay of this host, one process for all its enclaves. The image's build writes it to out/relay. It
 * forwards the enclaves' connections to the Internet, forwards callers to the enclaves, and keeps their
 * reports. The files in the relay's folder configure it: one file for each enclave, with the enclave's name.
 */
import { spawn } from 'node:child_process';
import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Manifest } from 'sui-enclave-server/manifest';
import { replaceFile } from 'sui-enclave-service/replace_file';
import type { Environment } from '../command.ts';
import { listForwards } from '../image/settings.ts';
import { ParentError } from './errors.ts';
import { readRelayFile } from './relay_files.ts';
import { ensureRunning, requireRunning, signalService, stateBase, stopServices } from './services.ts';

/** The lowest CID that AWS gives to enclaves. */
const FIRST_CID = 16;
const NAME = 'relay';
const SUFFIX = '.conf';

/**
 * Returns whether the relay is systemd's unit sui-enclave-relay.service. That unit runs as another user, and
 * nothing here may send signals to it. A path unit makes it read its folder again when `CHANGED` is written.
 */
const isUnit = ({ SUI_ENCLAVE_RELAY }: Environment) => (SUI_ENCLAVE_RELAY ?? '') !== '';

/**
 * Returns the folder to which the relay writes each enclave's reports, and the settings in effect. As a unit,
 * the relay has a separate folder, and can only read the folder of the state. Older units have the value
 * `unit`, until `host_upgrade` replaces them.
 */
function relayOutput(env: Environment): string {
  const folder = env['SUI_ENCLAVE_RELAY'] ?? '';
  return folder === '' || folder === 'unit' ? stateBase(env) : folder;
}

/** Returns the folder with the reports of an enclave. */
export function reportsFolder(env: Environment, name: string): string {
  return join(relayOutput(env), name);
}

const CHANGED = 'changed';
const ACCEPT_MS = 5000;
const POLL_MS = 20;

/** An address and port of this instance that are forwarded to a port of the enclave. */
export interface ListenLine {
  readonly address: string;
  readonly port: number;
  readonly vsockPort: number;
}

/** Settings of the relay for one enclave: see enclave/relay/conf.h. */
export interface RelayConf {
  readonly cid: number;
  /** The vsock ports of this instance that are forwarded to a host, at port 443. */
  readonly upstreams: readonly { readonly port: number; readonly host: string }[];
  readonly listens: readonly ListenLine[];
}

/** Returns the relay beside an image. @throws ParentError: PROGRAM_FAILED, if it is missing */
export function findRelay(eif: string): string {
  // The relay lies beside the image itself, not beside a link to it.
  const path = resolve(dirname(realpathSync(eif)), NAME);
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new ParentError(
      'PROGRAM_FAILED',
      `${path} is missing or can't be run: the build writes it beside the image; copy both here`,
    );
  }
  return path;
}

/** Returns the folder with a file for each enclave, and with the relay's own log and record. */
export function relayFolder(env: Environment): string {
  const dir = join(stateBase(env), NAME);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return dir;
}

function confPath(env: Environment, name: string): string {
  return join(stateBase(env), NAME, `${name}${SUFFIX}`);
}

/** Creates settings of the relay. @param listens the forwarded addresses; none before expose_enclave */
export function createConf(cid: number, manifest: Manifest, listens: readonly ListenLine[]): RelayConf {
  return { cid, upstreams: listForwards(manifest).map(({ port, host }) => ({ port, host })), listens };
}

export function formatConf({ cid, upstreams, listens }: RelayConf): string {
  const lines = [
    `cid ${cid}`,
    ...upstreams.map(({ port, host }) => `upstream ${port} ${host}`),
    ...listens.map(({ address, port, vsockPort }) => `listen ${address}:${port} ${vsockPort}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** Writes the file of an enclave; the relay reads it at its start, or when it is told to (`ensureRelay`). */
export function writeConf(env: Environment, name: string, conf: RelayConf): void {
  replaceFile(join(relayFolder(env), `${name}${SUFFIX}`), formatConf(conf), 0o640);
}

/** Reads the file of an enclave; returns undefined if it is missing. */
export function readConf(env: Environment, name: string): RelayConf | undefined {
  let text: string;
  try {
    text = readFileSync(confPath(env, name), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const lines = text.split('\n').map((line) => line.split(' '));
  const findLines = (word: string) => lines.filter(([first]) => first === word);
  return {
    cid: Number(findLines('cid')[0]?.[1]),
    upstreams: findLines('upstream').map(([, port, host = '']) => ({ port: Number(port), host })),
    listens: findLines('listen').map(([, listen = '', vsockPort]) => {
      const at = listen.lastIndexOf(':');
      return {
        address: listen.slice(0, at),
        port: Number(listen.slice(at + 1)),
        vsockPort: Number(vsockPort),
      };
    }),
  };
}

/**
 * Removes an enclave from the relay, which closes the enclave's connections. Stops a relay that no longer
 * serves any enclave, if it was started here.
 *
 * @returns whether the relay was stopped
 */
export async function removeConf(env: Environment, name: string): Promise<boolean> {
  const dir = relayFolder(env);
  rmSync(join(dir, `${name}${SUFFIX}`), { force: true });
  if (isUnit(env)) {
    writeFileSync(join(dir, CHANGED), '');
    return false;
  }
  if (listConfNames(env).length === 0) return (await stopServices(dir)).length > 0;
  signalService(dir, NAME, 'SIGHUP');
  return false;
}

/** Returns the names of the enclaves that have a file. */
export function listConfNames(env: Environment): string[] {
  return readdirSync(relayFolder(env))
    .filter((file) => file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort();
}

/** Returns a CID that no enclave has and no file names. @param running CIDs of the running enclaves */
export function findFreeCid(env: Environment, running: readonly number[]): number {
  const taken = new Set([...running, ...listConfNames(env).map((name) => readConf(env, name)?.cid)]);
  let cid = FIRST_CID;
  while (taken.has(cid)) cid += 1;
  return cid;
}

/**
 * Makes the relay read its folder, and starts it in the background if it does not run. A running relay is
 * never replaced, even by the relay of a newer image, since other enclaves have connections through it.
 *
 * @param name name of the enclave whose file must be in effect afterwards
 * @throws ParentError: PROGRAM_FAILED, if the relay can't be started, ends immediately, or does not accept
 *   the file
 */
export async function ensureRelay(
  env: Environment,
  eif: string,
  name: string,
): Promise<'started' | 'running'> {
  const state = await startOrSignal(env, eif);
  for (let waitedMs = 0; !isInEffect(env, name); waitedMs += POLL_MS) {
    if (waitedMs >= ACCEPT_MS) {
      throw new ParentError(
        'PROGRAM_FAILED',
        `the relay does not accept ${name}${SUFFIX}: see ${join(relayFolder(env), `${NAME}.log`)}`,
      );
    }
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
  return state;
}

/**
 * Returns whether the file of an enclave is in effect, according to the relay's list.
 *
 * @throws ParentError: PROGRAM_FAILED, if the list is not a file that the relay could have written
 */
export function isInEffect(env: Environment, name: string): boolean {
  const list = `\n${readRelayFile(join(relayOutput(env), NAME, 'in_effect')) ?? ''}`;
  return list.includes(`\n${name}\n${readFileSync(confPath(env, name), 'utf8')}\n`);
}

async function startOrSignal(env: Environment, eif: string): Promise<'started' | 'running'> {
  const dir = relayFolder(env);
  if (isUnit(env)) {
    writeFileSync(join(dir, CHANGED), '');
    return 'running';
  }
  if (signalService(dir, NAME, 'SIGHUP')) return 'running';
  await ensureRunning(env, dir, [{ name: NAME, command: [findRelay(eif), 'serve', dir, stateBase(env)] }]);
  return 'started';
}

/**
 * Requires that the relay runs.
 *
 * @throws ParentError: PROGRAM_FAILED, if the relay has ended since it was started here. If the relay is a
 *   unit, systemd starts it again
 */
export function requireRelay(env: Environment): void {
  if (isUnit(env)) return;
  requireRunning(relayFolder(env), [NAME]);
}

/**
 * Passes a message to a port of an enclave.
 *
 * @param program the relay's program
 * @returns the enclave's answer; undefined if the enclave does not listen, or does not answer in time
 * @throws ParentError: PROGRAM_FAILED, if the program can't be started
 */
export async function passToEnclave(
  { env, program }: { env: Environment; program: string },
  cid: number,
  port: number,
  message: string,
): Promise<string | undefined> {
  const child = spawn(program, ['pass', String(cid), String(port)], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let answer = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk;
  });
  // The program may end before it has read everything.
  child.stdin.on('error', () => {});
  child.stdin.end(message);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ParentError('PROGRAM_FAILED', `${program} can't be started: ${error.code}`)),
    );
  });
  return status === 0 ? answer : undefined;
}
