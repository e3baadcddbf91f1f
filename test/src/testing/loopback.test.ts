/** Development servers answer only programs and pages of this machine, and use a bounded amount of memory. */
import { globSync, readFileSync } from 'node:fs';
import { request, type Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createFaucet } from '../../../src/devnet/faucet.ts';
import { LoopbackNode } from '../../../src/devnet/node.ts';
import { listenOnLoopback } from '../../../src/testing/fakes.ts';
import { startDevelopmentIssuer } from '../../../src/testing/issuer.ts';
import { isLoopbackOrigin, LOOPBACK_ORIGINS, originsOnLoopback } from '../../../src/testing/loopback.ts';
import { startServer } from '../../../src/testing/start_server.ts';
import { DEV_API_KEY, startFakeWeatherApi } from '../../../src/testing/weather_api.ts';
import { createChangingProxy, createReplayingProxy } from '../../../src/toolchain/dev/play/broken.ts';
import { createDappServer } from '../../../src/toolchain/dev/play/dapp_server.ts';
import { createFakeProver, listen, startProvider } from '../../../src/toolchain/dev/wallet/servers.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const DAPP = {
  folder: `${ROOT}examples/dapp/public`,
  settings: () => ({}),
  enclaveUrl: '',
  counterparts: { changed: '', replayed: '', other_image: '', unregistered: '' },
};

test.each([
  ['http://127.0.0.1:4170', true],
  ['http://localhost', true],
  ['http://[::1]:5173', true],
  ['https://localhost:4170', false],
  ['http://127.0.0.10:4170', false],
  ['http://localhost.wallet.example', false],
  ['http://wallet.example/http://localhost', false],
  ['null', false],
  ['', false],
])('%j is an origin of this machine: %s', (origin, isLocal) => {
  expect(isLoopbackOrigin(origin)).toBe(isLocal);
});

/** Sends headers unchanged, which fetch does not do. */
async function ask(url: string, headers: Record<string, string>, method = 'GET') {
  const { hostname, port, pathname } = new URL(url);
  return await new Promise<{ status: number | undefined; allowed: unknown }>((resolve, reject) => {
    const clientRequest = request({ hostname, port, path: pathname, headers, method }, (response) => {
      response.resume();
      resolve({ status: response.statusCode, allowed: response.headers['access-control-allow-origin'] });
    });
    clientRequest.on('error', reject).end();
  });
}

async function serve(server: Server): Promise<string> {
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return await listen(server);
}

async function startNode(): Promise<string> {
  const node = await LoopbackNode.start(new Uint8Array());
  onTestFinished(() => node.close());
  node.servesPages = true;
  return node.url;
}

/** Closes a server after the test. @returns its URL */
async function closeAfterTest({ origin, close }: { readonly origin: string; close(): Promise<void> }) {
  onTestFinished(close);
  return origin;
}

/** Development servers by name. Each function starts the server and returns its URL. */
const SERVERS: readonly [string, () => Promise<string>][] = [
  ['the Sui node', startNode],
  ['the faucet', async () => await serve(createFaucet(() => '0x1'))],
  ['the fake prover', async () => await serve(createFakeProver(() => false))],
  [
    'the OpenID provider',
    async () => {
      const { server, issuer } = await startProvider();
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      return issuer;
    },
  ],
  [
    'the issuer of make prover',
    async () => {
      const { issuer: origin, close } = await startDevelopmentIssuer();
      return await closeAfterTest({ origin, close });
    },
  ],
  ['the weather API', async () => await closeAfterTest(await startFakeWeatherApi())],
  [
    "an author's fake",
    async () => await closeAfterTest(await listenOnLoopback((_request, response) => void response.end())),
  ],
  ['the dapp of play', async () => await serve(createDappServer(DAPP))],
  [
    'a host that changes answers',
    async () => await serve(createChangingProxy(await closeAfterTest(await startFakeWeatherApi()))),
  ],
  [
    'a host that repeats answers',
    async () => await serve(createReplayingProxy(await closeAfterTest(await startFakeWeatherApi()))),
  ],
];

describe.each(SERVERS)('%s', (_, start) => {
  test('answers programs and pages of this machine, and refuses all others', async () => {
    const url = await start();
    const { host } = new URL(url);
    const foreignRequests = [
      { host: 'attacker.example' },
      { host: `127.0.0.1.attacker.example:${new URL(url).port}` },
      { host: '0.0.0.0' },
      { host: 'attacker.example', origin: 'http://attacker.example' },
      { host, origin: 'https://attacker.example' },
      { host, origin: 'https://localhost' },
      { host, origin: 'null' },
    ];
    for (const headers of foreignRequests) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        expect([headers, method, await ask(url, headers, method)]).toEqual([
          headers,
          method,
          { status: 403, allowed: undefined },
        ]);
      }
    }
    for (const headers of [{ host }, { host: 'localhost' }, { host, origin: 'http://localhost:5173' }]) {
      expect((await ask(url, headers)).status).not.toBe(403);
    }
  });
});

test.each(SERVERS.slice(0, 3))(
  '%s lets a page of this machine read its answers, and allows only the origin of that page',
  async (_, start) => {
    const [url, origin] = [await start(), 'http://localhost:5173'];
    expect(await ask(url, { origin }, 'OPTIONS')).toEqual({ status: 204, allowed: origin });
    expect((await ask(url, { origin })).allowed).toBe(origin);
    expect((await ask(url, {}, 'OPTIONS')).allowed).toBeUndefined();
  },
);

describe('a server for production, on loopback', () => {
  async function start(corsOrigins: ReturnType<typeof originsOnLoopback>) {
    const { readServerConfig } = await import('../../../src/server/config.ts');
    const config = { ...readServerConfig({ APP: 'weather', PORT: '0' }), corsOrigins };
    return (await startServer({ config })).url;
  }

  test('answers only programs and pages of this machine', async () => {
    const url = await start(LOOPBACK_ORIGINS);
    const { host } = new URL(url);
    for (const headers of [{ host: 'attacker.example' }, { host, origin: 'https://attacker.example' }]) {
      expect(await ask(url, headers)).toEqual({ status: 400, allowed: undefined });
    }
    expect(await ask(url, { host })).toEqual({ status: 200, allowed: undefined });
    const origin = 'http://localhost:5173';
    expect(await ask(url, { host, origin })).toEqual({ status: 200, allowed: origin });
  });

  test('also answers pages that CORS_ORIGINS names, and lets only these read its answers', async () => {
    const url = await start(originsOnLoopback(['https://wallet.example'], true));
    const { host } = new URL(url);
    const answers = await Promise.all(
      ['https://wallet.example', 'http://localhost:5173', 'https://attacker.example'].map((origin) =>
        ask(url, { host, origin }),
      ),
    );
    expect(answers).toEqual([
      { status: 200, allowed: 'https://wallet.example' },
      { status: 200, allowed: undefined },
      { status: 400, allowed: undefined },
    ]);
    expect(await ask(url, { host: 'attacker.example' })).toMatchObject({ status: 400 });
  });

  test('answers every page if the developer has set CORS_ORIGINS to *', () => {
    expect(originsOnLoopback('*', true)).toBe('*');
    expect(originsOnLoopback('*', false)).toBe(LOOPBACK_ORIGINS);
    expect(originsOnLoopback([], true)).toMatchObject({ length: 0 });
  });
});

test('a fake also answers requests for the host that it imitates, since a proxy forwards them', async () => {
  const fake = await startFakeWeatherApi();
  onTestFinished(fake.close);
  const statuses = ['api.weatherapi.com', 'www.googleapis.com'].map(
    async (host) => (await ask(fake.origin, { host })).status,
  );
  expect(await Promise.all(statuses)).toEqual([404, 403]);
});

test('all development servers use the same function to listen', () => {
  const files = globSync(['src/testing/**/*.ts', 'src/toolchain/dev/**/*.ts'], { cwd: ROOT });
  const listening = files.filter((file) => /\.listen\(/.test(readFileSync(`${ROOT}${file}`, 'utf8')));
  // oidc_issuer.ts is only for tests, and ports.ts only finds out which ports are free.
  expect(listening.sort()).toEqual([
    'src/testing/loopback.ts',
    'src/testing/oidc_issuer.ts',
    'src/toolchain/dev/wallet/ports.ts',
  ]);
});

describe('a body', () => {
  /**
   * Sends pieces until the server ends the connection, or the limit is reached. @returns the number of bytes
   * sent, and the status of the answer
   */
  async function flood(url: string, headers: Record<string, string>, limit = 64 * 1024 ** 2) {
    const piece = Buffer.alloc(65_536);
    return await new Promise<{ sentBytes: number; status: number | undefined }>((resolve) => {
      let sentBytes = 0;
      let status: number | undefined;
      const upload = request(url, { method: 'POST', headers }, (response) => {
        status = response.statusCode;
        response.resume();
      });
      const write = () => {
        while (sentBytes < limit && !upload.destroyed) {
          sentBytes += piece.length;
          if (!upload.write(piece)) return;
        }
        if (sentBytes >= limit) upload.destroy();
      };
      upload.on('drain', write);
      upload.on('error', () => {});
      upload.on('close', () => resolve({ sentBytes, status }));
      write();
    });
  }
  const GRPC = { 'content-type': 'application/grpc-web+proto' };

  test.each<[string, () => Promise<string>, Record<string, string>]>([
    ['the Sui node', async () => `${await startNode()}/sui.rpc.v2.LedgerService/GetEpoch`, GRPC],
    ['the faucet', async () => `${await serve(createFaucet(() => '0x1'))}/v2/gas`, {}],
    ['the fake prover', async () => await serve(createFakeProver(() => false)), {}],
  ])('that never ends makes %s end the connection', async (_, start, headers) => {
    const { sentBytes, status } = await flood(await start(), headers);
    // Bytes in the sockets' buffers count as sent too.
    expect(sentBytes).toBeLessThan(32 * 1024 ** 2);
    expect([413, undefined]).toContain(status);
  });

  test('that is too large is answered with 413', async () => {
    const url = await serve(createFakeProver(() => false));
    const answer = await fetch(url, { method: 'POST', body: 'x'.repeat(65_537) });
    expect([answer.status, await answer.text()]).toEqual([413, 'The body has more than 65536 bytes.\n']);
  });
});

test('the weather API remembers only the latest places', async () => {
  const api = await startFakeWeatherApi();
  onTestFinished(() => api.close());
  (api.asked as string[]).push(...Array<string>(10_000).fill('earlier'));
  await fetch(`${api.origin}/v1/current.json?key=${DEV_API_KEY}&q=Paris`);
  expect([api.asked.length, api.asked.at(-1)]).toEqual([10_000, 'Paris']);
});

describe('the node remembers', () => {
  test('only calls of its own methods', async () => {
    const node = await LoopbackNode.start(new Uint8Array());
    onTestFinished(() => node.close());
    const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
    await client.core.getCurrentSystemState();
    const headers = { 'content-type': 'application/grpc-web+proto' };
    for (const path of ['x'.repeat(8000), 'constructor', '']) {
      await fetch(`${node.url}/${path}`, { method: 'POST', headers, body: new Uint8Array(5) });
    }
    await fetch(node.url);
    expect(node.calls).toEqual(['GetEpoch']);
  });

  test('only the latest calls', async () => {
    const node = await LoopbackNode.start(new Uint8Array());
    onTestFinished(() => node.close());
    node.calls.push(...Array<string>(10_000).fill('earlier'));
    const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
    for (let call = 0; call < 2; call++) await client.core.getCurrentSystemState();
    expect(node.calls).toHaveLength(10_000);
    expect(node.calls.slice(-3)).toEqual(['earlier', 'GetEpoch', 'GetEpoch']);
  });
});
