import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket, Server as TcpServer } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createHttpServer, listen, shutDown } from '../../../../src/service/http/http_server.ts';
import { sendJson } from '../../../../src/service/http/respond.ts';
import { createLog } from '../../../../src/service/log.ts';

const ADDRESS = { host: '127.0.0.1', port: 0, maxConnections: 256 };

function createService(): Server {
  const server = createHttpServer({
    limits: { bodyLimitBytes: 1024, maxConcurrentRequests: 8, maxConnections: 256, requestTimeoutMs: 60_000 },
    log: createLog('silent'),
    upstreamHosts: 0,
    corsOrigins: '*',
    trustedProxies: 0,
    routes: (app) => app.get('/', (_request, response) => sendJson(response, 200, {})),
  });
  onTestFinished(() => shutDown(server, 0));
  return server;
}

async function startService() {
  const server = createService();
  const url = await listen(server, ADDRESS);
  return { server, url, port: Number(new URL(url).port) };
}

function openConnection(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Opens connections, and requests `/` on each. @returns the status lines of the answers */
async function askOnEach(port: number, connections: number): Promise<Set<string>> {
  const sockets = Array.from({ length: connections }, () => openConnection(port));
  const lines = sockets.map(async (socket) => {
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return bytes.toString('latin1').split('\r\n', 1)[0] as string;
  });
  return new Set(await Promise.all(lines));
}

const isRefused = async (port: number) =>
  await new Promise<boolean>((resolve) => {
    const socket = openConnection(port);
    socket.on('connect', () => resolve(false)).on('error', () => resolve(true));
  });

describe('new connections', () => {
  test.runIf(process.platform === 'linux')(
    'are accepted several at a time in a turn of the event loop',
    async () => {
      const { server, port } = await startService();
      let turn = 0;
      let isCounting = true;
      const count = () => {
        turn += 1;
        if (isCounting) setImmediate(count);
      };
      const turns: number[] = [];
      const allAccepted = Promise.withResolvers<void>();
      server.on('connection', () => {
        turns.push(turn);
        if (turns.length === 64) allAccepted.resolve();
      });
      for (let index = 0; index < 64; index += 1) openConnection(port);
      setImmediate(count);
      await allAccepted.promise;
      isCounting = false;
      // The system chooses a socket for each connection by a hash, so some turns accept fewer than others.
      expect(new Set(turns).size).toBeLessThan(32);
    },
  );

  test('are answered whichever socket accepts them', async () => {
    const { port } = await startService();
    expect(await askOnEach(port, 100)).toEqual(new Set(['HTTP/1.1 200 OK']));
  });
});

describe('a port', () => {
  const refusal = (port: number) =>
    `can't listen on HOST 127.0.0.1 and PORT ${port}: EADDRINUSE (another process listens there): set PORT to another port`;

  test('is not shared with another server of this kind', async () => {
    const { port } = await startService();
    await expect(listen(createService(), { ...ADDRESS, port })).rejects.toThrow(refusal(port));
    expect(await askOnEach(port, 32)).toEqual(new Set(['HTTP/1.1 200 OK']));
  });

  test('is not shared with a server of another program', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await expect(listen(createService(), { ...ADDRESS, port })).rejects.toThrow(refusal(port));
  });

  test.runIf(process.platform === 'linux')('is free again if one of its sockets can not listen', async () => {
    const tcpListen = TcpServer.prototype.listen;
    const listening = vi.spyOn(TcpServer.prototype, 'listen').mockImplementation(function (
      this: TcpServer,
      ...parameters: unknown[]
    ) {
      if (listening.mock.calls.length < 3) return Reflect.apply(tcpListen, this, parameters);
      process.nextTick(() => this.emit('error', Object.assign(new Error('full'), { code: 'EMFILE' })));
      return this;
    });
    onTestFinished(() => listening.mockRestore());
    const server = createService();
    await expect(listen(server, ADDRESS)).rejects.toThrow('EMFILE');
    expect(listening.mock.contexts.map((context) => (context as TcpServer).listening)).toEqual([
      false,
      false,
      false,
    ]);
  });

  test('refuses connections after the server has shut down, and can be used again', async () => {
    const { server, port } = await startService();
    await askOnEach(port, 32);
    await shutDown(server, 0);
    expect(await Promise.all(Array.from({ length: 32 }, () => isRefused(port)))).not.toContain(false);
    expect(await listen(createService(), { ...ADDRESS, port })).toBe(`http://127.0.0.1:${port}`);
  });

  test('stays open for requests in flight on all its sockets, until the grace period ends', async () => {
    const { server, port } = await startService();
    const sockets = Array.from({ length: 32 }, () => openConnection(port));
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\n');
    await expect
      .poll(() => new Promise((resolve) => server.getConnections((_, open) => resolve(open))))
      .toBeGreaterThan(0);
    await shutDown(server, 100);
    await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')));
  });
});
