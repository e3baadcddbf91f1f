import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createDappServer } from '../../../../../src/toolchain/dev/play/dapp_server.ts';

const COUNTERPARTS = {
  changed: 'http://127.0.0.1:1',
  replayed: 'http://127.0.0.1:2',
  other_image: 'http://127.0.0.1:3',
  unregistered: 'http://127.0.0.1:4',
};
const PAGE = '<!doctype html><html><head><title>x</title></head></html>';

let folder: string;
let port: number;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dapp-'));
  mkdirSync(join(folder, 'dist/assets'), { recursive: true });
  writeFileSync(join(folder, 'dist/index.html'), PAGE);
  writeFileSync(join(folder, 'dist/assets/a.js'), 'a');
  writeFileSync(join(folder, 'secret'), 'secret');
  const server = createDappServer({
    folder: join(folder, 'dist'),
    settings: (url) => ({ enclave: { url } }),
    enclaveUrl: 'http://127.0.0.1:9',
    counterparts: COUNTERPARTS,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as { port: number }).port;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
});

/** Requests a path unchanged, which fetch would normalise. */
async function ask(path: string, method = 'GET'): Promise<{ status: number | undefined; body: string }> {
  return await new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, method }, async (response) => {
      let body = '';
      for await (const chunk of response) body += chunk;
      resolve({ status: response.statusCode, body });
    })
      .on('error', reject)
      .end();
  });
}

test.each(['/', '/broken/changed/', '/broken/replayed/'])(
  'the dapp server adds the script for the row of links to the page at %s, and nowhere else',
  async (path) => {
    expect((await ask(path)).body).toBe(
      PAGE.replace('<head>', '<head>\n<script type="module" src="/play.js"></script>'),
    );
    expect((await ask(`${path}assets/a.js`)).body).toBe('a');
  },
);

test.each([
  ['/settings.json', 'http://127.0.0.1:9'],
  ...Object.entries(COUNTERPARTS).map(([name, url]) => [`/broken/${name}/settings.json`, url]),
])('the dapp server has settings at %s that name the enclave %s', async (path = '', url) => {
  expect(JSON.parse((await ask(path)).body)).toEqual({ enclave: { url } });
});

test('the row has a link to each case, the honest one first', async () => {
  const cases: { path: string }[] = JSON.parse((await ask('/play.json')).body);
  expect(cases.map(({ path }) => path)).toEqual([
    '/',
    ...['changed', 'replayed', 'other_image', 'unregistered'].map((name) => `/broken/${name}/`),
  ]);
});

test.each([
  '/../secret',
  '/%2e%2e/secret',
  '/assets/../../secret',
  '/broken/changed/../../../secret',
  '/broken/elsewhere/',
  '/broken/__proto__/settings.json',
  '/broken/changed',
  '/%',
  '/a\\..\\secret',
])('the dapp server has nothing at %s', async (path) => {
  const { status, body } = await ask(path);
  expect([status, body.includes('secret')]).toEqual([404, false]);
});

test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('the dapp server refuses %s', async (method) => {
  expect((await ask('/', method)).status).toBe(405);
});
