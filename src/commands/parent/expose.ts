/** The parent's part of an enclave: forwards to its endpoints and its server, keeps its reports, passes secrets. */
import { join } from 'node:path';
import type { Manifest } from 'sui-enclave-server/manifest';
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { type Forward, forwardsOf } from '../image/settings.ts';
import { ParentError } from './errors.ts';
import { find, run } from './programs.ts';
import { reportsService } from './reports.ts';
import type { Service } from './services.ts';

const SERVER_PORT = 3000;
const SECRETS_PORT = 7777;
/**
 * Time for which socat keeps a connection that one end has closed. The server never answers on a half-closed
 * connection, and has sent everything when it closes its own end: a client that stays must not occupy a process.
 */
const HALF_CLOSED_SECONDS = '2';
/**
 * A process for each connection, of about 0.2 MB. socat allows more connections than the enclave's bridges, and they
 * allow more than the server: only the server refuses excess connections.
 */
const LISTEN = 'reuseaddr,fork,backlog=1024,max-children=4096';
/** Concurrent connections; vsock-proxy's default is 4. */
const PROXY_WORKERS = '512';
const READY_MS = 60_000;

/** The parent's address and port that lead to the server. */
export interface Listen {
  readonly address: string;
  readonly port: number;
}

export function servicesOf(
  env: Environment,
  cid: number,
  manifest: Manifest,
  listen: Listen,
  dir: string,
): Service[] {
  const socat = ['socat', '-t', HALF_CLOSED_SECONDS] as const;
  return [
    ...forwardsOf(manifest).map((forward) => endpointService(env, forward, dir)),
    reportsService(dir),
    {
      name: 'inbound',
      command: [
        ...socat,
        `TCP-LISTEN:${listen.port},bind=${listen.address},${LISTEN}`,
        `VSOCK-CONNECT:${cid}:${SERVER_PORT}`,
      ],
    },
  ];
}

/** Uses AWS's own proxy if it is installed; it requires a list of the hosts. */
function endpointService(env: Environment, { host, port }: Forward, dir: string): Service {
  const name = `endpoint-${host}`;
  if (find(env, 'vsock-proxy')) {
    const options = ['--config', proxyConfigPath(dir), '--num_workers', PROXY_WORKERS];
    return { name, command: ['vsock-proxy', String(port), host, '443', ...options] };
  }
  if (!find(env, 'socat'))
    throw new ParentError('PROGRAM_FAILED', 'neither vsock-proxy nor socat is installed');
  return {
    name,
    command: ['socat', '-t', HALF_CLOSED_SECONDS, `VSOCK-LISTEN:${port},${LISTEN}`, `TCP:${host}:443`],
  };
}

export function proxyConfigPath(dir: string): string {
  return join(dir, 'vsock-proxy.yaml');
}

export function proxyConfig({ endpoints }: Manifest): string {
  return `allowlist:\n${endpoints.map((host) => `- {address: ${host}, port: 443}\n`).join('')}`;
}

/** @throws ParentError: SECRETS_REFUSED. The message names what is missing or not declared, never a value */
export function checkSecrets(text: string, { secrets }: Manifest): Readonly<Record<string, string>> {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    // The parser's own message quotes what it read.
    throw new ParentError('SECRETS_REFUSED', 'the secrets are not JSON');
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new ParentError('SECRETS_REFUSED', 'the secrets are not a JSON object');
  }
  const given = Object.entries(data);
  const missing = secrets.filter(
    (name) => !given.some(([option, value]) => option === name && typeof value === 'string' && value !== ''),
  );
  const unknown = given.map(([name]) => name).filter((name) => !secrets.includes(name));
  if (missing.length > 0 || unknown.length > 0) {
    throw new ParentError(
      'SECRETS_REFUSED',
      [
        ...(missing.length > 0 ? [`missing: ${missing.join(', ')}`] : []),
        ...(unknown.length > 0 ? [`not named in app.yaml: ${unknown.length}`] : []),
      ].join('; '),
    );
  }
  return data as Record<string, string>;
}

/**
 * @param message sealed secrets: the relay reads nothing of them
 * @throws ParentError: SECRETS_REFUSED, with the server's reason, if the enclave does not accept them
 */
export async function handOver(
  env: Environment,
  cid: number,
  message: string,
  listen: Listen,
): Promise<void> {
  const { stdout, status } = run(
    env,
    'socat',
    ['-t', '20', '-', `VSOCK-CONNECT:${cid}:${SECRETS_PORT}`],
    message,
  );
  const verdict = stdout.trim();
  if (verdict === 'accepted') return;
  if (status !== 0 || verdict === '') {
    throw new ParentError(
      'SECRETS_REFUSED',
      'the enclave does not listen for secrets: it is still booting, or has its secrets already',
    );
  }
  const { body } = await readiness(listen);
  const reason = v.safeParse(v.object({ refused: v.string() }), body);
  throw new ParentError(
    'SECRETS_REFUSED',
    `the enclave did not accept the secrets: ${reason.success ? reason.output.refused : verdict}`,
  );
}

/**
 * Waits until the server answers.
 *
 * @returns whether it has its secrets
 * @throws ParentError: PROGRAM_FAILED, if it does not answer in time
 */
export async function isReady(listen: Listen, waitMs = READY_MS): Promise<boolean> {
  const until = performance.now() + waitMs;
  for (;;) {
    const { status } = await readiness(listen);
    if (status === 200 || status === 503) return status === 200;
    if (performance.now() > until) {
      throw new ParentError(
        'PROGRAM_FAILED',
        `the server does not answer at ${urlOf(listen)}, where socat forwards to it`,
      );
    }
    await new Promise((done) => setTimeout(done, 500));
  }
}

/** The answer of /readyz; empty while the server does not answer. */
async function readiness(listen: Listen): Promise<{ status?: number; body?: unknown }> {
  try {
    const response = await fetch(`${urlOf(listen)}/readyz`, { signal: AbortSignal.timeout(5000) });
    return { status: response.status, body: await response.json() };
  } catch {
    return {};
  }
}

/** Where the server answers on this machine. */
export function urlOf({ address, port }: Listen): string {
  return `http://${address === '0.0.0.0' ? '127.0.0.1' : address}:${port}`;
}
