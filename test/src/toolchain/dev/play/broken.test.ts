/** Hosts that lie. Only a signature or a clock can reveal each lie. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createChangingProxy, createReplayingProxy } from '../../../../../src/toolchain/dev/play/broken.ts';

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const enclave = (listener: RequestListener) => listen(createServer(listener));
const sign = (data: unknown) =>
  JSON.stringify({ response: { intent: 0, timestamp_ms: 1, data }, signature: 'aa' });

test.each([
  [
    { a: 'x', b: 13 },
    { a: 'x', b: 14 },
  ],
  [{ a: 'Oslo' }, { a: 'Oslo!' }],
  [{ a: '18446744073709551614' }, { a: '18446744073709551615' }],
  [{ a: true }, { a: false }],
  [{ a: [1, 2] }, { a: [2, 3] }],
  [{ a: [] }, { a: [0] }],
  [{ a: { b: 1 } }, { a: { b: 2 } }],
])('the changing host changes the answer %j to %j, and keeps the signature', async (data, changed) => {
  const url = await enclave((_, response) => response.setHeader('x-enclave-key', 'bb').end(sign(data)));
  const answer = await fetch(await listen(createChangingProxy(url)), { method: 'POST', body: '{}' });
  expect([await answer.json(), answer.headers.get('x-enclave-key')]).toEqual([
    JSON.parse(sign(changed)),
    'bb',
  ]);
});

test.each([
  '{"attestation":"00"}',
  'not json',
  '',
  '{"signature":"aa"}',
  '{"signature":"aa","response":{"data":null}}',
])('the changing host forwards %j unchanged, with status, method, path and body', async (content) => {
  const requests: string[] = [];
  const url = await enclave(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push(`${request.method} ${request.url} ${body}`);
    response.writeHead(422).end(content);
  });
  const proxy = await listen(createChangingProxy(url));
  const answer = await fetch(`${proxy}/a?b=c`, { method: 'POST', body: 'd' });
  expect([answer.status, await answer.text(), requests]).toEqual([422, content, ['POST /a?b=c d']]);
});

test('the replaying host repeats the first signed answer of an endpoint, and forwards unsigned ones', async () => {
  let count = 0;
  const url = await enclave((request, response) => {
    count++;
    response.end(request.url?.startsWith('/signed') ? sign({ count }) : `${count}`);
  });
  const proxy = await listen(createReplayingProxy(url));
  const ask = async (path: string) => await (await fetch(proxy + path)).text();
  expect([await ask('/get_attestation'), await ask('/get_attestation')]).toEqual(['1', '2']);
  expect([await ask('/signed?a=1'), await ask('/signed?a=2')]).toEqual([
    sign({ count: 3 }),
    sign({ count: 3 }),
  ]);
});

test.each([createChangingProxy, createReplayingProxy])(
  '%o answers 502 without an enclave',
  async (create) => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as { port: number };
    closed.close();
    expect((await fetch(await listen(create(`http://127.0.0.1:${port}`)))).status).toBe(502);
  },
);
