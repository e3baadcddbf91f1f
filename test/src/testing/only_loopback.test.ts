/**
 * Requests that an application sends by itself stay on this machine. Requests of `upstream()` may leave it.
 */
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { connect as connectNet } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import axios from 'axios';
import { expect, onTestFinished, test } from 'vitest';
import { createExchange } from '../../../src/service/exchange.ts';
import { allowOnlyLoopback } from '../../../src/testing/only_loopback.ts';

/** An address that no machine has (RFC 5737), and a name that never resolves (RFC 6761). */
const [ADDRESS, NAME] = ['192.0.2.1', 'feed.invalid'];

function restrictToLoopback(): () => void {
  const endRestriction = allowOnlyLoopback();
  onTestFinished(endRestriction);
  return endRestriction;
}

const readCause = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause === undefined ? message : `${message} ${readCause(cause)}`;
};

test.each<[string, () => Promise<unknown>]>([
  ['fetch', () => fetch(`http://${ADDRESS}/`)],
  ['fetch of a name over https', () => fetch(`https://${NAME}/`)],
  ['axios', () => axios.get(`https://${NAME}/`)],
  ['a socket', () => new Promise((_, reject) => connectNet(80, ADDRESS).on('error', reject))],
  [
    'a TLS socket',
    () => new Promise((_, reject) => connectTls({ host: NAME, port: 443 }).on('error', reject)),
  ],
])('%s fails immediately, with an error that names upstream()', async (_, send) => {
  restrictToLoopback();
  const error = await send().catch((thrown: unknown) => thrown);
  expect(readCause(error)).toMatch(
    /(192\.0\.2\.1|feed\.invalid) leaves this machine.*by upstream\(\) of create/,
  );
});

test('loopback and local sockets work', async () => {
  restrictToLoopback();
  const server = createServer((_, response) => response.end('here')).listen(0, '127.0.0.1');
  const path = join(tmpdir(), `only-loopback-${process.pid}.sock`);
  const local = createServer((_, response) => response.end('here')).listen(path);
  onTestFinished(() => void [server.close(), local.close()]);
  await expect.poll(() => [server.listening, local.listening]).toEqual([true, true]);
  const { port } = server.address() as { port: number };
  for (const host of ['127.0.0.1', 'localhost', '127.0.0.1']) {
    expect(await (await fetch(`http://${host}:${port}/`)).text()).toBe('here');
  }
  expect((await axios.get('http://unix/', { socketPath: path })).data).toBe('here');
});

test('an exchange of upstream() may leave the machine', async () => {
  restrictToLoopback();
  const exchange = createExchange(`http://${NAME}`, undefined, 1);
  const request = { method: 'GET', path: '/', headers: {}, body: undefined, timeoutMs: 2000, maxSize: 10 };
  const error = await exchange(request as never).catch((thrown: unknown) => thrown);
  expect(readCause(error)).not.toContain('leaves this machine');
  expect(error).toMatchObject({ reason: expect.stringMatching(/unreachable|timeout/) });
});

test('the restriction ends when each server that set it has ended, even if one reports its end twice', async () => {
  const [endFirst, endSecond] = [restrictToLoopback(), restrictToLoopback()];
  endFirst();
  endFirst();
  const message = await fetch(`http://${NAME}/`).catch(readCause);
  expect(message).toContain('leaves this machine');
  endSecond();
  expect(await fetch(`http://${NAME}/`).catch(readCause)).not.toContain('leaves this machine');
});

test('the server of an image contains no part of the restriction', () => {
  const files = execFileSync('git', ['grep', '-l', 'only_loopback', '--', 'src/server', 'src/service'], {
    encoding: 'utf8',
  });
  // In exchange.ts, only a comment names the module.
  expect(files.trim()).toBe('src/service/exchange.ts');
});
