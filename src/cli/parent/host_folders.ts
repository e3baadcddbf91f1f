/**
 * Creates the users and folders of the units. The relay is reachable from the network. It writes its reports
 * and the ports that it serves to its own folders, in which the commands open no other files. All other
 * folders are read-only for the relay.
 */
import { lstatSync, mkdirSync, readdirSync, renameSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from 'sui-enclave-service/replace_file';
import { ParentError } from './errors.ts';
import {
  FOLDERS,
  type Host,
  isActive,
  listInstalled,
  must,
  nameEndUnit,
  removeTree,
  TMPFILES,
  USERS,
  writeUnits,
} from './host.ts';
import { run } from './programs.ts';

const RELAY_UNIT = 'sui-enclave-relay.service';
/** Files that the relay writes to the folder of an enclave. */
const REPORTS = ['reports.jsonl', 'reports.jsonl.old'];

/**
 * Makes the units, users and folders of all enclaves, since they share the relay. Moves files that older
 * versions kept in other folders. After an interruption at any point, it can be run again.
 *
 * @param name name of an enclave, which may be new
 * @returns whether a relay of an older version was restarted
 * @throws ParentError: PROGRAM_FAILED
 */
export function setUp(host: Host, name: string): boolean {
  const names = [...new Set([...listInstalled(host), name])];
  // All files are written first: after a loss of power, the next boot makes the folders of the units that it
  // starts.
  const tmpfiles = writeFolders(host, names);
  writeUnits(host);
  must(host, 'systemd-sysusers', `/${USERS}`);
  must(host, 'systemd-tmpfiles', '--create', ...tmpfiles);
  for (const folder of ['relay', ...names]) moveRelayFiles(host, folder);
  must(host, 'systemctl', 'daemon-reload');
  startEndUnits(host, names);
  return restartOlderRelay(host);
}

/** Writes the files from which systemd makes users and folders. @returns the files of the folders */
function writeFolders({ root }: Host, names: readonly string[]): string[] {
  for (const folder of [dirname(USERS), TMPFILES]) {
    mkdirSync(join(root, folder), { recursive: true, mode: 0o755 });
  }
  const state = `/${FOLDERS.state}`;
  replaceFile(
    join(root, USERS),
    `# Of sui-enclave host_install: enclaves, and their relay.
g sui-enclave -
u sui-enclave -:sui-enclave "Enclaves" ${state}
u sui-enclave-relay -:sui-enclave "Relay of the enclaves" ${state}
`,
    0o644,
  );
  return names.map((name) => {
    const path = join(TMPFILES, `sui-enclave-${name}.conf`);
    replaceFile(join(root, path), formatTmpfiles(name), 0o644);
    return `/${path}`;
  });
}

/**
 * Formats a file of tmpfiles.d(5). The parent of the relay's folders belongs to root, so that no link can
 * take the place of one of these folders.
 */
function formatTmpfiles(name: string): string {
  const state = `/${FOLDERS.state}`;
  const relayState = `/${FOLDERS.relayState}`;
  return `d ${state} 2750 sui-enclave sui-enclave
d ${state}/relay 2750 sui-enclave sui-enclave
d ${state}/${name} 2750 sui-enclave sui-enclave
d ${relayState} 0750 root sui-enclave
d ${relayState}/relay 2750 sui-enclave-relay sui-enclave
d ${relayState}/${name} 2750 sui-enclave-relay sui-enclave
`;
}

/**
 * Cleans the folders of the state, to which the relay's user wrote before this version. Reports move to the
 * relay's folder, and all other files of the relay's user are removed. None of its links is followed, and
 * none of its files is opened.
 *
 * @throws ParentError: PROGRAM_FAILED, if anyone but the owner can still write to the folder, or a file can't
 *   be moved
 */
function moveRelayFiles(host: Host, name: string): void {
  const [from, to] = [join(host.root, FOLDERS.state, name), join(host.root, FOLDERS.relayState, name)];
  const folder = readStatus(from);
  if (folder === undefined) return;
  // This comes first: from here on, the relay's user can't change the entries.
  if (!folder.isDirectory() || (folder.mode & 0o022) !== 0) {
    throw new ParentError('PROGRAM_FAILED', `${from} must be a folder that only its owner can write`);
  }
  for (const file of readdirSync(from)) {
    const status = readStatus(join(from, file));
    if (status === undefined || status.uid === folder.uid || status.uid === 0) continue;
    if (REPORTS.includes(file) && status.isFile()) moveReports(join(from, file), join(to, file));
    else removeTree(host, join(from, file));
  }
}

/** Moves the reports. If the relay has begun a new file, the older file is kept beside it. */
function moveReports(from: string, to: string): void {
  const freePath = readStatus(to) === undefined ? to : `${to}.${Date.now()}`;
  try {
    renameSync(from, freePath);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ParentError(
      'PROGRAM_FAILED',
      `${from} can't be moved to ${freePath} (${code}): move or remove it, and run this again`,
    );
  }
}

function readStatus(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** Starts the units that end enclaves, since an enclave that an earlier version started lacks one. */
function startEndUnits(host: Host, names: readonly string[]): void {
  const units = names.filter((name) => isActive(host, name)).map(nameEndUnit);
  if (units.length > 0) must(host, 'systemctl', 'start', ...units);
}

/**
 * Restarts a relay that an older version started, since it would write to folders in which it may no longer
 * write. A relay of this version has written the file `in_effect` to its own folder.
 */
function restartOlderRelay(host: Host): boolean {
  if (readStatus(join(host.root, FOLDERS.relayState, 'relay/in_effect')) !== undefined) return false;
  if (run(host.env, 'systemctl', ['is-active', RELAY_UNIT]).stdout.trim() !== 'active') return false;
  must(host, 'systemctl', 'restart', RELAY_UNIT);
  return true;
}
