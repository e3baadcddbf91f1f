/**
 * Calls the published library's `getSalt` in a page of headless Chromium, as a bundler packs it. It seals the
 * token to the salt service of `make dev APP=salt ATTEST=emulated`. A host between the page and the service
 * records everything, and forges answers.
 */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { deriveSalt } from '../../../src/apps/salt/derive.ts';
import { start as startFakes } from '../../../src/apps/salt/stand_in.ts';
import { certificatesFromPem, type Image, parsePcrs } from '../../../src/library/attestation/index.ts';
import { decodeJwtPayload } from '../../../src/library/zklogin/index.ts';
import { loadApplication } from '../../../src/server/application/load_application.ts';
import { boot } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/service/log.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import type { Fakes } from '../../../src/testing/fakes.ts';
import { listen } from '../../../src/toolchain/dev/wallet/servers.ts';
import { type ForwardedAnswer, Host } from '../../src/library/client/host.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LIBRARY = `${ROOT}build/e2e/library`;
const HTML = `<!doctype html><title>wallet</title><link rel="icon" href="data:,">
  <script type="module">import { getSalt } from '/index.js'; Object.assign(globalThis, { getSalt });</script>`;

const nsm = new EmulatedNsm();
const IMAGE = parsePcrs(nsm.pcrsFile()) as Image;

let browser: Browser;
let fakes: Fakes;
let pages: Server;
let origin: string;
/** Files of the page's server, by path. */
let files: Map<string, string>;
/** Path of the chunk with the client, which `getSalt` loads when it seals. */
let laterChunk: string;
let token: string;
let salt: string;
let host: Host;
let page: Page;

/** Bundles the library as `make package` compiles it. A bundler splits it into chunks. */
async function bundleLibrary(): Promise<void> {
  rmSync(LIBRARY, { recursive: true, force: true });
  const tsc = `${ROOT}node_modules/typescript/bin/tsc`;
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.lib.json', '--outDir', LIBRARY], { cwd: ROOT });
  const imports = { '#platform_fetch': './platform_fetch.js' };
  writeFileSync(`${LIBRARY}/package.json`, JSON.stringify({ type: 'module', imports }));
  const bundle = await rolldown({
    input: `${LIBRARY}/zklogin/index.js`,
    platform: 'browser',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  files = new Map(output.map((chunk) => [`/${chunk.fileName}`, 'code' in chunk ? chunk.code : '']));
  laterChunk = `/${output[0].dynamicImports[0]}`;
}

/** Starts the salt service with new keys, like a new process. */
async function startSalt(): Promise<string> {
  const apps = new URL('../../../src/apps/', import.meta.url);
  const env = { ...fakes.settings, APP: 'salt', PORT: '0', CORS_ORIGINS: origin };
  const server = await boot({
    env,
    config: readServerConfig(env),
    log: createLog('silent'),
    nsm,
    ...(await loadApplication(apps, 'salt')),
    origins: fakes.origins,
    secrets: fakes.secrets,
  });
  onTestFinished(() => server.close());
  return server.url;
}

beforeAll(async () => {
  await bundleLibrary();
  pages = createServer(({ url = '/' }, response) => {
    const code = files.get(url);
    if (url === '/') response.setHeader('content-type', 'text/html').end(HTML);
    else if (code === undefined) response.writeHead(404).end();
    else response.setHeader('content-type', 'text/javascript').end(code);
  });
  origin = await listen(pages);
  fakes = await startFakes();
  ({ token } = fakes.example.body as { token: string });
  const { iss, aud, sub } = decodeJwtPayload(token) as Record<string, string>;
  const seed = Buffer.from(fakes.secrets['SALT_SEED'] as string, 'hex');
  salt = deriveSalt(seed, iss as string, aud as string, sub as string);
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not start for root; the pages are this project's.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
});

afterAll(async () => {
  await browser?.close();
  pages?.closeAllConnections();
  pages?.close();
  await fakes?.close();
});

beforeEach(async () => {
  host = await Host.start(await startSalt());
  page = await browser.newPage();
  await page.goto(origin);
  onTestFinished(() => page.close());
});

interface Outcome {
  readonly salt?: string;
  readonly code?: string;
  readonly serverCode?: string;
}

/** Calls the page's getSalt. */
async function getSaltInPage({ image = IMAGE, sealed = true } = {}): Promise<Outcome> {
  const roots = certificatesFromPem(nsm.rootPem()).map((root) => [...root]);
  return await page.evaluate(
    async ({ url, token, images, roots }): Promise<Outcome> => {
      const { getSalt } = globalThis as unknown as typeof import('../../../src/library/zklogin/index.ts');
      const trust = images && { policy: { images }, roots: roots.map((root) => Uint8Array.from(root)) };
      try {
        return { salt: await getSalt(url, token, trust ?? {}) };
      } catch (error) {
        const { code, serverCode } = error as { code: string; serverCode?: string };
        return { code, ...(serverCode && { serverCode }) };
      }
    },
    { url: host.url, token, roots, images: sealed ? [image] : undefined },
  );
}

/** Returns the paths of the requests, without those of preflights. */
const requests = () =>
  host.methods.flatMap((method, index) => (method === 'OPTIONS' ? [] : [host.paths[index]]));

describe('a page that seals', () => {
  test('reads the salt, and the host sees no part of token or salt', async () => {
    expect(await getSaltInPage()).toEqual({ salt });
    expect(requests()).toEqual(['/get_attestation', '/sealed']);
    for (const part of [token, ...token.split('.').slice(1), salt]) expect(host.saw(part)).toBe(false);
  });

  test('hides the token and the salt, which the host sees if a page does not seal', async () => {
    expect(await getSaltInPage({ sealed: false })).toEqual({ salt });
    expect([host.saw(token), host.saw(salt)]).toEqual([true, true]);
  });

  test('refuses an enclave with other registers, and sends it nothing', async () => {
    const image = { ...IMAGE, pcr0: 'ab'.repeat(48) };
    expect(await getSaltInPage({ image })).toEqual({ code: 'POLICY_PCRS' });
    expect(requests()).toEqual(['/get_attestation']);
  });

  test.each<[string, Partial<ForwardedAnswer>]>([
    ['a salt', { type: 'application/json', body: Buffer.from('{"salt":"1"}') }],
    [
      'a refusal',
      { type: 'application/json', status: 401, body: Buffer.from('{"code":"SALT_TOKEN_EXPIRED"}') },
    ],
  ])('refuses %s from a host that answers unsealed', async (_, lie) => {
    host.changeAnswer = (answer) => (answer.path === '/sealed' ? { ...answer, ...lie } : answer);
    expect(await getSaltInPage()).toMatchObject({ code: 'CLIENT_UNAUTHENTICATED' });
    expect(host.saw(token)).toBe(false);
  });

  test('refuses a salt that the host passes off as sealed', async () => {
    host.changeAnswer = (answer) =>
      answer.path === '/sealed' ? { ...answer, body: Buffer.from('{"salt":"1"}') } : answer;
    expect(await getSaltInPage()).toEqual({ code: 'CLIENT_SEALED_ANSWER' });
  });

  test('attests the enclave again if the enclave restarts before the request arrives, and reads the salt', async () => {
    const restarted = await startSalt();
    host.changeRequest = (_, body) => {
      host.target = restarted;
      return body;
    };
    expect(await getSaltInPage()).toEqual({ salt });
    expect(requests()).toEqual(['/get_attestation', '/sealed', '/get_attestation', '/sealed']);
    expect(host.saw('SEALED_KEY_UNKNOWN')).toBe(true);
    expect([host.saw(token), host.saw(salt)]).toEqual([false, false]);
  });
});

test('a page whose chunk is missing reports this, sends nothing, and works without a reload once the server has the chunk', async () => {
  const code = files.get(laterChunk) as string;
  files.delete(laterChunk);
  onTestFinished(() => void files.set(laterChunk, code));
  expect(await getSaltInPage()).toEqual({ code: 'ZKLOGIN_LOAD' });
  expect(host.paths).toEqual([]);
  files.set(laterChunk, code);
  expect(await getSaltInPage()).toEqual({ salt });
});
