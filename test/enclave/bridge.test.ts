import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { findFreePort } from '../../scripts/check/bench/ports.ts';
import { canRun, dial, type Role, readAll, serve, startRole } from './init.ts';

/**
 * Limits for tests: number of connections, and milliseconds for which a half-closed connection may be idle.
 */
type Limits = readonly [connections: number, endedIdleMs: number];

/** Starts a bridge with TCP at both ends. The boot test uses vsock. */
function runBridge(target: number, port: number, limits?: Limits): Role {
  return startRole([
    'bridge',
    `tcp:127.0.0.1:${port}`,
    `tcp:127.0.0.1:${target}`,
    ...(limits ?? []).map(String),
  ]);
}

async function startBridge(handle: (socket: Socket) => void, limits?: Limits): Promise<number> {
  const port = await findFreePort();
  runBridge(await serve(handle), port, limits);
  return port;
}

/** Counts the open descriptors of a bridge: two for each connection, and fewer than ten others. */
function countDescriptors({ child }: Role): number {
  return readdirSync(`/proc/${child.pid}/fd`).length;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for the end of a connection. @returns all received bytes, or the code of the error */
function readOutcome(socket: Socket): Promise<string> {
  socket.removeAllListeners('error');
  return Promise.race([
    readAll(socket).catch((error) => error.code),
    once(socket, 'error').then(([error]) => error.code),
  ]);
}

describe.runIf(canRun)('a bridge', () => {
  test('forwards bytes and the end of each direction', async () => {
    const port = await startBridge(async (socket) => {
      socket.end(`got ${await readAll(socket)}`);
    });
    const socket = await dial(port);
    socket.end('a question');
    expect(await readAll(socket)).toBe('got a question');
  });

  test('keeps a half-closed connection for a late answer', async () => {
    const port = await startBridge((socket) => {
      socket.resume();
      socket.on('end', () => {
        let remaining = 5;
        const timer = setInterval(() => {
          socket.write('late ');
          remaining -= 1;
          if (remaining === 0) {
            clearInterval(timer);
            socket.end();
          }
        }, 200);
      });
    });
    const socket = await dial(port);
    socket.end('x');
    expect(await readAll(socket)).toBe('late late late late late ');
  });

  test('keeps a half-closed connection whose target has closed first', async () => {
    const received = Promise.withResolvers<string>();
    const port = await startBridge((socket) => {
      socket.end('bye');
      readAll(socket).then(received.resolve);
    });
    const socket = await dial(port);
    expect(await readAll(socket)).toBe('bye');
    await new Promise((resolve) => setTimeout(resolve, 300));
    socket.end('still here');
    expect(await received.promise).toBe('still here');
  });

  test('forwards 200 concurrent connections separately', async () => {
    let open = 0;
    let highest = 0;
    const all = Promise.withResolvers<void>();
    const port = await startBridge(async (socket) => {
      open += 1;
      highest = Math.max(highest, open);
      if (open === 200) all.resolve();
      const text = await readAll(socket);
      // No connection is answered before all are open.
      await all.promise;
      socket.end(text.toUpperCase());
      open -= 1;
    });
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const socket = await dial(port);
        socket.end(`connection ${index}`);
        return readAll(socket);
      }),
    );
    expect(answers).toEqual(Array.from({ length: 200 }, (_, index) => `CONNECTION ${index}`));
    expect(highest).toBe(200);
  });

  test('forwards 16 MB in both directions concurrently, unchanged', async () => {
    const SIZE = 16 * 1024 * 1024;
    const block = randomBytes(1024 * 1024);
    const send = (socket: Socket) => {
      let remaining = SIZE;
      const writeMore = () => {
        while (remaining > 0) {
          remaining -= block.length;
          if (!socket.write(block)) return;
        }
        socket.end();
      };
      socket.on('drain', writeMore);
      writeMore();
    };
    const receive = async (socket: Socket) => {
      const hash = createHash('sha256');
      for await (const chunk of socket) hash.update(chunk);
      return hash.digest('hex');
    };
    const whole = createHash('sha256');
    for (let sent = 0; sent < SIZE; sent += block.length) whole.update(block);
    const expected = whole.digest('hex');
    const received = Promise.withResolvers<string>();
    const port = await startBridge((socket) => {
      send(socket);
      receive(socket).then(received.resolve);
    });
    const socket = await dial(port);
    send(socket);
    expect(await receive(socket)).toBe(expected);
    expect(await received.promise).toBe(expected);
  });

  test('resets a connection whose target refuses', async () => {
    const port = await findFreePort();
    runBridge(await findFreePort(), port);
    const socket = await dial(port);
    socket.removeAllListeners('error');
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });

  test('forwards a reset, so that a broken stream does not look complete', async () => {
    const port = await startBridge((socket) => {
      socket.write('half of the ans');
      setTimeout(() => socket.resetAndDestroy(), 100);
    });
    const socket = await dial(port);
    socket.removeAllListeners('error');
    socket.resume();
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });

  test('allows more connections than the server', async () => {
    let greeted = 0;
    const port = await startBridge((socket) => void socket.write('hello'));
    const sockets = await Promise.all(Array.from({ length: 2100 }, () => dial(port)));
    for (const socket of sockets) {
      socket.once('data', () => {
        greeted += 1;
      });
    }
    await expect.poll(() => greeted).toBe(2100);
    for (const socket of sockets) socket.destroy();
  });

  test('lets the server close connections: silent peers do not block others', async () => {
    // This server behaves like the enclave's: the oldest connection ends when there are too many.
    const open: Socket[] = [];
    const port = await startBridge(
      (socket) => {
        open.push(socket);
        if (open.length > 16) open.shift()?.destroy();
        socket.on('data', () => socket.end('served'));
      },
      [20, 10_000],
    );
    const silent: Socket[] = [];
    for (let round = 0; round < 10; round += 1) {
      silent.push(...(await Promise.all(Array.from({ length: 30 }, () => dial(port)))));
      const honest = await dial(port);
      honest.write('x');
      expect(await readAll(honest)).toBe('served');
    }
    for (const socket of silent) socket.destroy();
  });

  test('replaces connections whose peers do not read an answer that the server has finished', async () => {
    // The answer is larger than the connection's buffers, so its end is queued behind bytes that nobody
    // reads.
    const answer = Buffer.alloc(10 * 1024 * 1024, 'x');
    const port = await startBridge((socket) => void socket.end(answer), [10, 10_000]);
    const stubborn = await Promise.all(Array.from({ length: 10 }, () => dial(port)));
    for (const socket of stubborn) socket.pause();
    await pause(200);
    expect(await readAll(await dial(port))).toHaveLength(answer.length);
    for (const socket of stubborn) socket.destroy();
  });

  test('keeps connections that the server still has open, and rejects new ones instead of hanging', async () => {
    const port = await startBridge(
      (socket) => {
        socket.write('hello');
        socket.on('data', (bytes) => socket.end(bytes));
      },
      [10, 10_000],
    );
    const held = await Promise.all(Array.from({ length: 10 }, () => dial(port)));
    await Promise.all(held.map((socket) => once(socket, 'data')));
    const since = performance.now();
    expect(await readOutcome(await dial(port))).toBe('ECONNRESET');
    expect(performance.now() - since).toBeLessThan(8000);
    // The bridge has waited once, and does not wait again.
    expect(await readOutcome(await dial(port))).toBe('ECONNRESET');
    for (const [index, socket] of held.entries()) {
      socket.write(`still ${index}`);
      expect(await readAll(socket)).toBe(`still ${index}`);
    }
    expect((await once(await dial(port), 'data')).toString()).toBe('hello');
  });

  test('lets a new connection wait briefly for the server to close one', async () => {
    const open: Socket[] = [];
    const port = await startBridge(
      (socket) => {
        open.push(socket);
        socket.write('hello');
      },
      [10, 10_000],
    );
    const held = await Promise.all(Array.from({ length: 10 }, () => dial(port)));
    await Promise.all(held.map((socket) => once(socket, 'data')));
    const late = await dial(port);
    setTimeout(() => open[0]?.destroy(), 100);
    expect((await once(late, 'data')).toString()).toBe('hello');
    for (const socket of [...held, late]) socket.destroy();
  });

  test('is not filled by an upstream that hangs', async () => {
    // Here, the peer is on the server's side. It gives up each request at its deadline.
    const port = await startBridge(
      (socket) => void socket.on('data', (bytes) => bytes.includes('honest') && socket.end('served')),
      [40, 10_000],
    );
    for (let round = 0; round < 20; round += 1) {
      const hung = await Promise.all(Array.from({ length: 16 }, () => dial(port)));
      for (const socket of hung) socket.write('a request');
      await pause(20);
      for (const socket of hung) socket.destroy();
      const honest = await dial(port);
      honest.write('honest');
      expect(await readAll(honest)).toBe('served');
    }
  });

  test.each([
    // This is not an orderly end: a truncated answer must not pass for a complete one.
    ['peer', 'ECONNRESET'],
    ['target', 'hello'],
  ])('closes an idle connection after its %s has closed', async (ended, expectedOutcome) => {
    const port = await findFreePort();
    const received: Promise<string>[] = [];
    const target = await serve((socket) => {
      socket.write('hello');
      if (ended === 'target') socket.end();
      received.push(readAll(socket));
    });
    const role = runBridge(target, port, [100, 1000]);
    const connect = async () => {
      const socket = await dial(port);
      if (ended === 'peer') socket.end('a request');
      return readOutcome(socket);
    };
    const outcomes = Array.from({ length: 10 }, connect);
    await expect.poll(() => countDescriptors(role)).toBeGreaterThan(20);
    await expect.poll(() => countDescriptors(role)).toBeLessThan(10);
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set([expectedOutcome]));
    expect(new Set(await Promise.all(received))).toEqual(new Set([ended === 'peer' ? 'a request' : '']));
  });

  test('is the first process that the kernel kills when memory runs out', async () => {
    const port = await findFreePort();
    const role = runBridge(await serve((socket) => void socket.end('hello')), port);
    expect(await readAll(await dial(port))).toBe('hello');
    expect(readFileSync(`/proc/${role.child.pid}/oom_score_adj`, 'utf8')).toBe('1000\n');
  });
});
