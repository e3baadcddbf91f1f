/**
 * Fake of nitro-cli in the machine of the units. As with the real program, a helper process stays in the
 * process group that started it, and the enclave lives as long as the helper. An enclave's vsock is TCP on
 * loopback, as in the test build of the relay (test/enclave/vsock_stand_in.cc). Its server answers with a key
 * that is new at each start, and serves metrics. `GET /fault?FAULT` causes a fault. `GET /source?SOURCE` sets
 * the state of the source from which the enclave's task reads.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { parseArgs } from 'node:util';
import type { PriceTask, Source } from './price_task.ts';

const FOLDER = '/run/nitro_enclaves';
/** Name of an image whose enclave ends during its boot. */
const BROKEN = 'broken';
const REPORTS = 7778;
const EVENTS = 7779;
/** Number of events, of which the relay can keep only a part when one enclave sends them at once. */
const FLOOD = 1200;

interface Enclave {
  readonly EnclaveName: string;
  readonly EnclaveID: string;
  readonly EnclaveCID: number;
  readonly ProcessID: number;
}

const network = process.env['VSOCK_NET'] ?? '';
const [command, ...commandArguments] = process.argv.slice(2);
const { values } = parseArgs({
  args: commandArguments,
  options: {
    'enclave-name': { type: 'string', default: '' },
    'enclave-id': { type: 'string', default: '' },
    'enclave-cid': { type: 'string', default: '' },
    'eif-path': { type: 'string', default: '' },
    'cpu-count': { type: 'string' },
    memory: { type: 'string' },
    helper: { type: 'string' },
  },
});
const name = values['enclave-name'];
const cid = Number(values['enclave-cid'] || 16);

function listEnclaves(): Enclave[] {
  return readdirSync(FOLDER)
    .filter((file) => !file.startsWith('.'))
    .map((file): Enclave => JSON.parse(readFileSync(`${FOLDER}/${file}`, 'utf8')))
    .filter(({ ProcessID }) => existsSync(`/proc/${ProcessID}`));
}

function fail(code: string): never {
  process.stderr.write(`[ ${code} ]\n`);
  process.exit(1);
}

/** Sends lines as init does: on a connection of their own, from the enclave's CID. */
function report(text: string, port = REPORTS): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: `${network}.3`, port, localAddress: `${network}.${cid}` });
    socket.once('error', () => resolve()).once('close', () => resolve());
    socket.end(`${text}\n`);
    socket.resume();
  });
}

type Fault = 'secrets' | 'clock' | 'figures' | 'part' | 'closed' | 'uncaught' | 'flood';
/** State of a task before it starts: this server starts it with the first `GET /source?SOURCE`. */
const QUIET = { name: 'price', failures: 0, isOverdue: false };

/** Server of an enclave, with its key, its faults and its metrics. */
class EnclaveServer {
  readonly #key = randomUUID();
  readonly #startedAt = Date.now() / 1000;
  readonly #faults = new Set<Fault>();
  #price: PriceTask | undefined;
  #attest: ((nonce: string) => Promise<string>) | undefined;
  readonly #server = createServer((request, response) => {
    this.#answer(request.url ?? '').then(
      ([status, text]) => response.writeHead(status).end(text),
      (error) => response.writeHead(500).end(String(error)),
    );
  });
  readonly #figures = createServer((_request, response) => response.end(this.#formatFigures()));

  async listen(): Promise<void> {
    for (const [server, port] of [
      [this.#server, 3000],
      [this.#figures, 9100],
    ] as const) {
      await new Promise<void>((resolve) => server.listen(port, `${network}.${cid}`, resolve));
    }
  }

  async #answer(url: string): Promise<[status: number, text: string]> {
    const { pathname, search, searchParams } = new URL(url, 'http://enclave');
    const has = (fault: Fault) => this.#faults.has(fault);
    if (pathname === '/fault') return [200, await this.#fail(search.slice(1) as Fault)];
    if (pathname === '/source') return [200, await this.#setSource(search.slice(1) as Source)];
    if (pathname === '/readyz' && has('secrets')) return [503, '{"missing":["API_KEY"]}'];
    if (pathname === '/readyz') {
      const warnings = [...(has('clock') ? ['no document'] : []), ...(this.#price?.tasks.warnings() ?? [])];
      return [200, JSON.stringify({ ready: true, ...(warnings.length > 0 && { warnings }) })];
    }
    if (pathname === '/boot') {
      const last_end = has('part') ? 'the inbound bridge was ended by signal 9' : null;
      return [200, JSON.stringify({ clock: { source: 'ptp0', difference_ms: 1 }, last_end })];
    }
    if (pathname === '/get_attestation') {
      return [200, (await this.#attest?.(searchParams.get('nonce') ?? '')) ?? ''];
    }
    return [200, this.#key];
  }

  async #fail(fault: Fault): Promise<string> {
    this.#faults.add(fault);
    if (fault === 'secrets') await this.#awaitSecrets();
    const event = { event: fault, time_ms: Date.now(), class: 'TypeError', place: 'main.js:1:2' };
    if (fault === 'uncaught') await report(JSON.stringify(event), EVENTS);
    if (fault === 'flood') {
      const refusal = { event: 'request', time_ms: Date.now(), status: 503, code: 'OVERLOADED', ms: 1 };
      await report(Array<string>(FLOOD).fill(JSON.stringify(refusal)).join('\n'), EVENTS);
    }
    // This timer keeps the enclave running after both servers have closed.
    setInterval(() => {}, 60_000);
    if (fault === 'closed') for (const server of [this.#server, this.#figures]) server.close();
    return fault;
  }

  async #setSource(source: Source): Promise<string> {
    // The module is imported only here, since an enclave must start fast.
    const { startPriceTask } = await import('./price_task.ts');
    this.#price ??= await startPriceTask((fields) => {
      void report(JSON.stringify({ event: 'task', time_ms: Date.now(), ...fields }), EVENTS);
    });
    this.#price.source = source;
    return source;
  }

  /** Answers attestations, and ends the fault once a message has arrived at the port for secrets. */
  async #awaitSecrets(): Promise<void> {
    const { attestImage } = await import('./attest_image.ts');
    const { rootPem, attest } = await attestImage(values['eif-path']);
    writeFileSync(`${FOLDER}/.root.pem`, rootPem);
    this.#attest = attest;
    const inbox = createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.resume().once('end', () => {
        this.#faults.delete('secrets');
        socket.end('accepted\n');
      });
    });
    await new Promise<void>((resolve) => inbox.listen(7777, `${network}.${cid}`, resolve));
  }

  #formatFigures(): string {
    const figure = (fault: Fault) => Number(this.#faults.has(fault));
    const now = Date.now() / 1000;
    const tasks = this.#price?.tasks.states() ?? [QUIET];
    return [
      `sui_enclave_secrets_missing ${figure('secrets')}`,
      `sui_enclave_clock_confirmed ${1 - figure('clock')}`,
      `sui_enclave_part_ended ${figure('part')}`,
      `sui_enclave_uncaught_errors_total ${figure('uncaught')}`,
      'sui_enclave_events_dropped_total 0',
      ...tasks.flatMap(({ name: task, failures, isOverdue }) => [
        `sui_enclave_task_failures{task="${task}"} ${failures}`,
        `sui_enclave_task_overdue{task="${task}"} ${Number(isOverdue)}`,
      ]),
      `sui_enclave_snapshot_seconds ${now - 600 * figure('figures')}`,
      `process_start_time_seconds ${this.#startedAt}`,
      '# EOF\n',
    ].join('\n');
  }
}

async function runHelper(id: string): Promise<void> {
  await report('{"event":"boot"}');
  if (name === BROKEN) {
    await report('{"event":"end","reason":"the server ended"}');
    process.exit(1);
  }
  await new EnclaveServer().listen();
  // The modules are imported only here, since the other commands must be fast.
  const { measureImage } = await import('../../../src/cli/image/eif/measure.ts');
  const { readEif } = await import('../../../src/cli/image/eif/read.ts');
  const { pcr0 } = measureImage(readEif(readFileSync(values['eif-path'])));
  const enclave = {
    EnclaveName: name,
    EnclaveID: id,
    EnclaveCID: cid,
    ProcessID: process.pid,
    Flags: 'NONE',
    Measurements: { PCR0: pcr0 },
  };
  writeFileSync(`${FOLDER}/.${id}`, JSON.stringify(enclave));
  renameSync(`${FOLDER}/.${id}`, `${FOLDER}/${id}`);
}

async function start(): Promise<void> {
  // Opens the driver, as nitro-cli does.
  closeSync(openSync('/dev/nitro_enclaves', 'r+'));
  if (listEnclaves().some(({ EnclaveCID }) => EnclaveCID === cid)) fail('E33');
  const id = `i-1-enc${randomUUID().slice(0, 8)}`;
  const args = process.argv.slice(1);
  const helper = spawn(process.execPath, [...args, '--helper', id], { detached: true, stdio: 'ignore' });
  let hasEnded = false;
  helper.once('exit', () => {
    hasEnded = true;
  });
  while (!existsSync(`${FOLDER}/${id}`)) {
    if (hasEnded) fail('E36');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  process.stdout.write(readFileSync(`${FOLDER}/${id}`));
  process.exit(0);
}

function terminate(): void {
  const enclave = listEnclaves().find(({ EnclaveID }) => EnclaveID === values['enclave-id']);
  if (!enclave) fail('E08');
  process.kill(enclave.ProcessID, 'SIGKILL');
  rmSync(`${FOLDER}/${enclave.EnclaveID}`);
  process.stdout.write('{}');
}

if (values.helper !== undefined) await runHelper(values.helper);
else if (command === 'describe-enclaves') process.stdout.write(JSON.stringify(listEnclaves()));
else if (command === 'run-enclave') await start();
else if (command === 'terminate-enclave') terminate();
else fail('E14');
