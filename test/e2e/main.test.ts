import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { manifestIn } from '../../src/server/application/load_application.ts';
import { formatManifest } from '../../src/server/application/manifest.ts';
import { bundle } from '../../src/toolchain/image/bundle.ts';

const MAIN = fileURLToPath(new URL('../../src/server/main.ts', import.meta.url));

interface Run {
  readonly child: ChildProcess;
  output(): string;
  ended(): Promise<{ code: number | null; output: string }>;
  /** The URL of the server once it listens. */
  listening(): Promise<string>;
}

/** Runs the server as `npm start` does. Its environment has PATH, PORT, and the variables in `env`. */
function start(env: Record<string, string>): Run {
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env['PATH'] ?? '', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exit = once(child, 'close');
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return {
    child,
    output: () => output,
    ended: async () => ({ code: (await exit)[0] as number | null, output }),
    listening: async () => {
      for (;;) {
        const url = /"url":"([^"]+)"/.exec(output)?.[1];
        if (url) return url;
        if (child.exitCode !== null) throw new Error(output);
        await new Promise((done) => setTimeout(done, 20));
      }
    },
  };
}

describe('npm start', () => {
  test.each([
    [{ APP: '', API_KEY: 'hunter2' }, 'APP is set but empty: give it a value or unset it'],
    [{}, expect.stringMatching(/^API_KEY must be set in the environment/)],
    [{ APP: 'wether' }, 'APP=wether: there is no such application; the applications are: salt, weather'],
    [
      { APP: 'weather' },
      "API_KEY must be set in the environment, or API_KEY_FILE must name a file with it: the application can't answer without it",
    ],
    [{ APP: 'weather', API_KEY: 'hunter2', PORT: 'x' }, 'PORT must be an integer from 0 to 65535'],
    [
      { APP: 'weather', API_KEY: 'hunter2', WEATHER_CACHE_SECONDS: 'x' },
      'WEATHER_CACHE_SECONDS must be an integer from 0 to 3600',
    ],
    [
      { APP: 'weather', API_KEY: 'hunter2', REPORT_FD: '999' },
      'REPORT_FD must be a pipe or a socket that the server was started with',
    ],
    [
      { APP: 'weather', API_KEY: 'hunter2', NSM_REQUIRED: 'true', NSM_DEVICE: '/nonexistent/nsm' },
      expect.stringMatching(/NSM driver is missing/),
    ],
  ])('with %o stops with one line that says what to change', async (env, message) => {
    const { code, output } = await start(env as unknown as Record<string, string>).ended();
    expect(code).toBe(1);
    const [, text, laterLines] = /^sui-enclave: (.*)\n([\s\S]*)$/.exec(output) ?? [];
    expect(text).toEqual(message);
    expect(laterLines).toBe('');
  });

  test('stops when the port is in use', async () => {
    const blocker: Server = createServer();
    await once(blocker.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      blocker.close();
    });
    const { port } = blocker.address() as { port: number };
    const { code, output } = await start({ APP: 'weather', API_KEY: 'x', PORT: String(port) }).ended();
    expect(code).toBe(1);
    expect(output).toBe(
      `sui-enclave: can't listen on HOST 127.0.0.1 and PORT ${port}: EADDRINUSE (another process listens there): set PORT to another port\n`,
    );
  });

  test('serves with real configuration, and never prints the secret', async () => {
    const run = start({ APP: 'weather', API_KEY: 'hunter2', LOG_LEVEL: 'trace' });
    const url = await run.listening();
    expect(await (await fetch(url)).text()).toBe('Pong!');
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    run.child.kill('SIGTERM');
    const { code, output } = await run.ended();
    expect(code).toBe(0);
    expect(output).toMatch(/finishing the requests in flight/);
    expect(output).not.toMatch(/default/);
    expect(output).not.toMatch(/hunter2/);
  });

  test('starts weather with API_KEY alone, and logs that this is the default', async () => {
    const run = start({ API_KEY: 'hunter2' });
    const url = await run.listening();
    expect(await (await fetch(`${url}/boot`)).json()).toMatchObject({ app: 'weather' });
    await expect.poll(run.output).toMatch(/default/);
    const lines = run
      .output()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const expectedLine = {
      level: 'info',
      app: 'weather',
      msg: expect.stringMatching(/^APP is not set: .* default$/),
    };
    expect(lines).toContainEqual(expect.objectContaining(expectedLine));
  });

  test('accepts secrets later, from a pipe', async () => {
    const run = start({ APP: 'weather', SECRETS_FD: '3' });
    const url = await run.listening();
    const pipe = run.child.stdio[3] as NodeJS.WritableStream;
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    pipe.write('{"API_KEY":"hunter2","NODE_OPTIONS":"--inspect"}\n');
    pipe.write('{"API_KEY":"hunter2"}\n');
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
    expect(run.output()).not.toMatch(/hunter2/);
    run.child.kill('SIGTERM');
    expect((await run.ended()).code).toBe(0);
  });

  test('writes its boot report to the pipe of REPORT_FD, or the code of the error that stopped it', async () => {
    const report = async (env: Record<string, string>) => {
      const run = start({ APP: 'weather', API_KEY: 'hunter2', REPORT_FD: '3', ...env });
      const [bytes] = await once(run.child.stdio[3] as NodeJS.ReadableStream, 'data');
      return JSON.parse(String(bytes));
    };
    expect(await report({})).toEqual({
      event: 'boot',
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      app: 'weather',
      pcr0: null,
      debug: null,
      entropy: ['kernel'],
      memory_mib: expect.any(Number),
      clock: { source: 'kernel' },
      last_end: null,
    });
    const missing = { NSM_REQUIRED: 'true', NSM_DEVICE: '/nonexistent/nsm' };
    expect(await report(missing)).toEqual({ event: 'failed', code: 'NSM_UNAVAILABLE' });
  });

  /** Starts a server, sends it half a request, and asks it to end. */
  async function interruptDuringRequest(env: Record<string, string> = {}): Promise<Run> {
    const run = start({ APP: 'weather', API_KEY: 'x', ...env });
    const { hostname, port } = new URL(await run.listening());
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.on('error', () => {});
    socket.write(
      'POST /process_data HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    );
    await new Promise((done) => setTimeout(done, 200));
    run.child.kill('SIGINT');
    await expect.poll(run.output).toMatch(/finishing/);
    return run;
  }

  test('ends immediately on a second signal', async () => {
    const run = await interruptDuringRequest();
    await new Promise((done) => setTimeout(done, 600));
    run.child.kill('SIGTERM');
    expect((await run.ended()).code).toBe(1);
  });

  test('counts one signal that arrives twice, from the terminal and from npm, as one', async () => {
    const run = await interruptDuringRequest({ SHUTDOWN_GRACE_MS: '1000' });
    run.child.kill('SIGINT');
    expect((await run.ended()).code).toBe(0);
  });
});

test('a mistake of the application stops the start with a line that describes it', async () => {
  const start = fileURLToPath(new URL('../../src/server/start.ts', import.meta.url));
  const source = `
    import { start } from ${JSON.stringify(start)};
    const module = { signs: [], create: ({ upstream }) => upstream('prices.example') };
    await start({ version: '1.2.3', nsmAddon: '/nonexistent/nsm.node',
      load: async () => ({ manifest: { endpoints: [], secrets: [] }, module }) });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    env: { APP: 'price', PORT: '0', NSM_DEVICE: '/nonexistent/nsm' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let printed = '';
  child.stderr.on('data', (chunk) => {
    printed += chunk;
  });
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(printed).toBe('sui-enclave: prices.example is not among the endpoints of app.yaml\n');
});

test("an error outside of any request neither ends the server nor changes its key, and the error's message isn't printed", async () => {
  const start = fileURLToPath(new URL('../../src/server/start.ts', import.meta.url));
  const source = `
    import { start } from ${JSON.stringify(start)};
    const create = () => {
      setTimeout(() => { throw new Error('hunter2'); }, 300);
      setTimeout(() => { Promise.reject(new Error('hunter2')); }, 300);
      return {};
    };
    await start({
      version: '1.2.3',
      nsmAddon: '/nonexistent/nsm.node',
      load: async () => ({ manifest: { endpoints: [], secrets: [] }, module: { signs: [], create } }),
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    env: { APP: 'price', PORT: '0', NSM_DEVICE: '/nonexistent/nsm' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      printed += chunk;
    });
  }
  const lines = () => printed.split('\n').filter((line) => line.includes('outside of any request'));
  await expect.poll(() => lines().length).toBe(2);
  expect(printed).not.toMatch(/hunter2/);
  const [, url = '', key = ''] = /"url":"([^"]*)","public_key":"([0-9a-f]*)"/.exec(printed) ?? [];
  expect(await (await fetch(`${url}/health_check`)).json()).toMatchObject({ pk: key });
});

describe('the production entry', () => {
  /** Returns a module and all files that it imports, directly or indirectly. */
  function listReachable(file: string, seen = new Set<string>()): Set<string> {
    if (seen.has(file)) return seen;
    seen.add(file);
    const source = readFileSync(file, 'utf8');
    for (const [, specifier = ''] of source.matchAll(
      /(?:from|import\(?)\s*['"]((?:\.|sui-enclave)[^'"]+)['"]/g,
    )) {
      listReachable(createRequire(file).resolve(specifier), seen);
    }
    return seen;
  }

  const root = fileURLToPath(new URL('../..', import.meta.url));
  const relative = (files: Set<string>) => [...files].map((file) => file.slice(root.length));

  test('imports no fake and no emulated NSM, directly or indirectly', () => {
    const isProduction = /^src\/(library|service|server|apps)\/(?!.*\/stand_in\.ts$)/;
    for (const entry of [MAIN, ...globSync('src/apps/*/app.ts', { cwd: root }).map((path) => root + path)]) {
      const files = relative(listReachable(entry));
      expect(files.length).toBeGreaterThan(5);
      expect(files.filter((file) => !isProduction.test(file))).toEqual([]);
    }
    // The same search does find them in a file that imports them.
    expect(relative(listReachable(`${root}src/toolchain/dev/serve.ts`))).toContain(
      'src/testing/emulated_nsm.ts',
    );
  });

  test.each(['src/server/main.ts', 'the bundle of an image'])(
    '%s takes no seed from messages, arguments or variables, unlike the server of make dev',
    async (entry) => {
      let file = MAIN;
      if (entry !== 'src/server/main.ts') {
        const stage = mkdtempSync(join(tmpdir(), 'sui-enclave-bundle-'));
        onTestFinished(() => rmSync(stage, { recursive: true }));
        await bundle(root, '1.2.3', 'src/apps/weather', stage);
        file = join(stage, 'server.js');
        const manifest = join(stage, 'app.json');
        writeFileSync(manifest, formatManifest(manifestIn(join(root, 'src/apps/weather'))));
        writeFileSync(file, readFileSync(file, 'utf8').replaceAll('/app/app.json', manifest));
      }
      const seed = Buffer.alloc(32, 7);
      const hex = seed.toString('hex');
      const names = ['SEED', 'SIGNING_SEED', 'SUI_ENCLAVE_SEED', 'signingSeed', 'seed'];
      const flags = names.flatMap((name) => [`--${name}=${hex}`, `--${name.toLowerCase()}`, hex]);
      const child = spawn(process.execPath, [file, ...flags, hex], {
        env: {
          APP: 'weather',
          API_KEY: 'x',
          PORT: '0',
          NSM_DEVICE: '/nonexistent/nsm',
          ATTEST: 'emulated',
          ...Object.fromEntries(names.map((name) => [name, hex])),
        },
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
        serialization: 'advanced',
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const messages: unknown[] = [];
      child.on('message', (message) => messages.push(message));
      // The first message is that of src/toolchain/dev/fork_server.ts. A server might also read the others.
      for (const message of [{ seed }, { signingSeed: seed }, { seed: hex }, seed, hex]) child.send(message);
      let output = '';
      child.stdout?.on('data', (chunk) => {
        output += chunk;
      });
      const key = /"public_key":"([0-9a-f]{64})"/;
      await expect.poll(() => output).toMatch(key);
      const fixedKey = Buffer.from(ed25519.getPublicKey(seed)).toString('hex');
      expect(key.exec(output)?.[1]).not.toBe(fixedKey);
      expect(messages).toEqual([]);
    },
  );

  test('passes no seed to boot()', () => {
    for (const file of ['src/server/main.ts', 'src/server/start.ts', 'src/toolchain/image/bundle.ts']) {
      expect(readFileSync(root + file, 'utf8')).not.toMatch(/seed/i);
    }
    // The seed does appear where a server accepts one.
    expect(readFileSync(`${root}src/toolchain/dev/serve.ts`, 'utf8')).toMatch(/signingSeed/);
    expect(readFileSync(`${root}src/server/boot.ts`, 'utf8')).toMatch(/signingSeed/);
  });

  test('ignores the variable ATTEST of make dev', async () => {
    const run = start({ APP: 'weather', API_KEY: 'x', ATTEST: 'emulated', NSM_DEVICE: '/nonexistent/nsm' });
    const url = await run.listening();
    const answer = await fetch(`${url}/get_attestation`);
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toMatch(/ATTEST|make dev/);
    expect(run.output()).not.toMatch(/ATTEST|make dev/);
  });
});
