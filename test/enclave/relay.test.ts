import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findFreePort } from '../../scripts/check/bench/ports.ts';
import { canRun } from './init.ts';
import { dialFrom, EVENTS, Host, listenOn, RELAY, REPORTS, readOutcome } from './relay.ts';

const LINE = '{"event":"boot"}';
const BLUE = 16;
const GREEN = 17;
const STRANGER = 99;

/** Returns a handler that answers each connection with the name and the received bytes. */
const echo = (name: string) => async (socket: Socket) => {
  const text = await readOutcome(socket);
  socket.end(`${name} ${text}`);
};

async function ask(socket: Socket, text = 'x'): Promise<string> {
  socket.end(text);
  return readOutcome(socket);
}

const tryConnect = (port: number, address = '127.0.0.1') =>
  dialFrom(address, port).then(
    () => 'connected',
    (error: NodeJS.ErrnoException) => error.code,
  );

/** Starts a host with two enclaves, which listen on 3000, and with ports that forward to them. */
async function startBlueAndGreen(...args: string[]) {
  const host = new Host();
  const [bluePort, greenPort] = [await findFreePort(), await findFreePort()];
  const blue = await host.listen(BLUE, 3000, echo('blue'));
  const green = await host.listen(GREEN, 3000, echo('green'));
  host.conf('blue', `cid ${BLUE}`, `listen 127.0.0.1:${bluePort} 3000`);
  host.conf('green', `cid ${GREEN}`, `listen 127.0.0.1:${greenPort} 3000`);
  await host.start(...args);
  for (const port of [bluePort, greenPort]) await waitForPort(port);
  return { host, blue, green, bluePort, greenPort };
}

async function waitForPort(port: number): Promise<void> {
  await expect.poll(() => tryConnect(port)).toBe('connected');
}

async function readMetrics(port: number): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text).toMatch(/\n# EOF\n$/);
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

describe.runIf(canRun)('reports', () => {
  test('are kept under the name of the enclave whose CID they come from', async () => {
    const { host } = await startBlueAndGreen();
    expect(await host.report(BLUE, '{"from":"blue"}\n')).toBe('taken');
    expect(await host.report(GREEN, '{"from":"green"}\n')).toBe('taken');
    expect([host.reports('blue'), host.reports('green')]).toEqual([
      '{"from":"blue"}\n',
      '{"from":"green"}\n',
    ]);
    expect(statSync(join(host.dir, 'blue/reports.jsonl')).mode & 0o137).toBe(0);
  });

  test('of an unknown CID are refused and counted', async () => {
    const metrics = await findFreePort();
    const { host } = await startBlueAndGreen('--metrics', `127.0.0.1:${metrics}`);
    expect(await host.report(STRANGER, `${LINE}\n`)).toBe('refused');
    expect((await readMetrics(metrics)).get('relay_unknown_cid_total')).toBe(1);
    expect(readdirSync(join(host.dir, 'blue'))).toEqual([]);
  });

  test('whose line is not a JSON object in printable ASCII are dropped, and not sent again', async () => {
    const { host } = await startBlueAndGreen();
    const dropped = {
      'is not an object': 'boot\n',
      'has a control character': '{"a":"\x1b[2J"}\n',
      'has a character beyond ASCII': '{"a":"\xff"}\n',
      'is empty': '\n',
    };
    let expectedReports = '';
    for (const [caseName, text] of Object.entries(dropped)) {
      expect(await host.report(BLUE, text), caseName).toBe('taken');
      expect(await host.report(BLUE, `${LINE}\n`), caseName).toBe('taken');
      expectedReports += `${LINE}\n`;
      expect(host.reports('blue'), caseName).toBe(expectedReports);
    }
  });

  test('have a line of at most 4096 bytes, each on a connection of its own', async () => {
    const { host } = await startBlueAndGreen();
    const longest = `{${'x'.repeat(4094)}}\n`;
    expect(await host.report(BLUE, longest)).toBe('taken');
    await host.report(BLUE, longest.replace('x', 'xx'));
    await host.report(BLUE, 'x'.repeat(100_000));
    // A line without its end may be incomplete.
    await host.report(BLUE, LINE);
    await host.report(BLUE, `${LINE}\n{"more":1}\n`);
    expect(host.reports('blue')).toBe(`${longest}${LINE}\n`);
  });

  test('are bounded in rate, for each enclave', async () => {
    const metrics = await findFreePort();
    const { host } = await startBlueAndGreen('--metrics', `127.0.0.1:${metrics}`);
    for (let round = 0; round < 40; round += 1) {
      await Promise.all(Array.from({ length: 16 }, () => host.report(BLUE, `${LINE}\n`)));
    }
    const keptCount = host.reports('blue').split('\n').length - 1;
    expect(keptCount).toBeGreaterThanOrEqual(64);
    expect(keptCount).toBeLessThan(320);
    expect(await host.report(GREEN, `${LINE}\n`)).toBe('taken');
    const after = await readMetrics(metrics);
    expect(after.get('relay_lines_total{enclave="blue",kind="report"}')).toBe(keptCount);
    expect(
      after.get('relay_dropped_lines_total{enclave="blue",kind="report",reason="rate"}'),
    ).toBeGreaterThan(0);
    expect(after.get('relay_dropped_lines_total{enclave="green",kind="report",reason="rate"}')).toBe(0);
  });

  test('are in a file that is renamed before it is larger than 1 MB', async () => {
    const { host } = await startBlueAndGreen();
    const file = join(host.dir, 'blue/reports.jsonl');
    for (const old of ['first', 'second']) {
      writeFileSync(file, `${old}${'x'.repeat(1024 * 1024 - 10)}\n`);
      expect(await host.report(BLUE, `${LINE}\n`)).toBe('taken');
      expect(host.reports('blue')).toBe(`${LINE}\n`);
      expect(readFileSync(`${file}.old`, 'utf8').slice(0, old.length)).toBe(old);
    }
    expect(readdirSync(join(host.dir, 'blue')).sort()).toEqual(['reports.jsonl', 'reports.jsonl.old']);
  });

  test("are refused while they can't be inEffectPath", async () => {
    const { host } = await startBlueAndGreen();
    host.conf('green', `cid ${GREEN}`);
    const secondHost = new Host();
    secondHost.conf('blue', `cid ${BLUE}`);
    spawnSync('rm', ['-r', join(secondHost.dir, 'blue')]);
    await secondHost.start();
    expect(await secondHost.report(BLUE, `${LINE}\n`)).toBe('refused');
    expect(await host.report(BLUE, `${LINE}\n`)).toBe('taken');
  });

  test('of one enclave arrive although another enclave opens many connections', async () => {
    const { host } = await startBlueAndGreen();
    const half = await Promise.all(Array.from({ length: 200 }, () => host.dial(BLUE, REPORTS)));
    for (const socket of half) socket.write('{"half');
    expect(await host.report(GREEN, `${LINE}\n`)).toBe('taken');
    // The relay ends connections that send nothing more.
    await expect.poll(() => host.report(BLUE, `${LINE}\n`)).toBe('taken');
  });
});

describe.runIf(canRun)('events', () => {
  test('are printed with the name of the enclave, within bounds', async () => {
    const metrics = await findFreePort();
    const { host } = await startBlueAndGreen('--metrics', `127.0.0.1:${metrics}`);
    const blue = await host.dial(BLUE, EVENTS);
    const green = await host.dial(GREEN, EVENTS);
    blue.write('{"event":"a"}\n{"event":"b"}\n{"half":');
    green.write('garbage\n\x1b{}\n{"event":"c"}\n');
    blue.write('1}\n');
    await expect
      .poll(() => host.stdout.split('\n').sort())
      .toEqual(['', 'blue {"event":"a"}', 'blue {"event":"b"}', 'blue {"half":1}', 'green {"event":"c"}']);
    green.write(`{${'x'.repeat(100_000)}}\n{"event":"d"}\n`);
    await expect.poll(() => host.stdout).toMatch(/green \{"event":"d"\}\n/);
    expect(
      (await readMetrics(metrics)).get(
        'relay_dropped_lines_total{enclave="green",kind="event",reason="invalid"}',
      ),
    ).toBe(3);
    host.stdout = '';
    blue.write(`${LINE}\n`.repeat(50_000));
    const dropped = 'relay_dropped_lines_total{enclave="blue",kind="event",reason="rate"}';
    await expect.poll(async () => (await readMetrics(metrics)).get(dropped)).toBeGreaterThan(40_000);
    green.write('{"event":"e"}\n');
    await expect.poll(() => host.stdout).toMatch(/green \{"event":"e"\}\n/);
    expect(host.stdout.split('\n').length).toBeLessThan(5000);
  }, 40_000);
});

describe.runIf(canRun)('connections of enclaves', () => {
  test('reach the hosts of their own image, at the same port', async () => {
    const host = new Host();
    const [a, b] = [await listenOn('127.0.0.1', 0, echo('a')), await listenOn('127.0.0.1', 0, echo('b'))];
    host.hosts(`a.example.com 127.0.0.1 ${a.port}`, `b.example.com 127.0.0.1 ${b.port}`);
    host.conf('blue', `cid ${BLUE}`, 'upstream 8101 a.example.com', 'upstream 8102 b.example.com');
    host.conf('green', `cid ${GREEN}`, 'upstream 8101 b.example.com');
    await host.start();
    expect(await ask(await host.dial(BLUE, 8101), 'hello')).toBe('a hello');
    expect(await ask(await host.dial(BLUE, 8102))).toBe('b x');
    expect(await ask(await host.dial(GREEN, 8101))).toBe('b x');
    expect(await ask(await host.dial(GREEN, 8102))).toBe('ECONNRESET');
    expect(await ask(await host.dial(STRANGER, 8101))).toBe('ECONNRESET');
  });

  test('try the addresses of a host in turn, including IPv6', async () => {
    const host = new Host();
    const closed = await findFreePort();
    const { port } = await listenOn('::1', 0, echo('six'));
    host.hosts(
      `a.example.com 127.0.0.1 ${closed}`,
      `a.example.com 2001:db8::1 ${closed}`,
      `a.example.com ::1 ${port}`,
    );
    host.conf('blue', `cid ${BLUE}`, 'upstream 8101 a.example.com');
    await host.start();
    expect(await ask(await host.dial(BLUE, 8101))).toBe('six x');
  });

  test('are reset if no address of the host is known or answers', async () => {
    const host = new Host();
    host.hosts(`a.example.com 127.0.0.1 ${await findFreePort()}`);
    host.conf('blue', `cid ${BLUE}`, 'upstream 8101 a.example.com', 'upstream 8102 b.example.com');
    await host.start();
    expect(await ask(await host.dial(BLUE, 8101))).toBe('ECONNRESET');
    expect(await ask(await host.dial(BLUE, 8102))).toBe('ECONNRESET');
  });

  test('do not wait for the lookup of another host, which happens once', async () => {
    const host = new Host();
    const { port } = await listenOn('127.0.0.1', 0, echo('fast'));
    host.hosts(
      'slow.example.com slow',
      `slow.example.com 127.0.0.1 ${port}`,
      `fast.example.com 127.0.0.1 ${port}`,
    );
    host.conf('blue', `cid ${BLUE}`, 'upstream 8101 slow.example.com');
    host.conf('green', `cid ${GREEN}`, 'upstream 8101 fast.example.com');
    await host.start();
    let isSlowAnswered = false;
    const slow = Promise.all(
      Array.from({ length: 300 }, async () => ask(await host.dial(BLUE, 8101))),
    ).finally(() => {
      isSlowAnswered = true;
    });
    expect(await ask(await host.dial(GREEN, 8101))).toBe('fast x');
    expect(isSlowAnswered).toBe(false);
    expect(new Set(await slow)).toEqual(new Set(['fast x']));
  });

  test('forward 8 MB in both directions at once, unchanged, and stop for a slow reader', async () => {
    const host = new Host();
    const block = randomBytes(8 * 1024 * 1024);
    const digest = createHash('sha256').update(block).digest('hex');
    const receive = async (socket: Socket) => {
      const hash = createHash('sha256');
      socket.on('data', (chunk) => hash.update(chunk));
      await once(socket, 'end');
      return hash.digest('hex');
    };
    const received = Promise.withResolvers<string>();
    const { port } = await listenOn('127.0.0.1', 0, async (socket) => {
      socket.end(block);
      // Nothing moves until the reader reads.
      await new Promise((resolve) => setTimeout(resolve, 500));
      receive(socket).then(received.resolve);
    });
    host.hosts(`a.example.com 127.0.0.1 ${port}`);
    host.conf('blue', `cid ${BLUE}`, 'upstream 8101 a.example.com');
    await host.start();
    const socket = await host.dial(BLUE, 8101);
    socket.end(block);
    expect(await receive(socket)).toBe(digest);
    expect(await received.promise).toBe(digest);
  });

  test('of one enclave do not keep out those of another, nor callers', async () => {
    const metrics = await findFreePort();
    const { host, bluePort, greenPort } = await startBlueAndGreen('--metrics', `127.0.0.1:${metrics}`);
    const open: Socket[] = [];
    const { port } = await listenOn('127.0.0.1', 0, (socket) => void open.push(socket));
    host.hosts(`a.example.com 127.0.0.1 ${port}`);
    for (const [name, cid, listen] of [
      ['blue', BLUE, bluePort],
      ['green', GREEN, greenPort],
    ]) {
      host.conf(`${name}`, `cid ${cid}`, 'upstream 8101 a.example.com', `listen 127.0.0.1:${listen} 3000`);
    }
    await host.reload();
    const limit = (await readMetrics(metrics)).get('relay_connection_limit') as number;
    const flood: Socket[] = [];
    for (let round = 0; round < 30; round += 1) {
      flood.push(...(await Promise.all(Array.from({ length: 100 }, () => host.dial(BLUE, 8101)))));
    }
    await expect.poll(() => open.length).toBe(limit);
    const after = await readMetrics(metrics);
    expect(after.get('relay_connections{enclave="blue",direction="out"}')).toBe(limit);
    expect(after.get('relay_refused_total{enclave="blue",direction="out",reason="full"}')).toBe(3000 - limit);
    const green = await host.dial(GREEN, 8101);
    await expect.poll(() => open.length).toBe(limit + 1);
    open.at(-1)?.end('hello');
    expect(await readOutcome(green)).toBe('hello');
    expect(await ask(await dialFrom('127.0.0.1', bluePort))).toBe('blue x');
    expect(await ask(await dialFrom('127.0.0.1', greenPort))).toBe('green x');
    for (const socket of flood) socket.destroy();
  });
});

describe.runIf(canRun)('callers', () => {
  test('reach the enclave of their port, and each end of a connection is forwarded', async () => {
    const { bluePort, greenPort } = await startBlueAndGreen();
    expect(await ask(await dialFrom('127.0.0.1', bluePort), 'hello')).toBe('blue hello');
    expect(await ask(await dialFrom('127.0.0.1', greenPort), 'hello')).toBe('green hello');
  });

  test('are refused immediately while the enclave is down, but only at its own port', async () => {
    const { host, blue, bluePort, greenPort } = await startBlueAndGreen();
    const held = await dialFrom('127.0.0.1', bluePort);
    const ended = readOutcome(held);
    blue.stop();
    expect(await ended).toBe('ECONNRESET');
    await expect.poll(() => tryConnect(bluePort)).toBe('ECONNREFUSED');
    expect(await ask(await dialFrom('127.0.0.1', greenPort))).toBe('green x');
    await host.listen(BLUE, 3000, echo('blue again'));
    await waitForPort(bluePort);
    expect(await ask(await dialFrom('127.0.0.1', bluePort))).toBe('blue again x');
  });

  test('see a reset if the enclave resets, so that a broken answer does not look complete', async () => {
    const host = new Host();
    const port = await findFreePort();
    await host.listen(BLUE, 3000, (socket) => {
      socket.once('data', () => {
        socket.write('half of the ans');
        setTimeout(() => socket.resetAndDestroy(), 100);
      });
    });
    host.conf('blue', `cid ${BLUE}`, `listen 127.0.0.1:${port} 3000`);
    await host.start();
    await waitForPort(port);
    const socket = await dialFrom('127.0.0.1', port);
    socket.write('x');
    expect(await readOutcome(socket)).toBe('ECONNRESET');
  });

  test('are bounded: 3,000 silent ones do not keep out callers of another enclave', async () => {
    const host = new Host();
    const [bluePort, greenPort] = [await findFreePort(), await findFreePort()];
    const open: Socket[] = [];
    await host.listen(BLUE, 3000, (socket) => void open.push(socket));
    await host.listen(GREEN, 3000, echo('green'));
    host.conf('blue', `cid ${BLUE}`, `listen 127.0.0.1:${bluePort} 3000`);
    host.conf('green', `cid ${GREEN}`, `listen 127.0.0.1:${greenPort} 3000`);
    await host.start();
    for (const port of [bluePort, greenPort]) await waitForPort(port);
    await expect.poll(() => open.length).toBeGreaterThan(0);
    const probes = open.length;
    const silent: Promise<string>[] = [];
    for (let round = 0; round < 30; round += 1) {
      silent.push(
        ...(await Promise.all(Array.from({ length: 100 }, () => dialFrom('127.0.0.1', bluePort)))).map(
          readOutcome,
        ),
      );
      expect(await ask(await dialFrom('127.0.0.1', greenPort))).toBe('green x');
    }
    // The other connections were rejected after they had waited for room.
    await expect.poll(() => open.length - probes).toBeGreaterThan(2500);
    expect(open.length - probes).toBeLessThanOrEqual(2560);
    const rejected = await Promise.race([
      Promise.any(silent),
      new Promise((resolve) => setTimeout(resolve, 20_000)),
    ]);
    expect(rejected).toBe('ECONNRESET');
  });
});

describe.runIf(canRun)('the folder', () => {
  test('is read again on SIGHUP, without touching the connections of other enclaves', async () => {
    const { host, bluePort, greenPort } = await startBlueAndGreen();
    const [blue, green] = [await dialFrom('127.0.0.1', bluePort), await dialFrom('127.0.0.1', greenPort)];
    const ended = readOutcome(blue);
    await new Promise((resolve) => setTimeout(resolve, 200));
    host.removeConf('blue');
    await host.reload();
    expect(await ended).toBe('ECONNRESET');
    expect(await tryConnect(bluePort)).toBe('ECONNREFUSED');
    expect(await host.report(BLUE, `${LINE}\n`)).toBe('refused');
    expect(await ask(green)).toBe('green x');
  });

  test('may move a port from one enclave to another, which breaks no connection', async () => {
    const { host, bluePort, greenPort } = await startBlueAndGreen();
    const [held, old] = [await dialFrom('127.0.0.1', greenPort), await dialFrom('127.0.0.1', bluePort)];
    await new Promise((resolve) => setTimeout(resolve, 200));
    host.conf('blue', `cid ${BLUE}`);
    host.conf(
      'green',
      `cid ${GREEN}`,
      `listen 127.0.0.1:${greenPort} 3000`,
      `listen 127.0.0.1:${bluePort} 3000`,
    );
    await host.reload();
    await waitForPort(bluePort);
    expect(await ask(await dialFrom('127.0.0.1', bluePort))).toBe('green x');
    expect(await ask(held)).toBe('green x');
    expect(await ask(old)).toBe('blue x');
  });

  test('may change under load', async () => {
    const { host, bluePort, greenPort } = await startBlueAndGreen();
    let isOver = false;
    const load = (async () => {
      let answers = 0;
      for (; !isOver; answers += 1) expect(await ask(await dialFrom('127.0.0.1', greenPort))).toBe('green x');
      return answers;
    })();
    for (let round = 0; round < 20; round += 1) {
      host.conf('blue', `cid ${BLUE + 10 + round}`, 'upstream 8101 a.example.com');
      host.conf(`other${round}`, `cid ${100 + round}`, `listen 127.0.0.1:${bluePort} 3000`);
      if (round > 0) host.removeConf(`other${round - 1}`);
      await host.reload();
    }
    isOver = true;
    expect(await load).toBeGreaterThan(0);
    expect(await host.report(BLUE + 29, `${LINE}\n`)).toBe('taken');
  });

  test('may have a file with a mistake, which is reported, while its earlier content stays in effect', async () => {
    const mistakes: Record<string, string> = {
      'an unknown line': 'cid 16\nmore\n',
      'no CID': 'upstream 8101 a.example.com\n',
      'two CIDs': 'cid 16\ncid 18\n',
      "the host's CID": 'cid 3\n',
      'a CID with a sign': 'cid +16\n',
      'the CID of another': `cid ${GREEN}\n`,
      'an upstream without a host': 'cid 16\nupstream 8101\n',
      'an upstream twice': 'cid 16\nupstream 8101 a.example.com\nupstream 8101 b.example.com\n',
      'an upstream on the port for reports': 'cid 16\nupstream 7778 a.example.com\n',
      'an invalid host': 'cid 16\nupstream 8101 a.example.com:80\n',
      'no address to listen on': 'cid 16\nlisten localhost:3000 3000\n',
      'no end of a line': 'cid 16',
      nothing: '',
      'too much': `cid 16\n${'x'.repeat(70_000)}`,
    };
    const { host, bluePort, greenPort } = await startBlueAndGreen();
    const held = await dialFrom('127.0.0.1', bluePort);
    for (const [mistake, text] of Object.entries(mistakes)) {
      host.stderr = '';
      writeFileSync(join(host.dir, 'relay/blue.conf'), text);
      await host.reload();
      expect(host.stderr, mistake).toMatch(/^relay: blue\.conf: /m);
      expect(await ask(await dialFrom('127.0.0.1', bluePort)), mistake).toBe('blue x');
      expect(await ask(await dialFrom('127.0.0.1', greenPort)), mistake).toBe('green x');
    }
    expect(await ask(held)).toBe('blue x');
  });

  test('may be read-only for the relay, which writes the files in effect elsewhere', async () => {
    const host = new Host();
    host.conf('blue', `cid ${BLUE}`);
    const inEffectPath = join(host.dir, 'blue/in_effect');
    // The relay neither follows nor waits for files that another relay has left.
    expect(spawnSync('mkfifo', [`${inEffectPath}.new`]).status).toBe(0);
    await host.start('--in-effect', inEffectPath);
    expect(readdirSync(join(host.dir, 'relay'))).toEqual(['blue.conf']);
    expect(readFileSync(inEffectPath, 'utf8')).toBe(`blue\ncid ${BLUE}\n\n`);
    expect(host.stderr).not.toMatch(/in_effect/);
  });

  test('may name an address that another program uses, and the relay gets it when that program ends', async () => {
    const host = new Host();
    const otherListener = await listenOn('127.0.0.1', 0, () => {});
    await host.listen(BLUE, 3000, echo('blue'));
    host.conf('blue', `cid ${BLUE}`, `listen 127.0.0.1:${otherListener.port} 3000`);
    await host.start();
    expect(host.stderr).toMatch(
      `relay: can't take the address 127.0.0.1:${otherListener.port}: Address already in use\n`,
    );
    otherListener.stop();
    await expect.poll(() => tryConnect(otherListener.port)).toBe('connected');
    expect(await ask(await dialFrom('127.0.0.1', otherListener.port))).toBe('blue x');
  });
});

describe.runIf(canRun)('the relay', () => {
  test('ends on SIGTERM, and resets the open connections', async () => {
    const { host, bluePort } = await startBlueAndGreen();
    const held = await dialFrom('127.0.0.1', bluePort);
    held.write('x');
    const ended = readOutcome(held);
    await new Promise((resolve) => setTimeout(resolve, 200));
    host.child?.kill('SIGTERM');
    expect(await host.ended).toBe(0);
    expect(await ended).toBe('ECONNRESET');
    expect(host.stderr).not.toMatch(/Sanitizer|runtime error/);
  });

  test('is the only relay of its host', async () => {
    const { host } = await startBlueAndGreen();
    const { status, stderr } = spawnSync(RELAY, ['serve', join(host.dir, 'relay'), host.dir], {
      env: host.env,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, 'relay: vsock port 7778: Address already in use\n']);
  });

  test('has no privileges', async () => {
    const isRoot = process.getuid?.() === 0;
    const { host } = await startBlueAndGreen(...(isRoot ? ['--user', '65534'] : []));
    const status = readFileSync(`/proc/${host.child?.pid}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(status)?.[1];
    expect(field('NoNewPrivs')).toBe('1');
    for (const set of ['CapPrm', 'CapEff', 'CapAmb']) expect(field(set)).toBe('0000000000000000');
    if (isRoot) expect(field('Uid')).toBe('65534\t65534\t65534\t65534');
  });

  test('serves its metrics on loopback only, and survives any request for them', async () => {
    const metrics = await findFreePort();
    const { bluePort } = await startBlueAndGreen('--metrics', `127.0.0.1:${metrics}`);
    expect(await ask(await dialFrom('127.0.0.1', bluePort), '12345')).toBe('blue 12345');
    const answer = await fetch(`http://127.0.0.1:${metrics}/metrics`);
    expect(answer.headers.get('content-type')).toBe(
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    );
    await answer.text();
    const samples = await readMetrics(metrics);
    expect(samples.get('relay_enclaves')).toBe(2);
    expect(samples.get('relay_bytes_total{enclave="blue",direction="in",way="sent"}')).toBe(5);
    expect(samples.get('relay_bytes_total{enclave="blue",direction="in",way="received"}')).toBe(10);
    expect(samples.get('relay_listening{enclave="green"}')).toBe(1);
    expect((await fetch(`http://127.0.0.1:${metrics}/`)).status).toBe(404);
    for (const garbage of ['\r\n\r\n', 'x'.repeat(100_000), Buffer.alloc(2000)]) {
      const socket = await dialFrom('127.0.0.1', metrics);
      socket.end(garbage);
      await readOutcome(socket);
    }
    const { status } = spawnSync(RELAY, ['serve', '/tmp', '/tmp', '--metrics', '0.0.0.0:1']);
    expect(status).toBe(2);
  });

  test('serves its metrics immediately despite idle connections, and resets the oldest of them', async () => {
    const metrics = await findFreePort();
    await startBlueAndGreen('--metrics', `127.0.0.1:${metrics}`);
    const idle: Promise<string>[] = [];
    for (let count = 0; count < 50; count += 1) idle.push(readOutcome(await dialFrom('127.0.0.1', metrics)));
    // Each idle connection ends by itself after 5 s. The new connection must get in before that.
    const start = performance.now();
    expect((await readMetrics(metrics)).get('relay_enclaves')).toBe(2);
    expect(performance.now() - start).toBeLessThan(4000);
    expect(await Promise.all(idle.slice(0, 30))).toEqual(Array(30).fill('ECONNRESET'));
  });

  test('passes its standard input to an enclave, and the answer to its standard output', async () => {
    const host = new Host();
    await host.listen(BLUE, 7777, echo('accepted'));
    const pass = async (cid: number, port: number, message: string) => {
      const child = spawn(RELAY, ['pass', String(cid), String(port)], { env: host.env });
      const texts = ['', ''];
      child.stdout.on('data', (chunk) => {
        texts[0] += chunk;
      });
      child.stderr.on('data', (chunk) => {
        texts[1] += chunk;
      });
      child.stdin.end(message);
      const [status] = await once(child, 'close');
      return [status, ...texts];
    };
    expect(await pass(BLUE, 7777, '{"a":1}')).toEqual([0, 'accepted {"a":1}', '']);
    expect(await pass(GREEN, 7777, '{"a":1}')).toEqual([
      1,
      '',
      'relay: the enclave does not listen: Connection refused\n',
    ]);
  });

  test.each([
    [[]],
    [['serve', '/tmp']],
    [['pass', '3', '7777']],
    [['pass', '16']],
    [['serve', 'a', 'b', '--user']],
    [['serve', 'a', 'b', '--in-effect']],
  ])('refuses the arguments %j', (args) => {
    const { status, stderr } = spawnSync(RELAY, args, { encoding: 'utf8' });
    expect([status, stderr.split('\n')[0]]).toEqual([2, expect.stringMatching(/^usage: relay serve/)]);
  });
});
