/** Runs the salt service as a process, in an environment that names a proxy. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

test('the salt service fetches no key through a proxy, even if the environment names one', async () => {
  let proxyRequests = 0;
  const proxy = createServer((_request, response) => {
    proxyRequests++;
    response.writeHead(502).end();
  });
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  const HTTP_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const main = fileURLToPath(new URL('../../src/toolchain/dev/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main], {
    env: { APP: 'salt', PORT: '0', NODE_USE_ENV_PROXY: '1', HTTP_PROXY, http_proxy: HTTP_PROXY },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    proxy.close();
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await expect.poll(() => output).toMatch(/Ctrl-C ends it/);
  const [, url = '', body = ''] = /curl -s (\S+) -H '[^']*' -d '(.*)'/.exec(output) ?? [];
  const headers = { 'content-type': 'application/json' };
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200);
  expect(proxyRequests).toBe(0);
});
