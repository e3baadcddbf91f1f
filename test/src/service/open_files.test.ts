import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openFilesLimit, shareOpenFiles } from '../../../src/service/open_files.ts';
import { COMPILE_CACHE } from '../../compile_cache.ts';

const SRC = fileURLToPath(new URL('../../../src', import.meta.url));

describe('the limit on open files', () => {
  const read = (text: string) => {
    const dir = mkdtempSync(join(tmpdir(), 'limits-'));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, 'limits'), text);
    return openFilesLimit(join(dir, 'limits'));
  };
  /** Formats the limits of a process as Linux does: see proc_pid_limits(5). */
  const formatLimits = (
    soft: string,
    hard: string,
  ) => `Limit                     Soft Limit           Hard Limit           Units     
Max processes             94866                94866                processes 
Max open files            ${soft.padEnd(20)} ${hard.padEnd(20)} files     
Max locked memory         8388608              8388608              bytes     
`;

  test('is the soft limit', () => {
    expect(read(formatLimits('1024', '524288'))).toBe(1024);
    expect(read(formatLimits('1048576', '1048576'))).toBe(1_048_576);
  });

  test('is infinite if the system sets none, or does not report it', () => {
    expect(read(formatLimits('unlimited', 'unlimited'))).toBe(Number.POSITIVE_INFINITY);
    expect(openFilesLimit('/nonexistent/limits')).toBe(Number.POSITIVE_INFINITY);
  });

  test.each([
    [Number.POSITIVE_INFINITY, 3, { connections: Number.POSITIVE_INFINITY, socketsPerHost: 256 }],
    [16_384, 0, { connections: 16_320, socketsPerHost: 0 }],
    [16_384, 1, { connections: 16_064, socketsPerHost: 256 }],
    [16_384, 64, { connections: 8192, socketsPerHost: 127 }],
    [1024, 2, { connections: 480, socketsPerHost: 240 }],
    [256, 1, { connections: 96, socketsPerHost: 96 }],
    [96, 1, { connections: 16, socketsPerHost: 16 }],
    [80, 0, { connections: 16, socketsPerHost: 0 }],
  ])('of %d is shared with the upstreams of %d hosts', (limit, hosts, share) => {
    expect(shareOpenFiles(hosts, limit)).toEqual(share);
    expect(share.connections + hosts * share.socketsPerHost + 64).toBeLessThanOrEqual(limit);
  });

  test.each([
    [16_384, 1, 4, { connections: 16_060, socketsPerHost: 256 }],
    [1024, 2, 8, { connections: 472, socketsPerHost: 240 }],
    [104, 1, 4, { connections: 16, socketsPerHost: 20 }],
  ])(
    'of %d is shared with the upstreams of %d hosts and %d connections of tasks',
    (limit, hosts, reserved, share) => {
      expect(shareOpenFiles(hosts, limit, reserved)).toEqual(share);
      expect(share.connections + hosts * share.socketsPerHost + reserved + 64).toBeLessThanOrEqual(limit);
      expect(() => shareOpenFiles(hosts, 103, 4)).toThrow(/needs 1/);
    },
  );

  test.each([
    [95, 1, 96],
    [79, 0, 80],
    [200, 100, 264],
  ])('of %d is too low for a server of %d hosts', (limit, hosts, requiredFiles) => {
    expect(() => shareOpenFiles(hosts, limit)).toThrow(
      expect.objectContaining({
        code: 'CONFIG',
        message: expect.stringMatching(`RLIMIT_NOFILE .* ${limit} open files, .* needs ${requiredFiles}`),
      }),
    );
  });
});

/** Starts Node in a process that may open this number of files. It ends with the test. */
function startLimited(openFiles: number, args: readonly string[], env: Record<string, string> = {}) {
  const command = [`ulimit -n ${openFiles} && exec "$@"`, 'sh', process.execPath, ...args];
  const child = spawn('sh', ['-c', ...command], {
    env: { ...COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk));
  return { child, printed: () => printed };
}

const halfBody = (path: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n{"payload"`;

/**
 * Servers with two paths: a GET of `getPath` is answered immediately, a POST to `postPath` after its body.
 */
const SERVERS = {
  'the enclave server': {
    entry: 'server/main.ts',
    env: { APP: 'weather', API_KEY: 'x', PORT: '0' },
    args: [],
    getPath: '/livez',
    postPath: '/process_data',
    configured: 2048,
  },
  'the front end of the proving service': {
    entry: 'prover/frontend/main.ts',
    env: { PROVER_URI: 'http://127.0.0.1:9/input' },
    args: ['0'],
    getPath: '/ping',
    postPath: '/v1',
    configured: 1024,
  },
};

describe.runIf(process.platform === 'linux')('a server that may open 256 files', () => {
  test.each(Object.entries(SERVERS))(
    'answers another caller while 400 requests lack half of their bodies: %s',
    async (_caseName, server) => {
      const { printed } = startLimited(256, [join(SRC, server.entry), ...server.args], server.env);
      await expect.poll(printed).toMatch(/"url":"/);
      const [, url = ''] = /"url":"([^"]+)"/.exec(printed()) ?? [];
      const sockets = Array.from({ length: 400 }, () => connect(Number(new URL(url).port), '127.0.0.1'));
      onTestFinished(() => {
        for (const socket of sockets) socket.destroy();
      });
      for (const socket of sockets) {
        socket.on('error', () => {});
        socket.write(halfBody(server.postPath));
      }
      await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => {})));
      for (let times = 0; times < 5; times += 1) {
        const answer = await fetch(url + server.getPath, { headers: { connection: 'close' } });
        expect(answer.status).toBe(200);
        await answer.text();
      }
      const warning = `"level":"warn".*MAX_CONNECTIONS is lowered from ${server.configured} to \\d+: RLIMIT_NOFILE .* 256 `;
      expect(printed()).toMatch(new RegExp(warning));
    },
  );
});

test.runIf(process.platform === 'linux')(
  'a process that may open 96 files uses at most 16 sockets for an upstream',
  async () => {
    let [open, maxOpen] = [0, 0];
    const host = createServer((_request, response) => setTimeout(() => response.end('yes'), 20));
    host.on('connection', (socket) => {
      maxOpen = Math.max(maxOpen, ++open);
      socket.once('close', () => open--);
    });
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void host.close());
    const { port } = host.address() as AddressInfo;
    const program = `
    import { createUpstream } from ${JSON.stringify(join(SRC, 'service/upstream.ts'))};
    const client = createUpstream('http://127.0.0.1:${port}')({ maxSize: 10 });
    const answers = Array.from({ length: 40 }, () => client.get('/', { responseType: 'text' }));
    console.log((await Promise.all(answers)).map(({ data }) => data).join(' '));
    process.exit();`;
    const { child, printed } = startLimited(96, ['--input-type=module', '-e', program]);
    await once(child, 'close');
    expect(printed().trim()).toBe('yes '.repeat(40).trim());
    expect(maxOpen).toBe(16);
  },
);
