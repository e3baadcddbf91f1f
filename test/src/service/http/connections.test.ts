import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Connection, Connections } from '../../../../src/service/http/connections.ts';
import { closed } from '../../../closed.ts';
import { FIXTURE_APPS, sleep, startServer } from '../../server/support.ts';
import { postRequest } from '../flood.ts';

/** Minimum of the setting for connections. */
const MAX = 16;

const dice = (env: Record<string, string> = {}) =>
  startServer({ apps: FIXTURE_APPS, env: { APP: 'dice', MAX_CONNECTIONS: String(MAX), ...env } });

interface Client {
  readonly socket: Socket;
  received: string;
}

/** The server's sockets of the connections since the last call of `open`, by the client's port. */
const serverSockets = new Map<number | undefined, Socket>();
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket };
  serverSockets.set(socket.remotePort, socket);
});

/** Opens a connection, sends these bytes, and waits until the server has read them. */
async function open(url: string, bytes = ''): Promise<Client> {
  serverSockets.clear();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const client = { socket, received: '' };
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    client.received += chunk;
  });
  await once(socket, 'connect');
  if (bytes !== '') socket.write(bytes);
  const hasArrived = () => {
    const { destroyed, bytesRead } = serverSockets.get(socket.localPort) ?? {};
    return destroyed || Number(bytesRead) >= bytes.length;
  };
  while (!hasArrived()) await new Promise(setImmediate);
  return client;
}

const openAll = async (url: string, count: number, bytes?: string) => {
  const clients: Client[] = [];
  for (let index = 0; index < count; index += 1) clients.push(await open(url, bytes));
  return clients;
};

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const HALF_HEAD = 'GET /rules HTTP/1.1\r\nHost:';
const HALF_BODY =
  'POST /process_data HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n{"payload"';
const REST_OF_BODY = ':{"sides":6}}';

const areClosed = (clients: readonly Client[]) => clients.map(({ socket }) => socket.readyState !== 'open');

async function waitUntilClosed({ socket }: Client): Promise<void> {
  if (socket.readyState === 'open') await closed(socket);
}

describe('at the connection limit, a new connection replaces', () => {
  test('the connection that has been idle longest', async () => {
    const { url } = await dice();
    const servedClients = await openAll(url, MAX, get('/rules'));
    await expect.poll(() => servedClients.every(({ received }) => received.endsWith('}}'))).toBe(true);
    // The first connection is now the one that became idle last.
    servedClients[0]?.socket.write(get('/rules'));
    await sleep(50);
    const lateClients = await openAll(url, 2, get('/rules'));
    await waitUntilClosed(servedClients[2] as Client);
    expect(areClosed(servedClients)).toEqual(servedClients.map((_, at) => at === 1 || at === 2));
    await expect
      .poll(() => lateClients.every(({ received }) => received.startsWith('HTTP/1.1 200')))
      .toBe(true);
  });

  test('an idle connection before a connection with incomplete headers or an incomplete body', async () => {
    const { url } = await dice();
    const slow = [await open(url, HALF_HEAD), await open(url, HALF_BODY)];
    const idle = await openAll(url, MAX - 2, get('/rules'));
    await openAll(url, MAX - 2, get('/slow'));
    await waitUntilClosed(idle.at(-1) as Client);
    expect(areClosed(idle)).toEqual(idle.map(() => true));
    expect(areClosed(slow)).toEqual([false, false]);
    slow[1]?.socket.write(REST_OF_BODY);
    slow[0]?.socket.write(' x\r\n\r\n');
    await expect
      .poll(() => slow.map(({ received }) => received.slice(0, 12)))
      .toEqual(slow.map(() => 'HTTP/1.1 200'));
  });

  test('a connection that has sent nothing, oldest first, so that the newest can send its request', async () => {
    const { url } = await dice();
    const silentClients = await openAll(url, MAX + 3);
    await waitUntilClosed(silentClients[2] as Client);
    expect(areClosed(silentClients)).toEqual(silentClients.map((_, at) => at < 3));
    silentClients.at(-1)?.socket.write(get('/rules'));
    await expect.poll(() => silentClients.at(-1)?.received).toMatch(/^HTTP\/1.1 200/);
  });

  test('a connection with an incomplete request, oldest first, and never a connection that is being answered', async () => {
    const { url } = await dice({ MAX_CONCURRENT_REQUESTS: String(MAX) });
    const answered = await openAll(url, MAX - 3, get('/slow'));
    const slow = [await open(url, HALF_BODY), await open(url, HALF_HEAD)];
    // The latest request of this connection is incomplete, but an earlier one is being answered.
    const pipelined = await open(url, get('/slow') + HALF_BODY);
    const lateClients = [await open(url, get('/slow')), await open(url, get('/slow'))];
    await waitUntilClosed(slow[1] as Client);
    expect(areClosed(slow)).toEqual([true, true]);
    const refusedClient = await open(url, get('/rules'));
    await waitUntilClosed(refusedClient);
    const all = [...answered, pipelined, ...lateClients];
    await expect.poll(() => all.every(({ received }) => received.endsWith('{"slow":true}'))).toBe(true);
  });
});

test('at the connection limit, a connection whose next request has arrived is not idle, even if the request is not read yet', async () => {
  const { url } = await dice();
  const servedClients = await openAll(url, MAX, get('/rules'));
  await expect.poll(() => servedClients.every(({ received }) => received.endsWith('}}'))).toBe(true);
  const [first, second] = servedClients as [Client, Client];
  const closing = closed(second.socket);
  const newSocket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void newSocket.destroy());
  first.received = '';
  // The new socket connects in a callback of the same queue, so the server finds the connection and the
  // request in one turn.
  process.nextTick(() => first.socket.write(get('/rules')));
  await closing;
  await expect.poll(() => first.received).toMatch(/^HTTP\/1.1 200/);
  expect(areClosed(servedClients)).toEqual(servedClients.map((client) => client === second));
});

test('of connections that all have complete requests, the newest is closed at the end of the turn', async () => {
  const connections = new Connections(2);
  const sockets = Array.from({ length: 3 }, () => new Socket());
  for (const socket of sockets) {
    connections.addConnection(socket);
    const request = Object.assign(new IncomingMessage(socket), { complete: true });
    const response = new ServerResponse(request);
    connections.addRequest(connections.find(request) as Connection, { request, response });
  }
  await new Promise(setImmediate);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false, true]);
  expect(connections.size).toBe(2);
});

describe('of thousands of requests in one read', () => {
  /**
   * Counts the requests for which Node makes objects. Thousands of objects from a few connections would fill
   * a small heap.
   */
  function countRequests(): () => number {
    let count = 0;
    const onRequest = () => {
      count += 1;
    };
    subscribe('http.server.request.start', onRequest);
    onTestFinished(() => void unsubscribe('http.server.request.start', onRequest));
    return () => count;
  }

  test('only the first eight use memory, and the connection is closed', async () => {
    const { url } = await dice();
    const count = countRequests();
    await waitUntilClosed(await open(url, get('/slow') + get('/rules').repeat(1900)));
    expect(count()).toBe(8);
  });

  test('only one uses memory while more requests wait than connections are allowed', async () => {
    const { url } = await dice();
    const busy = await openAll(url, 2, get('/slow').repeat(8));
    const count = countRequests();
    const flooding = await open(url, get('/slow').repeat(2));
    await waitUntilClosed(flooding);
    expect(count()).toBe(1);
    const honest = await open(url, get('/rules'));
    await expect.poll(() => honest.received).toMatch(/^HTTP\/1.1 200/);
    expect(areClosed(busy)).toEqual([false, false]);
  });
});

describe('a connection is closed', () => {
  test('after its 1,000th answer', async () => {
    const { url } = await dice({ LOG_LEVEL: 'info' });
    const client = await open(url);
    let closing = '';
    for (let times = 1; times <= 1000; times += 1) {
      const answer = once(client.socket, 'data');
      client.socket.write(get('/livez'));
      closing = String((await answer)[0]);
      if (times < 1000) expect(closing).not.toMatch(/connection: close/i);
    }
    expect(closing).toMatch(/connection: close/i);
    await waitUntilClosed(client);
  });

  test('after its next answer when it is 10 minutes old', async () => {
    const { url } = await dice();
    const client = await open(url, get('/livez'));
    await expect.poll(() => client.received).toMatch(/keep-alive/);
    const later = performance.now() + 600_001;
    const now = vi.spyOn(performance, 'now').mockImplementation(() => later);
    onTestFinished(() => now.mockRestore());
    client.socket.write(get('/livez'));
    await waitUntilClosed(client);
    expect(client.received).toMatch(/connection: close.*"live":true\}$/is);
  });
});

// There are twice as many connections as allowed.
test('1,000 connections with half a body do not block an honest caller', async () => {
  const { url } = await dice({ MAX_CONNECTIONS: '512', LOG_LEVEL: 'info' });
  const port = Number(new URL(url).port);
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let count = 1; count <= 1000; count += 1) {
    const socket = connect(port, '127.0.0.1', () => socket.write(HALF_BODY));
    socket.on('error', () => {});
    sockets.push(socket);
    if (count % 20 !== 0) continue;
    // This caller needs a new connection each time, since the server closes idle connections for others.
    const caller = await open(url, postRequest('/process_data', { payload: { sides: 6 } }));
    await expect.poll(() => caller.received).toMatch(/^HTTP\/1.1 200/);
    caller.socket.destroy();
  }
});

test('the shutdown does not wait for a connection that sent nothing, but waits for the answer to a begun request', async () => {
  const { url, close } = await dice();
  const unused = await open(url);
  const busyClient = await open(url, HALF_BODY);
  const closing = close();
  await waitUntilClosed(unused);
  expect(areClosed([busyClient])).toEqual([false]);
  busyClient.socket.write(REST_OF_BODY);
  await closing;
  // The client may read the answer after the server has sent it.
  await waitUntilClosed(busyClient);
  expect(busyClient.received).toMatch(/^HTTP\/1\.1 200 /);
});
