/**
 * Forwards callers from the parent instance to an enclave's server, and passes secrets to the enclave.
 */
import { createServer } from 'node:net';
import { fetchText } from 'sui-enclave/fetch';
import type { Manifest } from 'sui-enclave-server/manifest';
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { METRICS_PORT } from '../image/settings.ts';
import { ParentError } from './errors.ts';
import {
  createConf,
  type ListenLine,
  listConfNames,
  passToEnclave,
  type RelayConf,
  readConf,
  requireRelay,
  writeConf,
} from './relay.ts';

const SERVER_PORT = 3000;
const SECRETS_PORT = 7777;
const READY_MS = 60_000;
const POLL_MS = 100;
/** Maximum size of the server's answer about its state in bytes, far more than any such answer has. */
const MAX_ANSWER_BYTES = 65_536;

/** Address and port of the parent that are forwarded to the server. */
export interface Listen {
  readonly address: string;
  readonly port: number;
}

export interface Exposure {
  readonly cid: number;
  readonly manifest: Manifest;
  readonly listen: Listen;
  /** Port on loopback that is forwarded to the server's metrics. If undefined, the present port stays. */
  readonly metricsPort: number | undefined;
  /** Whether to take the port from another enclave, whose open connections are not cut. */
  readonly takesPort: boolean;
}

/**
 * Returns the relay's settings for an enclave, changed so that this address is forwarded to the enclave's
 * server.
 *
 * @throws ParentError: WRONG_STATE, if the address is forwarded to another enclave; PROGRAM_FAILED, if
 *   another program has the address
 */
export async function createExposedConf(
  env: Environment,
  name: string,
  { cid, manifest, listen, metricsPort, takesPort }: Exposure,
): Promise<RelayConf> {
  const listens = readConf(env, name)?.listens ?? [];
  const lines: ListenLine[] = [{ ...listen, vsockPort: SERVER_PORT }];
  if (metricsPort !== undefined)
    lines.push({ address: '127.0.0.1', port: metricsPort, vsockPort: METRICS_PORT });
  for (const line of lines) {
    const isOurs =
      (takesPort && takePort(env, name, line.port)) || listens.some(({ port }) => port === line.port);
    const owner = listConfNames(env).find(
      (otherName) =>
        otherName !== name && readConf(env, otherName)?.listens.some(({ port }) => port === line.port),
    );
    if (owner !== undefined) {
      throw new ParentError(
        'WRONG_STATE',
        `port ${line.port} is forwarded to the enclave ${owner}: pass --take-port to forward it to ${name} instead`,
      );
    }
    if (!isOurs) await requireFree(line);
  }
  const unchangedLines = listens.filter((old) => !lines.some(({ vsockPort }) => vsockPort === old.vsockPort));
  return createConf(cid, manifest, [...unchangedLines, ...lines]);
}

/** Takes a port from another enclave to which it is forwarded. @returns whether there was such an enclave */
function takePort(env: Environment, name: string, port: number): boolean {
  let isTaken = false;
  for (const otherName of listConfNames(env)) {
    const conf = readConf(env, otherName);
    if (otherName === name || !conf?.listens.some((line) => line.port === port)) continue;
    writeConf(env, otherName, { ...conf, listens: conf.listens.filter((line) => line.port !== port) });
    isTaken = true;
  }
  return isTaken;
}

function requireFree({ address, port }: Listen): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new ParentError(
          'PROGRAM_FAILED',
          `port ${port} of ${address} can't be taken (${error.code}): another program may have it`,
        ),
      ),
    );
    server.listen(port, address, () => server.close(() => resolve()));
  });
}

/** Parses the secrets. @throws ParentError: SECRETS_REFUSED. The message contains no value of a secret */
export function checkSecrets(text: string, { secrets }: Manifest): Readonly<Record<string, string>> {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    // The parser's own message quotes the secrets.
    throw new ParentError('SECRETS_REFUSED', 'the secrets are not JSON');
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new ParentError('SECRETS_REFUSED', 'the secrets are not a JSON object');
  }
  const entries = Object.entries(data);
  const missing = secrets.filter(
    (name) =>
      !entries.some(([option, value]) => option === name && typeof value === 'string' && value !== ''),
  );
  const unknown = entries.map(([name]) => name).filter((name) => !secrets.includes(name));
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
 * Sends secrets to the enclave.
 *
 * @param message sealed secrets, which the relay can't read
 * @throws ParentError: SECRETS_REFUSED, with the server's reason, if the enclave does not accept them
 */
export async function handOver(
  relay: { env: Environment; program: string },
  cid: number,
  message: string,
  listen: Listen,
): Promise<void> {
  const verdict = (await passToEnclave(relay, cid, SECRETS_PORT, message))?.trim();
  if (verdict === 'accepted') return;
  if (verdict === undefined || verdict === '') {
    throw new ParentError(
      'SECRETS_REFUSED',
      'the enclave does not listen for secrets: it is still booting, or has its secrets already',
    );
  }
  const { body } = await askServer(listen, '/readyz');
  const reason = v.safeParse(v.object({ refused: v.string() }), body);
  throw new ParentError(
    'SECRETS_REFUSED',
    `the enclave did not accept the secrets: ${reason.success ? reason.output.refused : verdict}`,
  );
}

/**
 * Waits until the server answers.
 *
 * @returns whether the server has its secrets
 * @throws ParentError: PROGRAM_FAILED, if it does not answer in time, or the relay has ended
 */
export async function waitForServer(env: Environment, listen: Listen): Promise<boolean> {
  const until = performance.now() + READY_MS;
  for (;;) {
    const { status } = await askServer(listen, '/readyz');
    if (status === 200 || status === 503) return status === 200;
    requireRelay(env);
    if (performance.now() > until) {
      throw new ParentError(
        'PROGRAM_FAILED',
        `the server does not answer at ${formatUrl(listen)}, which the relay forwards to it`,
      );
    }
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

/** Returns the answer in JSON at a path of the server; empty while it does not answer. */
export async function askServer(
  listen: Listen,
  path: '/readyz' | '/boot',
): Promise<{ status?: number; body?: unknown }> {
  try {
    const bounds = { timeoutMs: 5000, maxSize: MAX_ANSWER_BYTES };
    const { status, text } = await fetchText(new URL(path, formatUrl(listen)), {}, bounds);
    return { status, body: JSON.parse(text) };
  } catch {
    return {};
  }
}

/** Returns the URL at which the server answers on this machine. */
export function formatUrl({ address, port }: Listen): string {
  return `http://${address === '0.0.0.0' ? '127.0.0.1' : address}:${port}`;
}
