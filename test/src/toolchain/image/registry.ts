/** A registry of npm packages on loopback. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A version of a package in the registry. */
export interface Registered {
  readonly name: string;
  readonly version: string;
  readonly tarball: Uint8Array;
  /** Integrity of the tarball that the registry reports. Default: its SHA-512. */
  readonly integrity?: string;
  /** Further fields of its manifest. */
  readonly manifest?: object;
}

export interface Registry {
  readonly url: string;
  /** Paths of the requests so far. */
  readonly requests: string[];
  /** Headers of the requests so far. */
  readonly headers: IncomingHttpHeaders[];
}

export const computeIntegrity = (bytes: Uint8Array | string) =>
  `sha512-${createHash('sha512').update(bytes).digest('base64')}`;

/** Starts a registry, which ends with the test. */
export async function startRegistry(packages: readonly Registered[]): Promise<Registry> {
  const requests: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const formatPath = ({ name, version }: Registered) =>
    `/${name}/-/${name.replace(/.*\//, '')}-${version}.tgz`;
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    requests.push(path);
    headers.push(request.headers);
    const tarball = packages.find((registered) => formatPath(registered) === path)?.tarball;
    if (tarball !== undefined) return void response.end(tarball);
    const versions = packages.filter(({ name }) => path === `/${name}`);
    const [first] = versions;
    response.setHeader('content-type', 'application/json');
    if (first === undefined) {
      response.statusCode = 404;
      return void response.end('{}');
    }
    const entries = versions.map((registered) => {
      const { name, version, integrity = computeIntegrity(registered.tarball), manifest } = registered;
      const dist = { tarball: `${url}${formatPath(registered).slice(1)}`, integrity };
      return [version, { name, version, dist, ...manifest }];
    });
    const latest = { latest: first.version };
    response.end(
      JSON.stringify({ name: first.name, 'dist-tags': latest, versions: Object.fromEntries(entries) }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url, requests, headers };
}
