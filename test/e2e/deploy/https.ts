/** Starts Debian's HAProxy with the unchanged files of deploy/https, in front of enclaves on loopback. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as requestHttp } from 'node:http';
import { Agent, type RequestOptions, request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { makeTls } from '../../../src/testing/tls.ts';
import { HAPROXY, type Program, start, stop, until } from './setup.ts';

const path = (name: string) => fileURLToPath(new URL(`../../../deploy/https/${name}`, import.meta.url));
export const RECIPE = path('haproxy.cfg');
/** Path of the shipped list of enclaves. */
export const ENCLAVES = path('enclaves.cfg');
export const HAPROXY_COMMAND = path('haproxy_command');
export const HOST = 'enclaves.test';

/** Name and arguments of each server of the backend, as in enclaves.cfg. */
export type Servers = Readonly<Record<string, string>>;

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: NodeJS.Dict<string | string[]>;
}

export interface Edge {
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly certificate: string;
  /** Certificate of the authority that signed the first certificate, in PEM. */
  readonly ca: string;
  readonly proxy: Program;
  /** Environment variables of haproxy_command. */
  readonly env: Readonly<Record<string, string>>;
  request(path: string, options?: CallOptions): Promise<Answer>;
  /** Sends a command to HAProxy's socket. @returns the text of its answer */
  query(command: string): string;
  stop(): Promise<void>;
}

export interface CallOptions extends RequestOptions {
  readonly body?: string;
}

/**
 * Settings of HAProxy's user. If root starts HAProxy, the recipe's default applies, which is Debian's user.
 */
const RUN_AS: Record<string, string> =
  process.getuid?.() === 0
    ? {}
    : {
        RUN_AS: userInfo().username,
        RUN_AS_GROUP: execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim(),
      };

/**
 * Starts HAProxy, and waits until it answers.
 *
 * @param servers address and options of each server of the backend, by its name. Servers may start later
 */
export async function startEdge(servers: Servers, env: Record<string, string> = {}): Promise<Edge> {
  const folder = mkdtempSync(join(tmpdir(), 'https-'));
  const { ca, cert, key } = makeTls([HOST, 'localhost']);
  const certificate = join(folder, 'certificate.pem');
  writeFileSync(certificate, cert + key, { mode: 0o600 });
  const lines = Object.entries(servers).map(([name, server]) => `  server ${name} ${server}\n`);
  writeFileSync(join(folder, 'enclaves.cfg'), `backend enclaves\n${lines.join('')}`);
  const [httpPort, httpsPort] = [await findFreePort(), await findFreePort()];
  const settings = {
    HTTP: `127.0.0.1:${httpPort}`,
    HTTPS: `127.0.0.1:${httpsPort}`,
    CERTIFICATE: certificate,
    SOCKET: join(folder, 'haproxy.sock'),
    ...RUN_AS,
    ...env,
  };
  const proxy = start(HAPROXY, ['-db', '-f', RECIPE, '-f', join(folder, 'enclaves.cfg')], settings);
  const request = (url: string, { body, ...options }: CallOptions = {}) =>
    send(
      requestHttps,
      { host: '127.0.0.1', port: httpsPort, path: url, servername: HOST, ca, ...options },
      body,
    );
  await until('HAProxy answers', async () => {
    if (proxy.process.exitCode !== null) throw new Error(proxy.output());
    return (await request('/').catch(() => null)) !== null;
  });
  const query = (command: string) =>
    execFileSync('python3', ['-c', QUERY, settings.SOCKET, command], { encoding: 'utf8' });
  return {
    httpPort,
    httpsPort,
    certificate,
    ca,
    proxy,
    request,
    query,
    env: { SOCKET: settings.SOCKET, CERTIFICATE: certificate },
    stop: async () => {
      await stop(proxy);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Starts HAProxy for the current test. */
export async function startEdgeForTest(servers: Servers, env?: Record<string, string>): Promise<Edge> {
  const edge = await startEdge(servers, env);
  onTestFinished(() => edge.stop());
  return edge;
}

/**
 * Returns a fetch whose requests to an edge come from loopback addresses in turn. Each address keeps its
 * connection, and closes it once it is idle, before HAProxy does.
 */
export function fetchAs(addresses: readonly string[], edge: Edge): typeof globalThis.fetch {
  const agent = new Agent({ keepAlive: true, timeout: 10_000 });
  let count = 0;
  return async (resource, init) => {
    const { method, url, headers, body } = new Request(resource, init);
    const { pathname, search } = new URL(url);
    const answer = await edge.request(pathname + search, {
      method,
      headers: Object.fromEntries(headers),
      localAddress: addresses[count++ % addresses.length] ?? '',
      agent,
      ...(body && { body: await text(body) }),
    });
    const fields = Object.entries(answer.headers).map(([name, value]): [string, string] => [
      name,
      `${value}`,
    ]);
    return new Response(answer.body, { status: answer.status, headers: fields });
  };
}

const QUERY = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\\n")
s.shutdown(socket.SHUT_WR)
sys.stdout.write(s.makefile().read())
`;

/** Sends a request, on a new connection if the options have no agent. */
export function send(
  request: typeof requestHttp | typeof requestHttps,
  options: RequestOptions,
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request({ agent: false, ...options }, async (response) => {
      const { statusCode = 0, headers } = response;
      resolve({ status: statusCode, body: await text(response), headers });
    });
    call.on('error', reject).end(body);
  });
}

/**
 * Starts a fake of AWS's load balancer for the current test. As the real one does by default, it appends the
 * address of its caller to X-Forwarded-For, and doesn't verify the certificate of its target.
 *
 * @param target URL
 * @returns the port
 */
export async function startFakeAlb(target: string): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    const claims = [incoming.headers['x-forwarded-for'] ?? []].flat();
    const forwarded = [...claims, incoming.socket.remoteAddress].join(', ');
    const request = target.startsWith('https:') ? requestHttps : requestHttp;
    const { method, headers, url = '/' } = incoming;
    const call = request(new URL(url, target), {
      ...(method && { method }),
      headers: { ...headers, 'x-forwarded-for': forwarded },
      agent: false,
      rejectUnauthorized: false,
    });
    call.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    call.on('error', () => outgoing.writeHead(502).end());
    incoming.pipe(call);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
