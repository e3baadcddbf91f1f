import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, dial, freePort, initBinary, play, readAll, serve } from './init.ts';

/** A bridge to a server, on TCP at both ends: the boot test has it on vsock. */
async function startBridge(handle: (socket: Socket) => void): Promise<number> {
  const port = await freePort();
  play(['bridge', `tcp:127.0.0.1:${port}`, `tcp:127.0.0.1:${await serve(handle)}`]);
  return port;
}

describe.runIf(canRun)('a bridge', () => {
  beforeAll(() => void initBinary(), 120_000);

  test('carries bytes both ways, and the end of each', async () => {
    const port = await startBridge(async (socket) => {
      socket.end(`got ${await readAll(socket)}`);
    });
    const socket = await dial(port);
    socket.end('a question');
    expect(await readAll(socket)).toBe('got a question');
  });

  test('keeps a half-closed connection for an answer that comes late', async () => {
    const port = await startBridge((socket) => {
      socket.resume();
      socket.on('end', () => {
        let left = 5;
        const timer = setInterval(() => {
          socket.write('late ');
          left -= 1;
          if (left === 0) {
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

  test('keeps a half-closed connection whose target has ended first', async () => {
    const received = Promise.withResolvers<string>();
    const port = await startBridge((socket) => {
      socket.end('bye');
      readAll(socket).then(received.resolve);
    });
    const socket = await dial(port);
    expect(await readAll(socket)).toBe('bye');
    await new Promise((done) => setTimeout(done, 300));
    socket.end('still here');
    expect(await received.promise).toBe('still here');
  });

  test('carries 200 connections at once, each its own', async () => {
    let open = 0;
    let most = 0;
    const all = Promise.withResolvers<void>();
    const port = await startBridge(async (socket) => {
      open += 1;
      most = Math.max(most, open);
      if (open === 200) all.resolve();
      const text = await readAll(socket);
      // None is answered before all are there.
      await all.promise;
      socket.end(text.toUpperCase());
      open -= 1;
    });
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        const socket = await dial(port);
        socket.end(`connection ${at}`);
        return readAll(socket);
      }),
    );
    expect(answers).toEqual(Array.from({ length: 200 }, (_, at) => `CONNECTION ${at}`));
    expect(most).toBe(200);
  });

  test('carries 100 MB in both directions at once, unharmed', async () => {
    const SIZE = 100 * 1024 * 1024;
    const block = randomBytes(1024 * 1024);
    const send = (socket: Socket) => {
      let left = SIZE;
      const more = () => {
        while (left > 0) {
          left -= block.length;
          if (!socket.write(block)) return;
        }
        socket.end();
      };
      socket.on('drain', more);
      more();
    };
    const receive = async (socket: Socket) => {
      const hash = createHash('sha256');
      for await (const chunk of socket) hash.update(chunk);
      return hash.digest('hex');
    };
    const whole = createHash('sha256');
    for (let sent = 0; sent < SIZE; sent += block.length) whole.update(block);
    const expected = whole.digest('hex');
    const there = Promise.withResolvers<string>();
    const port = await startBridge((socket) => {
      send(socket);
      receive(socket).then(there.resolve);
    });
    const socket = await dial(port);
    send(socket);
    expect(await receive(socket)).toBe(expected);
    expect(await there.promise).toBe(expected);
  }, 60_000);

  test('resets a connection whose target refuses', async () => {
    const port = await freePort();
    play(['bridge', `tcp:127.0.0.1:${port}`, `tcp:127.0.0.1:${await freePort()}`]);
    const socket = await dial(port);
    socket.removeAllListeners('error');
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });

  test('passes on a reset, so that a broken stream is not taken for a whole one', async () => {
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

  test('lets those wait that are too many, and serves them when others end', async () => {
    const port = await startBridge((socket) => {
      socket.write('hello');
      socket.on('end', () => socket.end());
      socket.resume();
    });
    const sockets = await Promise.all(Array.from({ length: 530 }, () => dial(port)));
    let greeted = 0;
    for (const socket of sockets) {
      socket.on('data', () => {
        greeted += 1;
      });
    }
    await expect.poll(() => greeted, { timeout: 5000 }).toBe(512);
    await new Promise((done) => setTimeout(done, 300));
    expect(greeted).toBe(512);
    for (const socket of sockets.slice(0, 30)) socket.end();
    await expect.poll(() => greeted, { timeout: 5000 }).toBe(530);
    for (const socket of sockets) socket.destroy();
  }, 30_000);

  test('gives away the places of those who do not end when the target has', async () => {
    const port = await startBridge((socket) => void socket.end('hello'));
    const stubborn = await Promise.all(Array.from({ length: 512 }, () => dial(port)));
    let greeted = 0;
    for (const socket of stubborn) {
      socket.once('data', () => {
        greeted += 1;
      });
    }
    await expect.poll(() => greeted, { timeout: 5000 }).toBe(512);
    expect(await readAll(await dial(port))).toBe('hello');
    for (const socket of stubborn) socket.destroy();
  }, 30_000);
});
