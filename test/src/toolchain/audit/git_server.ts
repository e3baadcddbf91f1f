/**
 * Repositories for the tests of audits, written object by object, and `git http-backend` behind https on
 * loopback.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { makeTls } from '../../../../src/testing/tls.ts';

/** Content of a file, or an entry of another kind. */
export type Content = string | Buffer | { readonly mode: string; readonly id: string };
export type Files = Readonly<Record<string, Content>>;

/** A bare repository, whose objects may be invalid. */
export class TestRepository {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
    execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', folder], { env });
    this.configure('uploadpack.allowFilter', 'true');
  }

  configure(name: string, value: string): void {
    execFileSync('git', ['--git-dir', this.folder, 'config', name, value]);
  }

  /** Writes an object with any content. @returns its id */
  object(type: 'blob' | 'tree' | 'commit', content: Uint8Array): string {
    const bytes = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
    const id = createHash('sha1').update(bytes).digest('hex');
    this.put(id, bytes);
    return id;
  }

  /** Writes an object under an id. @param bytes content with the header, whose hash may differ from the id */
  put(id: string, bytes: Uint8Array): void {
    const file = join(this.folder, 'objects', id.slice(0, 2), id.slice(2));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, deflateSync(bytes, { level: 1 }));
  }

  blob(content: string | Buffer): string {
    return this.object('blob', Buffer.from(content));
  }

  /** @param entries mode, name and id of each entry, in git's order */
  tree(entries: readonly (readonly [mode: string, name: string, id: string])[]): string {
    return this.object(
      'tree',
      Buffer.concat(
        entries.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
      ),
    );
  }

  /** Writes the tree of these files. @returns its id */
  writeTree(files: Files): string {
    const folders = new Map<string, Record<string, Content>>();
    const entries: [mode: string, name: string, id: string][] = [];
    for (const [path, content] of Object.entries(files)) {
      const [first = '', ...innerPath] = path.split('/');
      if (innerPath.length > 0) {
        const inside = folders.get(first) ?? {};
        inside[innerPath.join('/')] = content;
        folders.set(first, inside);
      } else if (typeof content === 'string' || Buffer.isBuffer(content)) {
        entries.push(['100644', first, this.blob(content)]);
      } else entries.push([content.mode, first, content.id]);
    }
    for (const [name, inside] of folders) entries.push(['40000', name, this.writeTree(inside)]);
    const key = ([mode, name]: readonly [string, string, string]) => (mode === '40000' ? `${name}/` : name);
    return this.tree(entries.sort((a, b) => Buffer.compare(Buffer.from(key(a)), Buffer.from(key(b)))));
  }

  /** @param branch the branch that then points to the commit, or null for none @returns the commit's id */
  commit(
    tree: string,
    { parent, branch = 'main' }: { parent?: string; branch?: string | null } = {},
  ): string {
    const lines = [
      `tree ${tree}`,
      ...(parent === undefined ? [] : [`parent ${parent}`]),
      'author a <a@a.example> 1700000000 +0000',
      'committer a <a@a.example> 1700000000 +0000',
    ];
    const id = this.object('commit', Buffer.from(`${lines.join('\n')}\n\na commit\n`));
    if (branch !== null) writeFileSync(join(this.folder, 'refs/heads', branch), `${id}\n`);
    return id;
  }

  writeCommit(files: Files, options?: { parent?: string; branch?: string | null }): string {
    return this.commit(this.writeTree(files), options);
  }
}

/** Returns the files of a folder, by their paths. */
export function filesIn(folder: string): Record<string, Buffer> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(folder.length + 1), readFileSync(file)]),
  );
}

/** Serves `git http-backend` behind https. */
export class GitServer {
  readonly #server: Server;
  /** Path of the certificate of the authority that git must trust, for GIT_SSL_CAINFO. */
  readonly authority: string;
  /** Method and path of each request. */
  readonly requests: string[] = [];
  /** Answers a request in place of git, if it returns true. */
  answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;

  private constructor(root: string) {
    const { ca, cert, key } = makeTls(['localhost']);
    this.authority = join(root, 'authority.pem');
    writeFileSync(this.authority, ca);
    this.#server = createServer({ cert, key }, (request, response) => {
      this.requests.push(`${request.method} ${request.url}`);
      if (this.answer?.(request, response) !== true) serve(root, request, response);
    });
  }

  /** @param root the folder with the repositories */
  static async start(root: string): Promise<GitServer> {
    const server = new GitServer(root);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  formatUrl({ folder }: TestRepository): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}/${basename(folder)}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Serves a request by CGI (RFC 3875). */
function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '', 'https://localhost');
  const { headers } = request;
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method,
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      CONTENT_TYPE: headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  request.pipe(child.stdin);
  child.stdin.on('error', () => undefined);
  response.on('close', () => child.kill());
  let head = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    if (response.headersSent) return void response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    for (const line of head.toString('latin1', 0, end).split('\r\n')) {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(line) ?? [];
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(head.subarray(end + 4));
  });
  child.stdout.on('end', () => response.end());
}
