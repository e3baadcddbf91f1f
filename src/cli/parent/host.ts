/**
 * Manages enclaves as systemd units of a parent instance: the files, users and units of each enclave, and
 * those that all enclaves share. Nothing here restarts a running enclave, since a start makes a new key.
 */
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { replaceBy, replaceFile } from 'sui-enclave-service/replace_file';
import { type Environment, UsageError } from '../command.ts';
import { IS_CLONE } from '../places.ts';
import { readRegularFile } from '../read_file.ts';
import { ParentError } from './errors.ts';
import { type EnclaveImage, loadImage, requireRegisters } from './image.ts';
import { find, run } from './programs.ts';

/**
 * Folders below the root: for settings and secrets, for images and the relay, for the state that the services
 * write, for the state that the relay alone writes, and for the units of systemd.
 */
export const FOLDERS = {
  settings: 'etc/sui-enclave',
  images: 'usr/local/lib/sui-enclave',
  state: 'var/lib/sui-enclave',
  relayState: 'var/lib/sui-enclave-relay',
  units: 'etc/systemd/system',
} as const;
export const USERS = 'etc/sysusers.d/sui-enclave.conf';
/** Folder of systemd-tmpfiles, with a file for each enclave. */
export const TMPFILES = 'etc/tmpfiles.d';

/** Units that all enclaves share. */
const SHARED_UNITS = [
  'sui-enclave-relay.service',
  'sui-enclave-relay.path',
  'sui-enclave-relay-reload.service',
];
/** Templates of units. Each enclave has an instance of each. */
const TEMPLATES = ['sui-enclave@.service', 'sui-enclave-expose@.service', 'sui-enclave-end@.service'];
/** Command in the files of `units/`. An installed unit has the host's `program` instead. */
const PROGRAM = '/opt/sui-enclave/node_modules/.bin/node /opt/sui-enclave/src/cli/main.ts';

/**
 * Name that no enclave may have, since the folder of the relay's configuration is beside the enclaves'
 * folders.
 */
const RESERVED = 'relay';

export interface Host {
  /** The folder that holds the machine's files: `/`. */
  readonly root: string;
  readonly env: Environment;
  /** Command that the units start: Node and the program. */
  readonly program: readonly [node: string, main: string];
}

/**
 * Returns this machine as a host of enclaves, whose units start this program.
 *
 * @throws UsageError, without root's rights, or if services may not read the program
 */
export function thisHost(env: Environment): Host {
  if (process.getuid?.() !== 0)
    throw new UsageError('this command writes units and users: run it as root, with sudo');
  const main = fileURLToPath(new URL(IS_CLONE ? '../main.ts' : '../bin.cjs', import.meta.url));
  const program = [process.execPath, main] as const;
  for (const path of program) requireStartable(path);
  return { root: '/', env, program };
}

/** Checks a program's path. @throws UsageError, if systemd's services can't start the program */
export function requireStartable(path: string): void {
  const fault = /^\/(home|root)\//.test(path)
    ? 'services may not read'
    : /["'\\\p{Cc}]/u.test(path) && "a systemd unit can't contain the path";
  if (!fault) return;
  throw new UsageError(
    `${fault} ${JSON.stringify(path)}: install this program elsewhere, such as in /opt/sui-enclave`,
  );
}

/** Returns the units of an enclave, in the order of their start. */
export function nameUnits(name: string): [enclave: string, expose: string] {
  return [`sui-enclave@${name}.service`, `sui-enclave-expose@${name}.service`];
}

/** Returns the unit that ends an enclave if its own unit is stopped while no process watches the enclave. */
export function nameEndUnit(name: string): string {
  return `sui-enclave-end@${name}.service`;
}

export interface Files {
  readonly eif: string;
  /** The relay that was built with the image and lies beside it. */
  readonly relay: string;
  readonly image: EnclaveImage;
}

/** Reads the files of an image. @throws UsageError, for a file that is missing or belongs to another image */
export function readFiles(eif: string): Files {
  const image = loadImage(eif);
  requireRegisters(eif, image.registers);
  const relay = join(dirname(eif), 'relay');
  if (!existsSync(relay)) throw new UsageError(`${relay} is missing: the build writes it beside the image`);
  // A relay that has the option --in-effect names it in its usage. With a relay that lacks it, the unit would
  // fail, and all connections with it.
  if (!readRegularFile(relay).includes('--in-effect')) {
    throw new UsageError(
      `${relay} is of an older version, which these units can't start: build the image again`,
    );
  }
  return { eif, relay, image };
}

export function isInstalled({ root }: Pick<Host, 'root'>, name: string): boolean {
  return existsSync(join(root, FOLDERS.settings, name, 'settings.env'));
}

/** Returns the names of the installed enclaves. */
export function listInstalled({ root }: Pick<Host, 'root'>): string[] {
  const folder = join(root, FOLDERS.settings);
  return list(folder).filter((name) => existsSync(join(folder, name, 'settings.env')));
}

/** Refuses a reserved name. @throws UsageError */
export function requireName(name: string): void {
  if (name === RESERVED) throw new UsageError(`${RESERVED} can't be the name of an enclave`);
}

/** Requires that the enclave is installed. @throws ParentError: WRONG_STATE */
export function requireInstalled(host: Pick<Host, 'root'>, name: string): void {
  if (isInstalled(host, name)) return;
  const names = listInstalled(host);
  throw new ParentError(
    'WRONG_STATE',
    `no enclave named ${name} is installed${names.length > 0 ? `; installed: ${names.join(', ')}` : ''}`,
  );
}

/**
 * Places the relay, and the image for the next start beside the running image.
 *
 * @returns whether the relay has changed
 */
export function placeImage(
  { root }: Host,
  name: string,
  { eif, relay, image }: Files,
): { isNewRelay: boolean } {
  const folder = join(root, FOLDERS.images, name);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const imageName = image.registers.pcr0.slice(0, 16);
  replaceWithCopy(join(folder, `${imageName}.eif`), 0o644, eif);
  replaceFile(join(folder, `${imageName}.pcrs`), formatPcrs(image.registers), 0o644);
  replaceLink(join(folder, 'nitro.eif'), `${imageName}.eif`);
  replaceLink(join(folder, 'nitro.pcrs'), `${imageName}.pcrs`);
  const running = readLinkTarget(join(root, FOLDERS.state, name, 'image.eif'));
  const usedStems = [imageName, ...(running === undefined ? [] : [basename(running, '.eif')])];
  for (const file of list(folder)) {
    const [stem = ''] = file.split('.');
    if (!['nitro', 'relay'].includes(stem) && !usedStems.includes(stem)) rmSync(join(folder, file));
  }
  // All enclaves share one relay, and the commands look for it beside the image.
  replaceLink(join(folder, 'relay'), '../relay');
  const installedRelay = join(root, FOLDERS.images, 'relay');
  const isNewRelay = !existsSync(installedRelay) || !readFileSync(installedRelay).equals(readFileSync(relay));
  if (isNewRelay) replaceWithCopy(installedRelay, 0o755, relay);
  return { isNewRelay };
}

/** Settings of an enclave as words of a command line, which systemd splits at spaces. */
export interface Settings {
  readonly run: readonly string[];
  readonly expose: readonly string[];
}

/** Returns the settings of an installed enclave, as written. */
export function readSettings({ root }: Pick<Host, 'root'>, name: string): string {
  return readFileSync(join(root, FOLDERS.settings, name, 'settings.env'), 'utf8');
}

/** Returns the memory in MiB that the settings give an enclave. */
export function readMemory(host: Host, name: string): number | undefined {
  const [, memory] = /^RUN_OPTIONS=.*--memory (\d+)/m.exec(readSettings(host, name)) ?? [];
  return memory === undefined ? undefined : Number(memory);
}

/** Writes the settings. From then on, the enclave is installed. */
export function writeSettings({ root }: Host, name: string, { run, expose }: Settings): void {
  const folder = join(root, FOLDERS.settings, name);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const text = `# Options of run_enclave and expose_enclave.\nRUN_OPTIONS=${run.join(' ')}\nEXPOSE_OPTIONS=${expose.join(' ')}\n`;
  replaceFile(join(folder, 'settings.env'), text, 0o644);
}

/** Writes the secrets, a JSON object, and lets the enclave's service read them. */
export function writeSecrets({ root }: Host, name: string, secrets: string): void {
  const folder = join(root, FOLDERS.settings, name);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  // Only root may read the file: systemd gives the service a copy in memory.
  replaceFile(join(folder, 'secrets.json'), secrets, 0o600);
  const dropIn = join(root, FOLDERS.units, `${nameUnits(name)[1]}.d`);
  mkdirSync(dropIn, { recursive: true, mode: 0o755 });
  const lines = [
    '[Service]',
    `LoadCredential=secrets.json:/${FOLDERS.settings}/${name}/secrets.json`,
    'Environment="EXPOSE_SECRETS=--secrets %d/secrets.json"',
  ];
  replaceFile(join(dropIn, 'secrets.conf'), `${lines.join('\n')}\n`, 0o644);
}

/**
 * Returns the beginning of an `ExecStart`: see "Command lines" in systemd.service(5). systemd expands no
 * variables in the first path, so `$` is escaped in the second alone.
 */
export function formatProgram([node, main]: Host['program']): string {
  const quote = (path: string) => (/^[\w/.@+-]+$/.test(path) ? path : `"${path.replaceAll('%', '%%')}"`);
  return `${quote(node)} ${quote(main).replaceAll('$', '$$$$')}`;
}

/** Writes the unit files, with the host's program as their command. The caller has systemd reload them. */
export function writeUnits({ root, program }: Host): void {
  mkdirSync(join(root, FOLDERS.units), { recursive: true, mode: 0o755 });
  for (const unit of [...SHARED_UNITS, ...TEMPLATES]) {
    const text = readFileSync(new URL(`units/${unit}`, import.meta.url), 'utf8');
    const unitText = text.replaceAll(PROGRAM, () => formatProgram(program));
    replaceFile(join(root, FOLDERS.units, unit), unitText, 0o644);
  }
}

export function enable(host: Host, name: string): void {
  must(
    host,
    'systemctl',
    'enable',
    '--quiet',
    'sui-enclave-relay.service',
    'sui-enclave-relay.path',
    ...nameUnits(name),
  );
}

/**
 * Removes all files of an enclave, which must not run. With the last enclave, the shared files are removed
 * too.
 */
export function removeFiles(host: Host, name: string): void {
  const { root } = host;
  const isLast = listInstalled(host).every((installedName) => installedName === name);
  // First, what the relay's user can keep from being removed: until then, the command can be repeated.
  const states = [
    join(FOLDERS.state, name),
    join(FOLDERS.state, 'relay', `${name}.conf`),
    join(FOLDERS.relayState, name),
    ...(isLast ? [join(FOLDERS.state, 'relay'), FOLDERS.relayState] : []),
  ];
  removeTree(host, ...states.map((path) => join(root, path)));
  for (const path of [
    join(FOLDERS.settings, name),
    join(FOLDERS.images, name),
    join(FOLDERS.units, `${nameUnits(name)[1]}.d`),
    join(TMPFILES, `sui-enclave-${name}.conf`),
    ...(isLast ? [join(FOLDERS.images, 'relay'), USERS] : []),
    ...(isLast ? [...SHARED_UNITS, ...TEMPLATES].map((unit) => join(FOLDERS.units, unit)) : []),
  ]) {
    rmSync(join(root, path), { recursive: true, force: true });
  }
  must(host, 'systemctl', 'daemon-reload');
  if (!isLast) return;
  // The settings of the keeper and the provisioner may be there too.
  for (const folder of [FOLDERS.settings, FOLDERS.images, FOLDERS.state]) removeIfEmpty(join(root, folder));
  for (const user of ['sui-enclave-relay', 'sui-enclave']) must(host, 'userdel', user);
}

/** Stops and disables the units of an enclave; with the last enclave, also the units of the relay. */
export function disable(host: Host, name: string): void {
  const isLast = listInstalled(host).every((installedName) => installedName === name);
  const [enclave, expose] = nameUnits(name);
  const shared = isLast ? ['sui-enclave-relay.path', 'sui-enclave-relay.service'] : [];
  must(host, 'systemctl', 'disable', '--quiet', '--now', expose, enclave, ...shared);
  // The command above does not wait for this unit, which stops with the enclave's. Older versions lack it.
  run(host.env, 'systemctl', ['stop', nameEndUnit(name)]);
  // Otherwise systemd would still list a failed unit whose file is deleted.
  run(host.env, 'systemctl', ['reset-failed', expose, enclave, nameEndUnit(name), ...shared]);
}

/** Runs a program that must succeed. @throws ParentError: PROGRAM_FAILED, with the program's own message */
export function must({ env }: Host, program: string, ...args: string[]): void {
  const { status, stderr } = run(env, program, args);
  if (status === 0) return;
  throw new ParentError('PROGRAM_FAILED', `${program} ${args.join(' ')} failed: ${stderr.trim()}`);
}

/**
 * Removes files and folders while another user may change them. rm(1) never follows a link, not even a link
 * that takes the place of a folder. Not every version of Node guarantees this for its own function.
 *
 * @throws ParentError: PROGRAM_FAILED
 */
export function removeTree(host: Host, ...paths: string[]): void {
  // A file that the other user adds between the listing and the removal of its folder makes rm fail.
  const attempts = 10;
  for (let attempt = 1; attempt < attempts; attempt++) {
    if (run(host.env, 'rm', ['-rf', '--', ...paths]).status === 0) return;
  }
  must(host, 'rm', '-rf', '--', ...paths);
}

/** Returns whether the unit of the enclave is started, starting or stopping. */
export function isActive({ env }: Host, name: string): boolean {
  if (!find(env, 'systemctl')) return false;
  const { stdout } = run(env, 'systemctl', ['is-active', nameUnits(name)[0]]);
  return !['inactive', 'failed', 'unknown', ''].includes(stdout.trim());
}

/** Replaces a file with a copy of another, which may be too large for memory. */
function replaceWithCopy(path: string, mode: number, source: string): void {
  replaceBy(path, (fresh) => {
    copyFileSync(source, fresh, constants.COPYFILE_EXCL);
    chmodSync(fresh, mode);
  });
}

function replaceLink(path: string, target: string): void {
  replaceBy(path, (fresh) => symlinkSync(target, fresh));
}

function readLinkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function list(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

function removeIfEmpty(folder: string): void {
  if (existsSync(folder) && list(folder).length === 0) rmdirSync(folder);
}
