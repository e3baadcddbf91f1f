/** A host in the parent instance's place: everything passes it in clear TCP, it keeps a record, and tests make it lie. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

export interface Passing {
  readonly path: string;
  status: number;
  type: string;
  body: Buffer;
}

export class Host {
  /** Everything that went through, both ways: paths, headers, bodies. */
  readonly seen: Buffer[] = [];
  /** The paths that were requested, without their queries. */
  readonly paths: string[] = [];
  /** Changes a request's body. */
  changeRequest: (path: string, body: Buffer) => Buffer | Promise<Buffer> = (_, body) => body;
  /** Changes an answer. */
  changeAnswer: (answer: Passing) => Passing | Promise<Passing> = (answer) => answer;
  /** The enclave that it forwards to. */
  target: string;
  readonly #server = createServer(async (request, response) => {
    const url = request.url ?? '/';
    const path = url.split('?')[0] as string;
    const sent = await buffer(request);
    this.paths.push(path);
    this.#keep(url, request.rawHeaders.join('\n'), sent);
    const answer = await this.#forward(request.method, url, request.headers['content-type'], sent, path);
    const { status, type, body } = await this.changeAnswer(answer);
    response.writeHead(status, { 'content-type': type }).end(body);
  });

  private constructor(target: string) {
    this.target = target;
  }

  static async start(target: string): Promise<Host> {
    const host = new Host(target);
    await new Promise<void>((resolve) => {
      host.#server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      host.#server.closeAllConnections();
      host.#server.close();
    });
    return host;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Whether the bytes went through it, as they are, in hexadecimal or in base64. */
  saw(text: string): boolean {
    const record = Buffer.concat(this.seen);
    const bytes = Buffer.from(text);
    return [text, bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')].some((form) =>
      record.includes(form.replace(/=+$/, '')),
    );
  }

  #keep(...parts: readonly (string | Buffer)[]): void {
    this.seen.push(...parts.map((part) => Buffer.from(part as string)));
  }

  async #forward(
    method = 'GET',
    url: string,
    type: string | undefined,
    sent: Buffer,
    path: string,
  ): Promise<Passing> {
    const body = method === 'POST' ? new Uint8Array(await this.changeRequest(path, sent)) : null;
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
    const answer = await fetch(this.target + url, { method, headers, body });
    const received = Buffer.from(await answer.arrayBuffer());
    this.#keep(JSON.stringify([...answer.headers]), received);
    return { path, status: answer.status, type: answer.headers.get('content-type') ?? '', body: received };
  }
}
