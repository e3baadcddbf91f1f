/** Finds the holder of a port of this machine. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../command.ts';
import { find, run } from './programs.ts';

/** TCP_LISTEN of Linux's net/tcp_states.h, as proc(5) prints it. */
const LISTEN = '0A';

/**
 * Returns the program that listens on a TCP port. Returns the program's user instead if the process belongs
 * to another user and can't be inspected.
 *
 * @param root the folder that holds the machine's files: `/`
 * @returns a text such as `socat (process 123)`; undefined if nothing listens
 */
export function findPortHolder(root: string, port: number): string | undefined {
  const socket = ['tcp', 'tcp6']
    .map((file) => findListener(join(root, 'proc/net', file), port))
    .find(Boolean);
  if (!socket) return undefined;
  return describeProcess(join(root, 'proc'), socket.inode) ?? `a program of the user ${socket.uid}`;
}

interface Socket {
  readonly uid: string;
  readonly inode: string;
}

/**
 * Finds the socket that listens on a port. The columns are number, local address, remote address, state, …,
 * user, time-out, inode: see proc(5), /proc/net/tcp.
 */
function findListener(path: string, port: number): Socket | undefined {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  for (const line of read(path).split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    const [, local = '', , state, , , , uid = '', , inode = ''] = fields;
    if (state === LISTEN && local.endsWith(`:${hex}`)) return { uid, inode };
  }
  return undefined;
}

/** Describes the process that has a socket open; undefined if this program may not inspect it. */
function describeProcess(proc: string, inode: string): string | undefined {
  for (const pid of list(proc).filter((name) => /^\d+$/.test(name))) {
    const folder = join(proc, pid, 'fd');
    if (list(folder).some((fd) => readLinkTarget(join(folder, fd)) === `socket:[${inode}]`)) {
      return `${read(join(proc, pid, 'comm')).trim()} (process ${pid})`;
    }
  }
  return undefined;
}

/**
 * Returns the vsock ports on which programs of this machine listen, as far as ss (package iproute) lists
 * them.
 */
export function listVsockHolders(env: Environment): { port: number; holder: string }[] {
  if (!find(env, 'ss')) return [];
  const { status, stdout } = run(env, 'ss', ['--no-header', '--listening', '--processes', '--vsock']);
  if (status !== 0) return [];
  return stdout.split('\n').flatMap((line) => {
    // The first address is the local address. The columns before it depend on the version of ss.
    const port = /:(\d+)\s/.exec(line)?.[1];
    if (port === undefined) return [];
    const [, name, pid] = /users:\(\("([^"]+)",pid=(\d+)/.exec(line) ?? [];
    const holder = name === undefined ? 'a program of another user' : `${name} (process ${pid})`;
    return [{ port: Number(port), holder }];
  });
}

/** Reads a file; returns an empty string if it no longer exists or may not be read. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function readLinkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
