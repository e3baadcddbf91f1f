import { connect } from 'node:net';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { FIXTURE_APPS, startServer } from '../../server/support.ts';

/** Secret that occurs anywhere in requests, and must not be printed. */
const MARK = 'hunter2';

const token = fc.constantFrom(
  'a',
  '[',
  ']',
  '@',
  ':',
  '?',
  '#',
  '%',
  '%zz',
  '//',
  '..',
  '*',
  ' ',
  '\\',
  'é',
  MARK,
);
const noise = fc.array(token, { maxLength: 6 }).map((parts) => parts.join(''));
const path = fc.constantFrom(
  '/',
  '/livez',
  '/readyz',
  '/boot',
  '/process_data',
  '/draw',
  '/rules',
  '/nothing',
);
const target = fc.oneof(
  path,
  fc.tuple(path, noise).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('http://', 'https://', 'http:', 'ws://', ''), noise, path)
    .map((parts) => parts.join('')),
  noise,
);
const method = fc.constantFrom(
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'TRACE',
  'PATCH',
  'PRI',
  'get',
  MARK,
  '',
);
const body = fc.constantFrom(
  '',
  '{}',
  '{"payload":{"sides":6}}',
  '{"picked":"7"}',
  `{"${MARK}":1}`,
  '[[[',
  '\0',
);
const header = fc.oneof(
  fc.constantFrom(
    'Host: x',
    'Host: y',
    `Host: ${MARK}`,
    'Content-Type: application/json',
    'Content-Length: 23',
    'Content-Length: 0',
    'Content-Length: -1',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip',
    'Connection: close',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Expect: 100-continue',
    'Expect: x',
    'Origin: null',
    'Access-Control-Request-Method: POST',
    'X-Forwarded-For: 1, [::',
    'Content-Encoding: br',
  ),
  fc.tuple(noise, noise).map(([name, value]) => `${name}: ${value}`),
);
const version = fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/9', '');
const request = fc
  .record({ method, target, version, body, headers: fc.array(header, { maxLength: 6 }), cut: fc.nat(400) })
  .map(({ method, target, version, headers, body, cut }) => {
    const lines = [`${method} ${target} ${version}`, 'Host: x', ...headers];
    const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1');
    return cut < bytes.length / 2 ? bytes.subarray(0, cut) : bytes;
  });

/** Sends bytes, closes its side, and returns everything received until the server closes too. */
function exchange(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes));
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
}

/** Returns whether all received bytes are valid answers: none is 500, and each error is JSON with a code. */
function isAnswered(received: string): boolean {
  if (received === '') return true;
  const [head = '', ...bodyParts] = received
    .replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '')
    .split('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
  if (!(status >= 200 && status !== 500)) return false;
  return status < 400 || bodyParts.join('') === '' || /"code":"[A-Z_]+"/.test(bodyParts.join(''));
}

test('the server answers 20,000 requests of any shape, and neither crashes, nor leaks sockets, nor prints their text', async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(String(warning));
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const { get, url, printed } = await startServer({
    apps: FIXTURE_APPS,
    env: { APP: 'dice', LOG_LEVEL: 'info' },
  });
  const port = Number(new URL(url).port);
  const open = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const openBefore = open();

  const requests = fc.array(request, { minLength: 50, maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(requests, async (all) => {
      for (const received of await Promise.all(all.map((bytes) => exchange(port, bytes)))) {
        expect(received).toSatisfy(isAnswered);
      }
    }),
    { numRuns: 400, endOnFailure: true },
  );

  expect((await get('/rules', { headers: { connection: 'close' } })).status).toBe(200);
  await expect.poll(open).toBeLessThanOrEqual(openBefore);
  expect(printed()).not.toContain(MARK);
  expect(printed()).not.toMatch(/"level":"(warn|error)"/);
  expect(warnings).toEqual([]);
}, 120_000);
