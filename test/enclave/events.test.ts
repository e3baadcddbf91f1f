/** Checks that the stream of events never waits for its receiver, and reports every loss. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { findFreePort } from '../../scripts/check/bench/ports.ts';
import { closed } from '../closed.ts';
import { canRun, type Role, startRole, temporaryFolder } from './init.ts';

const formatLine = (number: number, length = 40) => {
  const start = `{"event":"application","n":${number},"x":"`;
  return `${start}${'x'.repeat(Math.max(0, length - start.length - 3))}"}\n`;
};

/** Starts the role, and opens the writing end of its pipe. */
function start(port: number): { role: Role; write(text: string): void; end(): void } {
  const path = join(temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const role = startRole(['events', `tcp:127.0.0.1:${port}`], `3<${path}`);
  const fd = openSync(path, constants.O_WRONLY);
  return { role, write: (text) => writeSync(fd, text), end: () => closeSync(fd) };
}

/** Starts a receiver. @returns its port, its connections, and the text that each connection received */
async function startReceiver(atPort?: number) {
  const texts: string[] = [];
  const sockets: Socket[] = [];
  const port = atPort ?? (await findFreePort());
  const server = createServer((socket) => {
    const index = texts.push('') - 1;
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      texts[index] = `${texts[index]}${chunk}`;
    });
  });
  onTestFinished(() => {
    server.close();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { port, texts, sockets, text: () => texts.join('') };
}

/** Starts a receiver that reads nothing until the test calls `read`. */
async function startSlowReceiver(): Promise<{ port: number; server: Server; read(): Promise<string> }> {
  const server = createServer({ pauseOnConnect: true });
  const first = once(server, 'connection');
  const port = await findFreePort();
  server.listen(port, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  const read = async () => {
    const [socket] = (await first) as [Socket];
    let text = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.resume();
    await closed(socket);
    return text;
  };
  return { port, server, read };
}

/** Counts the lines that arrived, and the lines that are reported as lost. */
function countEvents(text: string): { arrived: number; lost: number } {
  const lines = text.split('\n').slice(0, -1);
  const losses = lines.flatMap((line) => /^\{"event":"lost","events":(\d+)\}$/.exec(line)?.[1] ?? []);
  return {
    arrived: lines.length - losses.length,
    lost: losses.reduce((sum, count) => sum + Number(count), 0),
  };
}

describe.runIf(canRun)('the events', () => {
  test('arrive in order on one connection, and end with their writer', async () => {
    const { port, texts } = await startReceiver();
    const { role, write, end } = start(port);
    write(formatLine(1) + formatLine(2));
    await expect.poll(() => texts).toEqual([formatLine(1) + formatLine(2)]);
    write(formatLine(3).slice(0, 10));
    write(`${formatLine(3).slice(10)}${formatLine(4)}{"cut`);
    end();
    expect(await role.ended).toBe(0);
    await expect.poll(() => texts).toEqual([formatLine(1) + formatLine(2) + formatLine(3) + formatLine(4)]);
  });

  test('wait for a receiver', async () => {
    const port = await findFreePort();
    const { write } = start(port);
    write(formatLine(1));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const { texts } = await startReceiver(port);
    await expect.poll(() => texts).toEqual([formatLine(1)]);
  });

  test('continue over another connection when the first one breaks, with whole lines', async () => {
    const { port, texts, sockets } = await startReceiver();
    const { write } = start(port);
    write(formatLine(1));
    await expect.poll(() => texts).toEqual([formatLine(1)]);
    sockets[0]?.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    write(formatLine(2));
    await expect.poll(() => texts).toEqual([formatLine(1), formatLine(2)]);
  });

  test('never block their writer when the receiver reads nothing: dropped events are counted', async () => {
    const { port, read } = await startSlowReceiver();
    const { role, write, end } = start(port);
    // The events are 20 MB, more than all buffers on the way. A writer that had to wait would never finish.
    const count = 20_000;
    for (let index = 0; index < count; index += 50) {
      write(Array.from({ length: 50 }, (_, offset) => formatLine(index + offset, 1000)).join(''));
    }
    const reading = read();
    // When the receiver continues to read, the loss is reported without another event.
    end();
    const text = await reading;
    expect(await role.ended).toBe(0);
    const { arrived, lost } = countEvents(text);
    expect(lost).toBeGreaterThan(0);
    expect(arrived + lost).toBe(count);
  });

  test('are dropped and counted without a receiver, in bounded memory', async () => {
    // The sanitizer would otherwise keep freed memory.
    vi.stubEnv('ASAN_OPTIONS', 'quarantine_size_mb=0');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const port = await findFreePort();
    const { role, write } = start(port);
    const kilobytes = () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${role.child.pid}/status`, 'utf8'))?.[1]);
    const batch = Array.from({ length: 60 }, (_, index) => formatLine(index, 1000)).join('');
    for (let index = 0; index < 10; index += 1) write(batch);
    const before = kilobytes();
    for (let index = 0; index < 490; index += 1) write(batch);
    expect(kilobytes() - before).toBeLessThan(4096);
    const { text } = await startReceiver(port);
    const total = () => countEvents(text()).arrived + countEvents(text()).lost;
    await expect.poll(total).toBe(500 * 60);
    expect(countEvents(text()).arrived).toBeLessThan(100);
  });

  test('that are too long, or contain bytes other than printable ASCII, are dropped and counted', async () => {
    const { port, text } = await startReceiver();
    const { write } = start(port);
    write(`${'x'.repeat(1025)}\n`);
    write('{"event":"\x1b[2J"}\n');
    write('{"event":"ä"}\n');
    write(formatLine(1));
    await expect
      .poll(text)
      .toBe(
        `{"event":"lost","events":1}\n{"event":"lost","events":1}\n{"event":"lost","events":1}\n${formatLine(1)}`,
      );
  });

  test('ignore bytes from the receiver', async () => {
    const { port, text, sockets } = await startReceiver();
    const { write } = start(port);
    write(formatLine(1));
    await expect.poll(text).toBe(formatLine(1));
    sockets[0]?.write('x'.repeat(1_000_000));
    write(formatLine(2));
    await expect.poll(text).toBe(formatLine(1) + formatLine(2));
  });

  test('end even if no process receives them', async () => {
    const { role, write, end } = start(await findFreePort());
    write(formatLine(1));
    end();
    expect(await role.ended).toBe(0);
  });
});
