import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../scripts/check/bench/ports.ts';
import { canRun, readAll, serve, startRole, temporaryFolder } from './init.ts';

/** Opens the pipe of the reports role for writing, as the server does. */
function openWriter(path: string) {
  const child = spawn('sh', ['-c', `cat >${path}`], { stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return child.stdin;
}

/** Listens as the parent instance does. @returns the port, and the reports that have arrived */
async function startParent() {
  const received: string[] = [];
  const port = await serve(async (socket) => {
    received.push(await readAll(socket));
    socket.end();
  });
  return { received, port };
}

function fifo(): string {
  const path = join(temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

describe.runIf(canRun)('the reports', () => {
  test('are sent one line each, and end with their writer', async () => {
    const path = fifo();
    const { received, port } = await startParent();
    const role = startRole(['reports', `tcp:127.0.0.1:${port}`], `3<${path}`);
    const pipe = openWriter(path);
    pipe.write('{"event":"boot"}\n');
    await expect.poll(() => received).toEqual(['{"event":"boot"}\n']);
    pipe.end('{"event":"failed"}\n{"cut');
    expect(await role.ended).toBe(0);
    expect(received).toEqual(['{"event":"boot"}\n', '{"event":"failed"}\n']);
  });

  test('are retried until a program listens', async () => {
    const path = fifo();
    const port = await findFreePort();
    startRole(['reports', `tcp:127.0.0.1:${port}`], `3<${path}`);
    openWriter(path).write('{"event":"boot"}\n');
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { createServer } = await import('node:net');
    const server = createServer({ allowHalfOpen: true }).listen(port, '127.0.0.1');
    onTestFinished(() => {
      server.close();
    });
    const [socket] = await once(server, 'connection');
    expect(await readAll(socket)).toBe('{"event":"boot"}\n');
    socket.end();
  });

  test('that arrive together are sent one by one', async () => {
    const path = fifo();
    const { received, port } = await startParent();
    const role = startRole(['reports', `tcp:127.0.0.1:${port}`], `3<${path}`);
    openWriter(path).end('{"event":"boot"}\n{"event":"failed"}\n');
    expect(await role.ended).toBe(0);
    expect(received).toEqual(['{"event":"boot"}\n', '{"event":"failed"}\n']);
  });

  test('that are too long are dropped', async () => {
    const path = fifo();
    const { received, port } = await startParent();
    const role = startRole(['reports', `tcp:127.0.0.1:${port}`], `3<${path}`);
    openWriter(path).end(`${'x'.repeat(5000)}\n{"event":"boot"}\n`);
    expect(await role.ended).toBe(0);
    expect(received).toEqual(['{"event":"boot"}\n']);
  });
});
