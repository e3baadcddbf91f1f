/**
 * A host in place of the parent instance. All traffic passes through it over plain TCP. It records the
 * traffic, and tests can make it lie.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { listForms } from './forms.ts';

export interface ForwardedAnswer {
  readonly path: string;
  status: number;
  type: string;
  /** Headers for pages: those of CORS. */
  headers: Record<string, string>;
  body: Buffer;
}

/** Headers that a page of another origin needs, and the media type. */
const FORWARDED_HEADERS = /^(content-type|origin|access-control-.*)$/;

export class Host {
  /** Everything that passed through, in both directions: paths, headers, bodies. */
  readonly seen: Buffer[] = [];
  /** Requested paths, without their queries. */
  readonly paths: string[] = [];
  /** Methods of the requests. */
  readonly methods: string[] = [];
  /** Changes a request's body. */
  changeRequest: (path: string, body: Buffer) => Buffer | Promise<Buffer> = (_, body) => body;
  /** Changes an answer, except those to a browser's preflights. */
  changeAnswer: (answer: ForwardedAnswer) => ForwardedAnswer | Promise<ForwardedAnswer> = (answer) => answer;
  /** The enclave that it forwards to. */
  target: string;
  readonly #server = createServer(async (request, response) => {
    const url = request.url ?? '/';
    const path = url.split('?')[0] as string;
    const requestBody = await buffer(request);
    this.paths.push(path);
    this.methods.push(request.method ?? '');
    this.#record(url, request.rawHeaders.join('\n'), requestBody);
    const answer = await this.#forward(request, url, requestBody, path);
    const isPreflight = request.method === 'OPTIONS';
    const { status, type, body, headers } = isPreflight ? answer : await this.changeAnswer(answer);
    response.writeHead(status, { ...headers, 'content-type': type }).end(body);
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

  /** Returns whether the text passed through, unchanged, in hexadecimal or in base64. */
  saw(text: string): boolean {
    const record = Buffer.concat(this.seen);
    return listForms(text).some((form) => record.includes(form));
  }

  #record(...parts: readonly (string | Buffer)[]): void {
    this.seen.push(...parts.map((part) => Buffer.from(part as string)));
  }

  async #forward(
    { method = 'GET', headers: requestHeaders }: IncomingMessage,
    url: string,
    requestBody: Buffer,
    path: string,
  ): Promise<ForwardedAnswer> {
    const body = method === 'POST' ? new Uint8Array(await this.changeRequest(path, requestBody)) : null;
    const headers = Object.fromEntries(
      Object.entries(requestHeaders).filter(([name]) => FORWARDED_HEADERS.test(name)),
    ) as Record<string, string>;
    const answer = await fetch(this.target + url, { method, headers, body });
    const received = Buffer.from(await answer.arrayBuffer());
    this.#record(JSON.stringify([...answer.headers]), received);
    return {
      path,
      status: answer.status,
      type: answer.headers.get('content-type') ?? '',
      headers: Object.fromEntries([...answer.headers].filter(([name]) => FORWARDED_HEADERS.test(name))),
      body: received,
    };
  }
}
