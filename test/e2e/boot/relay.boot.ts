/**
 * Boots several enclaves on one parent, whose relay forwards their connections: out/test.eif twice, and
 * out/nitro.eif. TCP on loopback replaces AF_VSOCK between the relay and each machine's vsock.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, inject, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { forwardTls } from '../../../src/testing/tls.ts';
import { computeTemperature, DEV_API_KEY, startFakeWeatherApi } from '../../../src/testing/weather_api.ts';
import { dialFrom, EVENTS, Host, listenOn, RELAY, REPORTS } from '../../enclave/relay.ts';
import { endpointTls } from './applications.ts';
import { bootWithNsm, Machine } from './machine.ts';

const WEATHER_HOST = 'api.weatherapi.com';
const WEATHER_PORT = 8101;

/** Forwards bytes, the end of each direction, and a reset between two sockets. */
function joinSockets(left: Socket, right: Socket): void {
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.pipe(to);
    // Only TCP can be reset.
    from.on('error', () => (to.remoteAddress === undefined ? to.destroy() : to.resetAndDestroy()));
  }
}

/** Boots an image under a CID of a host. The relay can reach the enclave's ports once the enclave answers. */
function boot(host: Host, eif: string, cid: number): Promise<Enclave> {
  return bootWithNsm(async () => {
    const machine = new Machine(inject('vsockHost'), { cid });
    onTestFinished(() => machine.stop().catch(() => {}));
    for (const port of [REPORTS, EVENTS, WEATHER_PORT]) {
      machine.listen(port, (socket) => {
        dialFrom(`${host.network}.3`, port, `${host.network}.${cid}`).then(
          (relay) => joinSockets(socket, relay),
          () => socket.destroy(),
        );
      });
    }
    await machine.start(inject('emulator'), eif);
    await machine.waitForAnswer();
    const servers = [3000, 7777].map((port) => {
      const server = createServer({ allowHalfOpen: true }, (socket) =>
        joinSockets(socket, machine.connect(port)),
      );
      server.listen(port, `${host.network}.${cid}`);
      onTestFinished(() => void server.close());
      return server;
    });
    const end = async () => {
      for (const server of servers) server.close();
      await machine.stop();
    };
    return { end };
  });
}

interface Enclave {
  /** Ends the enclave as if it had been terminated. */
  end(): Promise<void>;
}

async function handOver(host: Host, cid: number): Promise<string> {
  const child = spawn(RELAY, ['pass', String(cid), '7777'], {
    env: host.env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify({ API_KEY: DEV_API_KEY }));
  const [verdict] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return verdict.trim();
}

/** Sends a request on a new connection, as separate callers do. */
async function get(port: number, path: string, body?: object): Promise<{ status: number; json: unknown }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { connection: 'close', 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  return { status: response.status, json: await response.json() };
}

const fetchKey = async (port: number) => ((await get(port, '/health_check')).json as { pk: string }).pk;

async function fetchTemperature(port: number, location: string): Promise<number> {
  const answer = await get(port, '/process_data', { payload: { location } });
  expect(answer, JSON.stringify(answer)).toMatchObject({ status: 200 });
  return (answer.json as { response: { data: { temperature: number } } }).response.data.temperature;
}

test('enclaves of the same image and of two images run on one parent, and one enclave replaces another', async () => {
  const weather = await startFakeWeatherApi();
  onTestFinished(() => weather.close());
  const upstream = await listenOn('127.0.0.1', 0, (socket) =>
    forwardTls(socket, weather.origin, endpointTls()),
  );
  const host = new Host();
  host.hosts(`${WEATHER_HOST} 127.0.0.1 ${upstream.port}`);
  const [callersPort, otherPort] = [await findFreePort(), await findFreePort()];
  const lines = (cid: number, ...ports: string[]) =>
    [`cid ${cid}`, `upstream ${WEATHER_PORT} ${WEATHER_HOST}`, ...ports] as const;
  const listen = (port: number) => `listen 127.0.0.1:${port} 3000`;
  const [BLUE, GREEN, UNUSED] = [16, 17, 18];
  // The relay gets its configuration before the boots, so that the first reports are kept.
  host.conf('blue', ...lines(BLUE, listen(callersPort)));
  host.conf('other', ...lines(UNUSED, listen(otherPort)));
  await host.start();
  const blue = await boot(host, 'out/test.eif', BLUE);
  await boot(host, 'out/nitro.eif', UNUSED);

  // The two enclaves run two different images.
  await expect.poll(() => get(callersPort, '/livez').then(({ status }) => status, String)).toBe(200);
  await expect.poll(() => get(otherPort, '/livez').then(({ status }) => status, String)).toBe(200);
  const [blueKey, otherKey] = [await fetchKey(callersPort), await fetchKey(otherPort)];
  expect(blueKey).not.toBe(otherKey);
  expect(await handOver(host, BLUE)).toBe('accepted');
  // On a busy machine, an emulated enclave may give up on its upstream.
  await expect
    .poll(() => fetchTemperature(callersPort, 'San Francisco').catch(String))
    .toBe(Math.trunc(computeTemperature('San Francisco')));
  const readBootReport = (name: string) => JSON.parse(host.reports(name).split('\n')[0] ?? '');
  expect([readBootReport('blue'), readBootReport('other')]).toMatchObject([
    { event: 'boot' },
    { event: 'boot', app: 'weather' },
  ]);
  expect(readBootReport('blue').pcr0).not.toBe(readBootReport('other').pcr0);

  // Another enclave of blue's image starts while blue runs. Blue's port then forwards to the new one, and no
  // caller notices.
  host.conf('green', ...lines(GREEN));
  await host.reload();
  const green = await boot(host, 'out/test.eif', GREEN);
  expect(await handOver(host, GREEN)).toBe('accepted');
  expect(readBootReport('green').pcr0).toBe(readBootReport('blue').pcr0);
  const keys: string[] = [];
  let isOver = false;
  const load = (async () => {
    while (!isOver) keys.push(await fetchKey(callersPort));
  })();
  await expect.poll(() => keys.length).toBeGreaterThan(3);
  host.conf('blue', ...lines(BLUE));
  host.conf('green', ...lines(GREEN, listen(callersPort)));
  await host.reload();
  await expect.poll(() => keys.at(-1)).not.toBe(blueKey);
  isOver = true;
  await load;
  expect(new Set(keys).size).toBe(2);
  await expect
    .poll(() => fetchTemperature(callersPort, 'Tokyo').catch(String))
    .toBe(Math.trunc(computeTemperature('Tokyo')));

  // Blue ends, and the others continue.
  const openConnection = await dialFrom('127.0.0.1', otherPort);
  host.removeConf('blue');
  await host.reload();
  await blue.end();
  expect(await fetchKey(callersPort)).toBe(keys.at(-1));
  openConnection.end('GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await text(openConnection)).toMatch(/^HTTP\/1\.1 200 /);

  // While green is down, its callers are refused immediately.
  await green.end();
  await expect
    .poll(() => get(callersPort, '/livez').then(String, (error) => error.cause?.code))
    .toBe('ECONNREFUSED');
  expect(await fetchKey(otherPort)).toBe(otherKey);
}, 600_000);
