/**
 * Boots out/test.eif, which is built by the recipe of the production image. Its application fails on request.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { ed25519 } from '@noble/curves/ed25519.js';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { parsePcrs } from '../../../src/library/attestation/image.ts';
import { forwardTls } from '../../../src/testing/tls.ts';
import {
  computeTemperature,
  DEV_API_KEY,
  type FakeWeatherApi,
  startFakeWeatherApi,
} from '../../../src/testing/weather_api.ts';
import { endpointTls } from './applications.ts';
import { bootWithNsm, Machine, printBoot } from './machine.ts';

const EIF = 'out/test.eif';
const LOG_PORT = 7778;
const EVENTS_PORT = 7779;
const METRICS_PORT = 9100;
const WEATHER_PORT = 8101;
const BULK_PORT = 8102;
const BULK_BYTES = 100 * 1024 * 1024;

let machine: Machine;
/** Events of all enclaves, in the order of their arrival. */
const events: object[] = [];
let weather: FakeWeatherApi;
/** Bytes that the bulk endpoint has received on each of its connections, and their digest. */
const bulk: { received: number; sha256: Promise<string> }[] = [];
const block = randomBytes(64 * 1024);

/** Starts an enclave whose parent forwards its endpoints to fakes, and keeps its reports. */
function boot(cpus = 2, acpi = false) {
  return bootWithNsm(() => bootOnce(cpus, acpi));
}

async function bootOnce(cpus: number, acpi: boolean) {
  const newMachine = new Machine(inject('vsockHost'), { cpus, acpi });
  const reports: string[] = [];
  newMachine.listen(LOG_PORT, (socket) => {
    socket.on('data', (chunk) => reports.push(...String(chunk).trim().split('\n')));
    socket.on('end', () => socket.end());
  });
  newMachine.listen(EVENTS_PORT, (socket) => {
    createInterface(socket).on('line', (line) => events.push(JSON.parse(line)));
  });
  newMachine.listen(WEATHER_PORT, (socket) => forwardTls(socket, weather.origin, endpointTls()));
  newMachine.listen(BULK_PORT, exchange);
  await newMachine.start(inject('emulator'), EIF);
  return { machine: newMachine, reports, answeringMs: await newMachine.waitForAnswer() };
}

/** Sends BULK_BYTES while it receives, and then ends its side. */
function exchange(socket: Socket): void {
  const hash = createHash('sha256');
  const done = Promise.withResolvers<string>();
  const connection = { received: 0, sha256: done.promise };
  bulk.push(connection);
  socket.on('data', (chunk) => {
    connection.received += chunk.length;
    hash.update(chunk);
  });
  socket.on('end', () => done.resolve(hash.digest('hex')));
  let remaining = BULK_BYTES;
  const send = () => {
    while (remaining > 0) {
      remaining -= block.length;
      if (!socket.write(block)) return;
    }
    socket.end();
  };
  socket.on('drain', send);
  send();
}

/** Returns the digest of the bytes that the bulk endpoint sends. */
function hashParentBytes(): string {
  const hash = createHash('sha256');
  for (let sent = 0; sent < BULK_BYTES; sent += block.length) hash.update(block);
  return hash.digest('hex');
}

/** Returns the digest of the bytes that the application sends. */
function hashEnclaveBytes(): string {
  const hash = createHash('sha256');
  for (let remaining = BULK_BYTES; remaining > 0; remaining -= 64 * 1024) {
    hash.update(Buffer.alloc(Math.min(remaining, 64 * 1024), remaining % 251));
  }
  return hash.digest('hex');
}

beforeAll(async () => {
  weather = await startFakeWeatherApi();
  const { machine: firstMachine, answeringMs } = await boot();
  machine = firstMachine;
  printBoot(EIF, machine, answeringMs);
});
afterAll(async () => {
  await machine.stop();
  await weather.close();
});

describe('the test image', () => {
  test('differs from the production image in its registers, and has the same boot system', () => {
    const [testImage, production] = ['out/test.pcrs', 'out/nitro.pcrs'].map((path) =>
      parsePcrs(readFileSync(path, 'utf8')),
    );
    expect(testImage?.pcr0).not.toBe(production?.pcr0);
    expect(testImage?.pcr1).toBe(production?.pcr1);
    expect(testImage?.pcr2).not.toBe(production?.pcr2);
  });

  test('reaches its endpoint through vsock and TLS, and signs what it read', async () => {
    expect(await machine.handOver(JSON.stringify({ API_KEY: DEV_API_KEY }))).toBe('accepted');
    const answer = await machine.request('/process_data', { payload: { location: 'San Francisco' } });
    expect(answer.text).toMatch(/"location":"San Francisco"/);
    const { response, signature } = answer.json() as {
      response: { intent: number; timestamp_ms: number; data: { location: string; temperature: number } };
      signature: string;
    };
    expect(response.data.temperature).toBe(Math.trunc(computeTemperature('San Francisco')));
    const { pk, endpoints_status } = (await machine.request('/health_check')).json() as {
      pk: string;
      endpoints_status: object;
    };
    expect(endpoints_status).toMatchObject({ 'api.weatherapi.com': true });
    const signed = WeatherResponse.message
      .serialize({
        intent: response.intent,
        timestamp_ms: BigInt(response.timestamp_ms),
        payload: { location: response.data.location, temperature: BigInt(response.data.temperature) },
      })
      .toBytes();
    expect(ed25519.verify(Buffer.from(signature, 'hex'), signed, Buffer.from(pk, 'hex'))).toBe(true);
    expect(weather.asked).toEqual(['san francisco']);
  });

  test('gives the parent its metrics and its events, including an error', async () => {
    await machine.request('/process_data', { payload: { location: '' } });
    expect(events).toContainEqual(expect.objectContaining({ event: 'listening' }));
    const refused = { event: 'request', status: 400, request_id: expect.any(String) };
    await expect.poll(() => events).toContainEqual(expect.objectContaining(refused));
    const socket = machine.connect(METRICS_PORT);
    socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const metrics = await text(socket);
    expect(metrics).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(metrics).toMatch(/^sui_enclave_sealed_requests_total 0$/m);
    expect(metrics).toMatch(/^# EOF$/m);
  });

  test('leaves most of its memory free', async () => {
    const { memory } = (await machine.request('/inside')).json() as { memory: Record<string, number> };
    const [total, free, server] = ['total', 'available', 'server'].map((name) =>
      Math.round((memory[name] as number) / 1024 ** 2),
    ) as [number, number, number];
    process.stdout.write(`${EIF}: ${total - free} MiB of ${total} in use, ${server} by the server\n`);
    expect(free).toBeGreaterThan(total / 2);
    expect(server).toBeGreaterThan(0);
  });

  test('has a clock that the NSM confirms, so /readyz has no warning', async () => {
    expect((await machine.request('/readyz')).json()).toEqual({ ready: true });
  });

  test('has its clock steered by the NSM, in a process that is not root', async () => {
    const stateOwner = async () =>
      ((await machine.request('/inside')).json() as { clock_state_owner: number }).clock_state_owner;
    // At boot, init itself wrote the state.
    await expect.poll(stateOwner, { interval: 1000 }).toBe(1004);
    const { clock } = (await machine.request('/boot')).json() as {
      clock: { source: string; difference_ms: number };
    };
    expect(clock.source).toBe('nsm');
    // The emulator's NSM returns the time in whole seconds, and the emulated clock drifts.
    expect(Math.abs(clock.difference_ms)).toBeLessThan(5000);
  });

  test('gives the server no right that it does not need', async () => {
    expect((await machine.request('/inside')).json()).toMatchObject({
      uid: '1000 1000 1000 1000',
      gid: '1000 1000 1000 1000',
      groups: '',
      capabilities: '0000000000000000',
      bounding_set: '0000000000000000',
      // Seccomp allows neither vsock sockets nor new processes: see restrict_calls of init.
      seccomp: '2',
      start_of_a_process: 'EPERM',
      threads: expect.toSatisfy((threads: number) => threads < 16),
      most_threads: '256',
      kptr_restrict: '2',
      may_gain: false,
      processes: 1,
      programs: ['node'],
      environment: [
        'APP',
        'CLOCK_REQUIRED',
        'CLOCK_STATE',
        'EVENTS',
        'EVENTS_FD',
        'HOST',
        'LAST_END',
        'METRICS_PORT',
        'NODE_EXTRA_CA_CERTS',
        'NSM_REQUIRED',
        'PORT',
        'REPORT_FD',
        'REQUEST_TIMEOUT_MS',
        'SECRETS_FD',
      ],
      writable: [],
      // No other process can have the NSM attest a key.
      nsm: '1000 600',
      devices: ['full', 'nsm', 'null', 'random', 'urandom', 'zero'],
    });
  });

  // It is unknown whether Nitro's machines have ACPI tables.
  test.each([
    [2, 'MP tables', false],
    [4, 'MP tables', false],
    [1, 'ACPI', true],
    [2, 'ACPI', true],
    [4, 'ACPI', true],
  ])('uses %i processors that it finds by %s', async (cpus, _tables, acpi) => {
    const isFirst = cpus === 2 && !acpi;
    const { machine: machineUnderTest } = isFirst ? { machine } : await boot(cpus, acpi);
    onTestFinished(() => (isFirst ? undefined : machineUnderTest.stop()));
    if (!isFirst) await machineUnderTest.handOver(JSON.stringify({ API_KEY: DEV_API_KEY }));
    expect((await machineUnderTest.request('/inside')).json()).toMatchObject({ has_acpi: acpi });
    expect(machineUnderTest.console()).not.toMatch(/ACPI Error/);
    const { ticks } = (await machineUnderTest.request('/work', {})).json() as { ticks: number[] };
    process.stdout.write(`work of ${cpus} processors: ${ticks.join(', ')} ticks\n`);
    expect(ticks).toHaveLength(cpus);
    for (const tickCount of ticks) expect(tickCount).toBeGreaterThan(0);
  });

  // Both drivers of virtio-vsock hold replies back while the other side does not read, which could cause a
  // deadlock.
  test('transfers 100 MB in each direction on four connections, although the parent reads nothing for 10 s', async () => {
    const times = 4;
    const bulkRequests = Array.from({ length: times }, () => machine.request('/bulk', { bytes: BULK_BYTES }));
    // The pause begins once all transfers run, since a connection that opened in the pause would time out.
    // Short connections are health checks.
    const listTransfers = () => bulk.filter(({ received }) => received > 100_000);
    await vi.waitUntil(() => listTransfers().length === times, { timeout: 100_000 });
    await machine.pauseParent(10_000);
    const resumedAt = performance.now();
    const answers = (await Promise.all(bulkRequests)).map((answer) => answer.json());
    expect(answers).toEqual(Array(times).fill({ received: BULK_BYTES, sha256: hashParentBytes() }));
    const digests = await Promise.all(listTransfers().map(({ sha256 }) => sha256));
    expect(digests).toEqual(Array(times).fill(hashEnclaveBytes()));
    const ms = Math.round(performance.now() - resumedAt);
    process.stdout.write(`no stall: ${times} x 100 MB each way within ${ms} ms after the pause\n`);
  }, 500_000);

  test('answers 200 connections at once', async () => {
    const sockets = Array.from({ length: 200 }, () => machine.connect(3000));
    // All connections are open before the first request is sent.
    await new Promise((done) => setTimeout(done, 2000));
    const answers = await Promise.all(
      sockets.map(async (socket) => {
        socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
        let text = '';
        for await (const chunk of socket.setEncoding('utf8')) text += chunk;
        return text.split('\r\n')[0];
      }),
    );
    expect(new Set(answers)).toEqual(new Set(['HTTP/1.1 200 OK']));
  });

  test('survives an error outside any request, and keeps its key', async () => {
    const key = async () => ((await machine.request('/health_check')).json() as { pk: string }).pk;
    const before = await key();
    await machine.request('/end', { how: 'throw' });
    await expect.poll(() => machine.console()).toMatch(/an error occurred outside/);
    expect(await key()).toBe(before);
    expect(machine.console()).not.toMatch(/must not be seen/);
  });
});

test.each([
  ['exit', 'the server ended with status 7'],
  ['abort', 'the server was ended by signal 6'],
])('the enclave ends when its server does (%s), and says why on the log port', async (ending, reason) => {
  const { machine: secondMachine, reports } = await boot();
  try {
    await secondMachine.handOver(JSON.stringify({ API_KEY: DEV_API_KEY }));
    await secondMachine.request('/end', { how: ending });
    await secondMachine.ended();
    const lines = reports.map((line) => JSON.parse(line));
    expect(lines.filter(({ event }) => event === 'end')).toEqual([{ event: 'end', reason }]);
  } finally {
    await secondMachine.stop();
  }
});
