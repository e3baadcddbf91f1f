import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { main } from '../../../../src/cli/main.ts';
import { call } from '../../cli/run.ts';
import {
  FakeBackend,
  fileWith,
  OTHER_KEY,
  OUR_KEY,
  requestFor,
  startTestFrontend,
} from '../../prover/frontend/support.ts';

const NAME = 'prover_smoke';
const JSON_TYPE = { 'content-type': 'application/json' };

interface Checks {
  readonly verdict: string;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly found: string }[];
}

async function smoke(url: string, ...args: string[]) {
  const { status, stdout, stderr } = await call(main, [NAME, url, '--json', ...args]);
  return { status, stderr, stdout, ...(JSON.parse(stdout) as Checks) };
}

const failedIn = ({ checks }: Checks) => checks.filter(({ ok }) => !ok).map(({ name }) => name);

/**
 * Starts a service with a real login. @returns also the request, the issuer's keys, and the key under which
 * proofs verify
 */
async function start(backend?: FakeBackend) {
  const frontend = await startTestFrontend(backend && { backend });
  const request = JSON.stringify(requestFor(await frontend.token()));
  const jwks = fileWith(JSON.stringify({ keys: frontend.issuer.keys }));
  const key = fileWith(JSON.stringify(OUR_KEY.vkey));
  return { ...frontend, request, args: ['--request', fileWith(request), '--jwks', jwks, '--key', key] };
}

/** Starts a server that is not a proving service. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a service without faults passes all checks, and nothing private is printed', async () => {
  const { url, args, backend } = await start();
  const report = await smoke(url, ...args, '--times', '2');
  expect(failedIn(report)).toEqual([]);
  expect(report).toMatchObject({ status: 0, verdict: 'ok' });
  expect(report.checks).toHaveLength(10);
  expect(backend.inputs).toHaveLength(2);
  expect(report.stdout).not.toMatch(/eyJ|"pi_a"/);
  const { stdout } = await call(main, [NAME, url, ...args]);
  expect(stdout.split('\n')[0]).toBe('OK: all 9 checks passed.');
});

test('without a login, the verdict says that no proof was checked', async () => {
  const { url } = await start();
  expect(await smoke(url)).toMatchObject({ status: 3, verdict: 'not fully checked' });
});

describe('a fault is found:', () => {
  test.each([
    ["another network's key", {}, 'not valid'],
    [
      'another issuer',
      { issBase64Details: { value: 'wiaXNzIjoi', indexMod4: 1 } },
      'header or issuer differs',
    ],
    ['another header', { headerBase64: 'e30' }, 'header or issuer differs'],
  ])('%s', async (_, overrides, expectedDetail) => {
    const { args, url: honestUrl, request } = await start();
    // A real front end refuses proofs under another key, so a server without this check replaces it.
    const answer = await (
      await fetch(`${honestUrl}/v1`, { method: 'POST', body: request, headers: JSON_TYPE })
    ).json();
    const { pi_a: a, pi_b: b, pi_c: c } = OTHER_KEY.prove(1n) as Record<string, string>;
    const points = expectedDetail === 'not valid' ? { proofPoints: { a, b, c } } : {};
    const url = await serve((serviceRequest, response) => {
      response.end(
        serviceRequest.url === '/ping' ? 'pong' : JSON.stringify({ ...answer, ...points, ...overrides }),
      );
    });
    const report = await smoke(url, ...args);
    expect(report.status).toBe(1);
    expect(failedIn(report)).toContain('a changed token is refused');
    expect(report.checks.at(-1)).toMatchObject({ ok: false, found: expect.stringContaining(expectedDetail) });
  });

  test('a backend that does not answer', async () => {
    const backend = await FakeBackend.start();
    const { url, args } = await start(backend);
    backend.stop();
    const report = await smoke(url, ...args);
    expect(failedIn(report)).toEqual(['a proof verifies']);
    expect(report.checks.at(-1)?.found).toContain('PROVER_BACKEND_UNREACHABLE');
  });

  test('a web server that is not a proving service', async () => {
    const url = await serve((_request, response) => response.end('<html>pong</html>'));
    const report = await smoke(url);
    expect(report).toMatchObject({ status: 1, verdict: 'failed' });
    expect(failedIn(report)).toHaveLength(report.checks.length);
  });

  test('a server that puts the request into its codes, which are not printed', async () => {
    const { args } = await start();
    const url = await serve(async (request, response) => {
      const [, jwt = 'NONE'] = /"jwt":"(.{40})/.exec(await text(request)) ?? [];
      response.writeHead(400).end(JSON.stringify({ code: jwt.toUpperCase().replace(/[^A-Z0-9_]/g, '_') }));
    });
    const { stdout, checks } = await smoke(url, ...args);
    expect(stdout).not.toContain('EYJ');
    expect(checks.at(-2)?.found).toBe('status 400, code unknown');
  });

  test('no server at all, and an endless answer', async () => {
    expect(failedIn(await smoke('http://127.0.0.1:1'))).toContain('GET /ping');
    const url = await serve((_request, response) => response.end('x'.repeat(100_000)));
    expect((await smoke(url)).checks[0]?.found).toBe('the answer is too large');
  });
});

test.each<[string, (args: string[]) => string[], string]>([
  ['http to another machine', () => ['http://prover.example'], 'USAGE'],
  ['a missing request file', () => ['http://127.0.0.1:1', '--request', '/none'], 'CONFIG'],
  ['a missing key file', ([, ...args]) => ['http://127.0.0.1:1', ...args, '--key', '/none'], 'CONFIG'],
])('prover_smoke refuses %s before it sends a request', async (_, createArguments, code) => {
  const { args } = await start();
  const { status, stderr } = await call(main, [NAME, ...createArguments(['', ...args])]);
  expect([status, stderr.split(':')[0]]).toEqual([2, code]);
});
