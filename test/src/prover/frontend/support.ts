/** Starts the front end, an issuer and a fake backend on loopback. They stop after the test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CompactSign } from 'jose';
import { onTestFinished } from 'vitest';
import { type FrontendConfig, readFrontendConfig } from '../../../../src/prover/frontend/config.ts';
import { type Keys, readKeys } from '../../../../src/prover/frontend/keys.ts';
import { startFrontend } from '../../../../src/prover/frontend/server.ts';
import { createLog } from '../../../../src/service/log.ts';
import { CLIENT_ID, GOOGLE, Issuer } from '../../../../src/testing/oidc_issuer.ts';
import { EPHEMERAL_KEY, MAX_EPOCH, NONCE, RANDOMNESS, SALT } from '../support.ts';
import { createSimulatedKey, type SimulatedKey } from './simulator.ts';

export { CLIENT_ID, GOOGLE, Issuer };

export const OUR_KEY = createSimulatedKey(1n);
export const OTHER_KEY = createSimulatedKey(2n);

/** Writes a file with this content, which is deleted after the test. */
export function fileWith(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-frontend-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file.json');
  writeFileSync(path, content);
  return path;
}

let keys: Keys | undefined;

/** Reads `OUR_KEY` like the setting VERIFYING_KEY, but only once for all tests, since it takes a pairing. */
function ourKeys(): Keys {
  keys ??= readKeys(fileWith(JSON.stringify(OUR_KEY.vkey)), true);
  return keys;
}

type ProveHandler = (
  request: { readonly input: Record<string, string> },
  response: ServerResponse,
) => unknown;

/** Fake of the backend, which answers with simulated proofs over HTTP. */
export class FakeBackend {
  readonly inputs: Record<string, string>[] = [];
  /**
   * Network in `/healthz`. If it is undefined, the answer is plain text, like another kind of backend's.
   */
  network: string | undefined = 'development';
  /** HTTP status of `/healthz`; without a network, 404 instead of 200. */
  healthStatus = 200;
  healthRequests = 0;
  prove: ProveHandler;
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  private constructor(key: SimulatedKey) {
    this.prove = ({ input }, response) =>
      response.end(JSON.stringify(key.prove(BigInt(input['all_inputs_hash'] ?? ''))));
  }

  static async start(key = OUR_KEY): Promise<FakeBackend> {
    const backend = new FakeBackend(key);
    await new Promise<void>((resolve) => {
      backend.#server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => backend.stop());
    return backend;
  }

  get uri(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/input`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET' && request.url === '/healthz') {
      this.healthRequests++;
      if (this.network === undefined) {
        return void response
          .writeHead(this.healthStatus === 200 ? 404 : this.healthStatus)
          .end('another kind');
      }
      response.writeHead(this.healthStatus);
      return void response.end(JSON.stringify({ status: 'ready', key: { network: this.network } }));
    }
    const input = JSON.parse(await text(request)) as Record<string, string>;
    if (request.method !== 'POST' || request.url !== '/input') return void response.writeHead(404).end();
    this.inputs.push(input);
    this.prove({ input }, response);
  }
}

export interface FrontendAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

export interface TestFrontend {
  readonly url: string;
  readonly backend: FakeBackend;
  readonly issuer: Issuer;
  readonly metricsUrl: string | undefined;
  /** Returns everything logged so far, as it was printed. */
  printed(): string;
  post(body: unknown, init?: RequestInit): Promise<FrontendAnswer>;
  /** Asks for a proof of a token with these claims. */
  ask(claims?: object, changes?: object, header?: Record<string, unknown>): Promise<FrontendAnswer>;
  token(claims?: object, header?: Record<string, unknown>): Promise<string>;
}

export async function startTestFrontend({
  backend,
  issuer,
  configure = (config) => config,
  ...env
}: {
  backend?: FakeBackend;
  issuer?: Issuer;
  configure?: (config: FrontendConfig) => FrontendConfig;
  [name: string]: unknown;
} = {}): Promise<TestFrontend> {
  backend ??= await FakeBackend.start();
  issuer ??= await Issuer.start();
  const config = readFrontendConfig({
    PROVER_PORT: '0',
    PROVER_URI: backend.uri,
    // This key is replaced below, unless a test names one.
    VERIFYING_KEY: 'main',
    ALLOW_INSECURE_DEV_KEY: '1',
    LOG_LEVEL: 'trace',
    DEBUG: '*',
    CLIENTS: JSON.stringify([{ issuer: GOOGLE, client_id: CLIENT_ID }]),
    ...(env as Record<string, string>),
  });
  let printed = '';
  const log = createLog(config.logLevel, {
    write(line) {
      printed += line;
    },
  });
  const { origin } = issuer;
  const frontend = await startFrontend({
    config: configure(env['VERIFYING_KEY'] === undefined ? { ...config, keys: ourKeys() } : config),
    log,
    origins: { 'www.googleapis.com': origin, 'id.example': origin },
  });
  onTestFinished(() => frontend.close());
  const post = async (body: unknown, init: RequestInit = {}): Promise<FrontendAnswer> => {
    const { status, headers, ...response } = await send(`${frontend.url}/v1`, body, init);
    return { status, headers, body: response.body };
  };
  const token = (claims: object = {}, header: Record<string, unknown> = {}) =>
    (issuer as Issuer).token({ nonce: NONCE, ...claims }, { header });
  return {
    url: frontend.url,
    metricsUrl: frontend.metricsUrl,
    backend,
    issuer,
    printed: () => printed,
    post,
    token,
    ask: async (claims, changes, header) => await post(requestFor(await token(claims, header), changes)),
  };
}

async function send(url: string, body: unknown, init: RequestInit): Promise<FrontendAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });
  const { status, headers } = response;
  return { status, headers, body: JSON.parse((await response.text()) || 'null') };
}

/** Makes a request as a wallet does. */
export function requestFor(jwt: string, changes: object = {}): Record<string, unknown> {
  return {
    jwt,
    extendedEphemeralPublicKey: String(EPHEMERAL_KEY),
    maxEpoch: String(MAX_EPOCH),
    jwtRandomness: RANDOMNESS,
    salt: SALT,
    keyClaimName: 'sub',
    ...changes,
  };
}

/** Makes a token with exactly this payload, signed by the issuer. */
export async function signPayload(issuer: Issuer, payload: string): Promise<string> {
  return await new CompactSign(Buffer.from(payload))
    .setProtectedHeader({ alg: 'RS256', kid: issuer.kid, typ: 'JWT' })
    .sign(issuer.privateKey);
}
