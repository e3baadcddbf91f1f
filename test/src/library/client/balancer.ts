/** A balancer in front of enclaves on loopback, which take requests in turn. */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export class Balancer {
  /** URLs of the enclaves. */
  targets: string[];
  /** Requested paths, without their queries. */
  readonly paths: string[] = [];
  /** Changes a hint on its way; undefined removes it. */
  changeHint: (hint: string | undefined) => string | undefined = (hint) => hint;
  /** Chooses the target of a request. */
  route: (path: string) => string = () => this.targets[this.#turn++ % this.targets.length] as string;
  /** Returns whether to break the connection of a request after forwarding it. */
  breaks: (path: string) => boolean = () => false;
  #turn = 0;
  readonly #server = createServer((request, response) => this.#forward(request, response));

  private constructor(targets: string[]) {
    this.targets = targets;
  }

  static async start(...targets: string[]): Promise<Balancer> {
    const balancer = new Balancer(targets);
    await new Promise<void>((resolve) => {
      balancer.#server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      balancer.#server.closeAllConnections();
      balancer.#server.close();
    });
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  count(path: string): number {
    return this.paths.filter((requestedPath) => requestedPath === path).length;
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const { url = '/', method, headers } = request;
    const path = url.split('?')[0] as string;
    this.paths.push(path);
    const upstream = forward(new URL(url, this.route(path)), { method, headers, agent: false }, (answer) => {
      if (this.breaks(path)) {
        request.socket.destroy();
        return;
      }
      const { 'x-enclave-key': keyHeader, ...otherHeaders } = answer.headers;
      const hint = this.changeHint(keyHeader as string | undefined);
      response.writeHead(answer.statusCode ?? 502, {
        ...otherHeaders,
        ...(hint && { 'x-enclave-key': hint }),
      });
      answer.pipe(response);
    });
    upstream.on('error', () => response.writeHead(502).end());
    request.pipe(upstream);
  }
}
