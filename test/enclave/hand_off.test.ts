import { execFileSync, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { connect, Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../scripts/check/bench/ports.ts';
import { COMPILE_CACHE } from '../compile_cache.ts';
import { canRun, dial, readAll, startRole, temporaryFolder } from './init.ts';

function fifo(): string {
  const path = join(temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

/** Starts the hand-off with a reader of its pipe. `lines` returns the lines that the reader received. */
async function start() {
  const path = fifo();
  const port = await findFreePort();
  const role = startRole(['hand-off', `tcp:127.0.0.1:${port}`], `3>${path}`);
  // The server, too, reads the pipe by a socket. A file stream would keep the pipe open until the next byte.
  const reader = new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) });
  reader.setEncoding('utf8');
  let text = '';
  reader.on('data', (chunk) => {
    text += chunk;
  });
  const send = async (message: string | Buffer): Promise<string> => {
    const socket = await dial(port);
    socket.end(message);
    return (await readAll(socket)).trim();
  };
  return { port, role, reader, send, lines: () => text.split('\n').slice(0, -1) };
}

describe.runIf(canRun)('the hand-off', () => {
  test('forwards an object as one line, and ends when it is accepted', async () => {
    const { port, role, reader, send, lines } = await start();
    const verdict = send('{\n  "API_KEY": "hunter2"\r\n}\n');
    await expect.poll(lines).toEqual(['{\t  "API_KEY": "hunter2"\t\t}\t']);
    reader.destroy();
    expect(await verdict).toBe('accepted');
    expect(await role.ended).toBe(0);
    expect(role.output()).toBe('');
    await expect(
      new Promise((resolve, reject) => connect(port, '127.0.0.1').on('connect', resolve).on('error', reject)),
    ).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('reports to a sender that its object was refused, and accepts the next', async () => {
    const { reader, send, lines } = await start();
    expect(await send('{"NODE_OPTIONS":"--inspect"}')).toBe('refused');
    const second = send('{"API_KEY":"x"}');
    await expect.poll(lines).toEqual(['{"NODE_OPTIONS":"--inspect"}', '{"API_KEY":"x"}']);
    reader.destroy();
    expect(await second).toBe('accepted');
  });

  test.each([
    ['empty', ''],
    ['too long', Buffer.alloc(64 * 1024, 'x')],
  ])('does not forward a message that is %s', async (_kind, message) => {
    const { send, lines } = await start();
    expect(await send(message)).toBe('empty, too long or too slow');
    expect(lines()).toEqual([]);
  });

  test('drops a sender that is too slow, and serves the next', async () => {
    const { port, reader, send, lines } = await start();
    const slow = await dial(port);
    slow.write('{"API_KEY":');
    expect(await readAll(slow)).toBe('empty, too long or too slow\n');
    const next = send('{"API_KEY":"x"}');
    await expect.poll(lines).toEqual(['{"API_KEY":"x"}']);
    reader.destroy();
    expect(await next).toBe('accepted');
  });

  test('survives a sender that disconnects', async () => {
    const { port, reader, send, lines } = await start();
    const broken = await dial(port);
    broken.write('{"API_');
    broken.resetAndDestroy();
    const next = send('{"API_KEY":"x"}');
    await expect.poll(lines).toEqual(['{"API_KEY":"x"}']);
    reader.destroy();
    expect(await next).toBe('accepted');
  });

  test('passes the secrets to the real server, which accepts exactly the declared names, once', async () => {
    const path = fifo();
    const port = await findFreePort();
    const role = startRole(['hand-off', `tcp:127.0.0.1:${port}`], `3>${path}`);
    const main = fileURLToPath(new URL('../../src/server/main.ts', import.meta.url));
    const reading = openSync(path, 'r');
    const server = spawn(process.execPath, [main], {
      env: { ...COMPILE_CACHE, APP: 'weather', PORT: '0', SECRETS_FD: '3', LOG_LEVEL: 'trace' },
      stdio: ['ignore', 'pipe', 'pipe', reading],
    });
    closeSync(reading);
    onTestFinished(() => {
      server.kill('SIGKILL');
    });
    let output = '';
    for (const stream of [server.stdout, server.stderr]) {
      stream?.on('data', (chunk) => {
        output += chunk;
      });
    }
    await expect.poll(() => output).toMatch(/"url":"/);
    const url = /"url":"([^"]+)"/.exec(output)?.[1] as string;
    const send = async (message: string) => {
      const socket = await dial(port);
      socket.end(message);
      return (await readAll(socket)).trim();
    };
    expect(await send('{"API_KEY":"hunter2","NODE_OPTIONS":"--inspect"}')).toBe('refused');
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({
      missing: ['API_KEY'],
      refused: expect.stringMatching(/^secrets must be one JSON object with exactly these properties/),
    });
    // A line break inside a string is invalid JSON. It must not become another character of a secret.
    for (const lineEnd of ['\n', '\r', '\r\n']) {
      expect(await send(`{"API_KEY":"hunter${lineEnd}2"}`)).toBe('refused');
    }
    expect(await send('{\r\n  "API_KEY": "hunter2"\n}\n')).toBe('accepted');
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(await role.ended).toBe(0);
    expect(output).not.toMatch(/hunter2/);
  });
});
