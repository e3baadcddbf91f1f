/**
 * Shares the process's limit on open files (RLIMIT_NOFILE) between a server's connections and its upstreams.
 */
import { readFileSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';
import type { Logger } from './log.ts';

/**
 * Number of open files for everything else: Node itself has 24 open when it is idle, seven more sockets
 * listen on the port, and DNS queries, pipes, files and the NSM need more.
 */
const OTHER_DESCRIPTORS = 64;
const MAX_SOCKETS_PER_HOST = 256;
/** The minimum of MAX_CONNECTIONS. */
export const FEWEST_CONNECTIONS = 16;

/**
 * Reads the limit that applies: the soft limit, which Node raises to the hard limit when it starts. Returns
 * Infinity if there is no limit, or if the file can't be read, as on macOS.
 */
export function openFilesLimit(path = '/proc/self/limits'): number {
  let limits: string;
  try {
    limits = readFileSync(path, 'utf8');
  } catch {
    return Number.POSITIVE_INFINITY;
  }
  const [, soft] = /^Max open files +(\d+) /m.exec(limits) ?? [];
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
}

/**
 * Shares the limit. Upstreams get at most half of it, so that each connection can have a request to an
 * upstream.
 *
 * @param hosts number of hosts to which the server sends requests, each over its own connections
 * @param reserved number of files that tasks may open
 * @throws ConfigError if the limit is too low for this server
 */
export function shareOpenFiles(
  hosts: number,
  limit = openFilesLimit(),
  reserved = 0,
): { readonly connections: number; readonly socketsPerHost: number } {
  const minimumSockets = hosts === 0 ? FEWEST_CONNECTIONS : 2 * Math.max(FEWEST_CONNECTIONS, hosts);
  const requiredFiles = OTHER_DESCRIPTORS + minimumSockets + 2 * reserved;
  if (limit < requiredFiles) {
    throw new ConfigError(
      `RLIMIT_NOFILE (ulimit -n) allows ${limit} open files, and this server needs ${requiredFiles}: raise it`,
    );
  }
  const available = limit - OTHER_DESCRIPTORS;
  const socketsPerHost = hosts === 0 ? 0 : Math.min(MAX_SOCKETS_PER_HOST, Math.floor(available / 2 / hosts));
  return { connections: available - hosts * socketsPerHost - reserved, socketsPerHost };
}

/**
 * Returns `maximum`. If the limit on open files requires it, logs a warning and returns a lower number of
 * connections. At its own maximum, the server closes an idle connection for a new one; at the limit on open
 * files, the system would refuse every new connection.
 *
 * @param reserved number of files that tasks may open
 * @throws ConfigError, as `shareOpenFiles`
 */
export function allowedConnections(maximum: number, hosts: number, log: Logger, reserved = 0): number {
  const limit = openFilesLimit();
  const { connections } = shareOpenFiles(hosts, limit, reserved);
  if (maximum <= connections) return maximum;
  log.warn(
    { max_connections: connections, wanted: maximum, open_files: limit },
    `MAX_CONNECTIONS is lowered from ${maximum} to ${connections}: RLIMIT_NOFILE (ulimit -n) allows ${limit} open files`,
  );
  return connections;
}
