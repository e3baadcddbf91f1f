/**
 * An emulated Nitro enclave and its parent. QEMU's machine `nitro-enclave` measures and boots the unchanged
 * image, and vsock_host replaces the parent's vsock.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageParts } from '../../../src/cli/image/eif/format.ts';
import { readTraffic, type Traffic } from './record.ts';

const HEARTBEAT_PORT = 9000;
const HEARTBEAT = 0xb7;
const MEMORY_MIB = 512;
export const BOOT_MS = 60_000;

/** Messages about faults of the emulation that another boot may not have. */
const EMULATION_FAULTS = [
  // QEMU's NSM has lost a request.
  /Expected response buffer after request buffer in virtqueue/,
  // The machine was too busy to deliver the ticks of the timer that the kernel counts at its start.
  /Kernel panic - not syncing: IO-APIC \+ timer doesn't work/,
];

/** The kernel misses the timer within seconds, so that all boots take less than the limit of a hook. */
const MAX_BOOTS = 6;

/** Boots up to `MAX_BOOTS` times, as long as a fault of the emulation keeps the enclave from answering. */
export async function bootWithNsm<T>(boot: () => Promise<T>): Promise<T> {
  for (let boots = 1; ; boots++) {
    try {
      return await boot();
    } catch (error) {
      // The error of `waitForAnswer` contains the console's output.
      if (boots === MAX_BOOTS || !EMULATION_FAULTS.some((fault) => fault.test(String(error)))) throw error;
      process.stdout.write(`boot ${boots} failed by a fault of the emulation\n`);
    }
  }
}

/**
 * Returns the processor's frequency in kHz, or 2,000,000 if the kernel does not report it. The emulated clock
 * has the same frequency.
 */
function processorKhz(): number {
  const mhz = /^cpu MHz\s*: ([\d.]+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1];
  return Math.round(Number(mhz ?? 2000) * 1000);
}

/** Prints how long a boot took. */
export function printBoot(eif: string, { heartbeatMs = 0 }: Machine, answeringMs: number): void {
  const [heartbeat, answer] = [heartbeatMs, answeringMs].map(Math.round);
  process.stdout.write(`${eif}: heartbeat after ${heartbeat} ms, first answer after ${answer} ms\n`);
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  json(): unknown;
}

export class Machine {
  readonly dir = mkdtempSync(join(tmpdir(), 'enclave-'));
  readonly #record = join(this.dir, 'record');
  readonly #servers: Server[] = [];
  readonly #host: ChildProcess;
  readonly #ready: Promise<unknown>;
  #qemu: ChildProcess | undefined;
  #console = '';
  #exit: Promise<unknown> | undefined;
  #startedAt = 0;
  readonly #memoryMib: number;
  readonly #cpus: number;
  readonly #acpi: boolean;
  /** The time at which the heartbeat of the enclave arrived, in milliseconds after its start. */
  heartbeatMs: number | undefined;

  /**
   * @param vsockHost the compiled backend
   * @param recorded whether to record all packets between parent and enclave
   * @param memoryMib the machine's memory
   * @param cpus the number of its processors
   * @param acpi whether ACPI tables describe the machine, with other firmware, instead of MP tables
   * @param cid the enclave's CID
   */
  constructor(
    vsockHost: string,
    { recorded = false, memoryMib = MEMORY_MIB, cpus = 2, acpi = false, cid = 4 } = {},
  ) {
    this.#memoryMib = memoryMib;
    this.#cpus = cpus;
    this.#acpi = acpi;
    const record = recorded ? [this.#record] : [];
    this.#host = spawn(vsockHost, [this.dir, String(cid), ...record], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#ready = once(this.#host.stdout as NodeJS.ReadableStream, 'data');
    this.listen(HEARTBEAT_PORT, (socket) => {
      socket.once('data', (bytes) => {
        if (bytes.length === 1 && bytes[0] === HEARTBEAT) {
          this.heartbeatMs ??= performance.now() - this.#startedAt;
          socket.end(bytes);
        } else {
          socket.destroy();
        }
      });
    });
  }

  /** Listens on a port of the parent, to which the enclave connects at CID 3. */
  listen(port: number, handle: (socket: Socket) => void): void {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      handle(socket);
    });
    server.listen(join(this.dir, `${port}.sock`));
    this.#servers.push(server);
  }

  /** Boots an image. @param emulator the folder that findEmulator returns */
  async start(emulator: string, eif: string): Promise<void> {
    const acpi = this.#acpi ? 'on' : 'off';
    await this.#spawn(emulator, [
      '-M',
      `nitro-enclave,vsock=parent,id=boot-test,acpi=${acpi}`,
      '-kernel',
      eif,
      // The only clock of such a machine is the processor's. Hardware reports its frequency, and the emulator
      // doesn't: on a busy machine, the kernel fails to measure it, and waits forever. No register measures
      // this option: the image itself is booted unchanged.
      ...(this.#acpi ? ['-append', `tsc_early_khz=${processorKhz()}`] : []),
    ]);
  }

  /** Boots the same system on a machine that has no NSM and does not know enclave images. */
  async startWithoutNsm(emulator: string, { kernel, cmdline, ramdisks }: ImageParts): Promise<void> {
    writeFileSync(join(this.dir, 'kernel'), kernel);
    writeFileSync(join(this.dir, 'ramdisks'), Buffer.concat(ramdisks));
    await this.#spawn(emulator, [
      '-M',
      'microvm,acpi=off,pcie=off,memory-backend=memory',
      '-object',
      `memory-backend-memfd,id=memory,size=${this.#memoryMib}M,share=on`,
      '-device',
      'vhost-user-vsock-device,chardev=parent',
      '-kernel',
      join(this.dir, 'kernel'),
      '-initrd',
      join(this.dir, 'ramdisks'),
      '-append',
      cmdline,
    ]);
  }

  async #spawn(emulator: string, machine: readonly string[]): Promise<void> {
    await this.#ready;
    this.#startedAt = performance.now();
    this.#qemu = spawn(
      join(emulator, 'lib/ld-linux-x86-64.so.2'),
      [
        '--library-path',
        join(emulator, 'lib'),
        join(emulator, 'qemu-system-x86_64'),
        '-L',
        join(emulator, 'roms'),
        '-m',
        `${this.#memoryMib}M`,
        '-smp',
        String(this.#cpus),
        '-accel',
        'tcg',
        '-cpu',
        'max',
        '-nographic',
        // Nitro's machine resets by its keyboard controller, which this machine lacks by default.
        '-device',
        'i8042',
        '-no-reboot',
        '-chardev',
        `socket,id=parent,path=${join(this.dir, 'vhost.sock')}`,
        '-monitor',
        'none',
        '-serial',
        'stdio',
        ...machine,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    for (const stream of [this.#qemu.stdout, this.#qemu.stderr]) {
      stream?.on('data', (chunk) => {
        this.#console += chunk;
      });
    }
    this.#exit = once(this.#qemu, 'exit');
  }

  /** Returns the packets between parent and enclave so far. */
  traffic(): Traffic {
    return readTraffic(readFileSync(this.#record));
  }

  console(): string {
    return this.#console;
  }

  /** Resolves once the machine has ended by itself. */
  async ended(): Promise<void> {
    await this.#exit;
  }

  get running(): boolean {
    return this.#qemu?.exitCode === null && this.#qemu.signalCode === null;
  }

  /** Connects to a port of the enclave, as the parent does. */
  connect(port: number): Socket {
    const socket = connect({ path: join(this.dir, 'guest.sock'), allowHalfOpen: true });
    socket.write(`${port}\n`);
    return socket;
  }

  request(path: string, body?: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const request = httpRequest({
        createConnection: () => this.connect(3000),
        path,
        method: payload === undefined ? 'GET' : 'POST',
        headers: {
          host: 'enclave',
          connection: 'close',
          ...(payload !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
          }),
        },
        timeout: 600_000,
      });
      request.on('timeout', () => request.destroy(new Error('no answer')));
      request.on('error', reject);
      request.on('response', async (response) => {
        try {
          let text = '';
          for await (const chunk of response.setEncoding('utf8')) text += chunk;
          resolve({ status: response.statusCode ?? 0, text, json: () => JSON.parse(text) });
        } catch (error) {
          reject(error);
        }
      });
      request.end(payload);
    });
  }

  /**
   * Waits for the first answer over vsock. Without one, stops the machine before it fails: another may be
   * booted in its place.
   *
   * @returns the milliseconds since the start of the machine
   */
  async waitForAnswer(): Promise<number> {
    for (;;) {
      try {
        const { status } = await this.request('/livez');
        if (status === 200) return performance.now() - this.#startedAt;
      } catch {
        // The server does not answer yet.
      }
      if (!this.running || performance.now() - this.#startedAt > BOOT_MS) {
        await this.stop();
        throw new Error(`the enclave does not answer; its console:\n${this.#console}`);
      }
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  /** Hands the secrets over as the parent does. @returns the enclave's verdict */
  async handOver(text: string): Promise<string> {
    const socket = this.connect(7777);
    socket.end(text);
    let verdict = '';
    for await (const chunk of socket.setEncoding('utf8')) verdict += chunk;
    return verdict.trim();
  }

  /**
   * Stops the parent for `ms` milliseconds. During this time, it neither reads from the enclave nor sends
   * to it.
   */
  async pauseParent(ms: number): Promise<void> {
    this.#host.kill('SIGSTOP');
    await new Promise((done) => setTimeout(done, ms));
    this.#host.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    if (this.running) this.#qemu?.kill('SIGKILL');
    await this.#exit;
    this.#host.kill('SIGKILL');
    for (const server of this.#servers) server.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
