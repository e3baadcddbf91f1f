/**
 * A fake of npm's registry on loopback: it takes what `npm publish` sends, and serves packuments and tarballs
 * of these packages. For all other packages, it redirects npm to another registry, whose answers npm's cache
 * may have.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface Version {
  readonly name: string;
  readonly version: string;
  readonly dist: { readonly tarball: string; readonly integrity: string; readonly shasum: string };
}

/** The document of a package, without what npm doesn't read. */
interface Packument {
  readonly name: string;
  readonly 'dist-tags': Record<string, string>;
  readonly versions: Record<string, Version>;
}

/** The body of `npm publish`: a packument with one version, and its tarball. */
interface PublishBody extends Packument {
  readonly access: string;
  readonly _attachments: Readonly<Record<string, { readonly data: string; readonly length: number }>>;
}

export interface FakeRegistry {
  /** URL with a slash at the end. */
  readonly url: string;
  /** Documents by the names of the packages, in the order of publication. */
  readonly packuments: ReadonlyMap<string, Packument>;
  /** Method and path of each request for a package in `names`. */
  readonly requests: readonly string[];
  close(): void;
}

interface Options {
  /** Names of the packages for which it never redirects to another registry. */
  readonly names: ReadonlySet<string>;
  /** URL of the registry to which it redirects for all other packages. */
  readonly fallback: string;
  /** Token that a publisher must have. */
  readonly token: string;
}

class RegistryError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function startFakeRegistry({ names, fallback, token }: Options): Promise<FakeRegistry> {
  const published = new Map<string, Packument>();
  const tarballs = new Map<string, Buffer>();
  const requests: string[] = [];

  async function publish(name: string, request: IncomingMessage): Promise<void> {
    if (request.headers.authorization !== `Bearer ${token}`) throw new RegistryError(401, 'needs a login');
    const body = (await json(request)) as PublishBody;
    const [version, ...moreVersions] = Object.values(body.versions);
    const [file, attachment] = Object.entries(body._attachments)[0] ?? [];
    const isOneVersion = version !== undefined && attachment !== undefined && moreVersions.length === 0;
    if (!isOneVersion || body.name !== name || version.name !== name || body.access !== 'public') {
      throw new RegistryError(400, 'is not one public version of this package');
    }
    const bytes = Buffer.from(attachment.data, 'base64');
    const digest = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    if (bytes.length !== attachment.length || digest !== version.dist.integrity) {
      throw new RegistryError(400, 'has a tarball of another length or digest than it states');
    }
    const packument = published.get(name);
    if (packument?.versions[version.version] !== undefined) throw new RegistryError(403, 'has this version');
    published.set(name, {
      name,
      // npm's registry makes the first version the latest, whatever its tag.
      'dist-tags': { latest: version.version, ...packument?.['dist-tags'], ...body['dist-tags'] },
      versions: { ...packument?.versions, [version.version]: version },
    });
    tarballs.set(`/${name}/-/${file}`, bytes);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(request.url ?? '');
    const name = path.split('/')[1] ?? '';
    if (!names.has(name)) {
      // The path is passed on unchanged, since npm's cache has the answers by their escaped addresses.
      response.writeHead(307, { location: new URL((request.url ?? '').slice(1), fallback).href }).end();
      return;
    }
    requests.push(`${request.method} ${path}`);
    if (request.method === 'PUT' && path === `/${name}`) {
      await publish(name, request);
      response.writeHead(201).end('{}');
      return;
    }
    const body = path === `/${name}` ? published.get(name) : tarballs.get(path);
    if (request.method !== 'GET' || body === undefined) throw new RegistryError(404, 'is not here');
    if (Buffer.isBuffer(body)) response.setHeader('content-type', 'application/octet-stream').end(body);
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.writeHead(error instanceof RegistryError ? error.status : 500, {
        'content-type': 'application/json',
      });
      response.end(JSON.stringify({ error: String(error.message) }));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    packuments: published,
    requests,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
