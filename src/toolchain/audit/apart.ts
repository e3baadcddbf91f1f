/**
 * Runs a function of this program in a process of its own. Files of an author may make that process print
 * anything, run for hours or take all memory. Only printable lines, plain data and known errors come back.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { isEnclaveError } from 'sui-enclave/errors';
import { printable } from 'sui-enclave-cli/printable';
import { AUDIT_CODES, type AuditCode, AuditError } from './errors.ts';

/** Maximum length of a printed line, in characters. */
const MAX_LINE = 300;
/** Maximum number of printed lines that an error quotes, if the process ends without an outcome. */
const MAX_LAST_LINES = 20;

/** An exported function. It gets an order, and may send requests to the process that gave the order. */
export interface Task {
  /** The URL of the function's module. */
  readonly module: string;
  readonly name: string;
}

/** Sends a request to the process that gave the order. */
export type Ask = (request: unknown) => Promise<unknown>;

/** Limits of a process that only computes: it writes no file and starts no program. */
export interface Bounds {
  /** Time limit of the computation in milliseconds, which does not count waiting for answers. */
  readonly ms: number;
  /** Memory for JavaScript in megabytes; WebAssembly may use the same amount in addition. */
  readonly megabytes: number;
}

export const BOUNDS: Bounds = { ms: 30_000, megabytes: 1024 };

/**
 * Limit on CPU time, longer than the time limit in `BOUNDS`. The system ends the process at this limit, even
 * if the parent process can't.
 */
const MAX_CPU_SECONDS = 180;

export interface ApartOptions {
  /**
   * Limits of the process. Without limits, the process may take any time and do everything that this program
   * may do.
   */
  readonly bounds?: Bounds | undefined;
  /** Receives what the process prints, a line at a time. */
  readonly log?: ((line: string) => void) | undefined;
  /** Answers the requests of the process. */
  readonly answer?: Ask | undefined;
}

/** The outcome of an order. */
export type Outcome =
  | { readonly value: unknown }
  | {
      /** Code of an `EnclaveError`. */
      readonly code: string;
      readonly message: string;
    };

/** Messages between the processes, whose values are copied as `structuredClone` copies them. */
type ToChild = { readonly order: unknown } | { readonly id: number; readonly outcome: Outcome };
type FromChild =
  | { readonly outcome: Outcome; readonly isLimit: boolean }
  | { readonly id: number; readonly request: unknown };

/**
 * Runs a function in a process of its own.
 *
 * @param subject what the process does, for the message of an error
 * @throws AuditError: SOURCE_TOO_LARGE, if it exceeds its bounds; Error, if it ended without an outcome
 */
export async function runApart(
  subject: string,
  { module, name }: Task,
  order: unknown,
  { bounds, log = () => undefined, answer }: ApartOptions,
): Promise<Outcome> {
  const program = `import { serve } from ${JSON.stringify(import.meta.url)}; import { ${name} as run } from ${JSON.stringify(module)}; serve(run);`;
  const options = bounds === undefined ? [] : createOptions(bounds);
  const argv = [process.execPath, ...options, '--input-type=module', '--eval', program];
  const limit = bounds === undefined ? '' : `ulimit -t ${MAX_CPU_SECONDS} && `;
  const child = spawn('/bin/sh', ['-c', `${limit}exec "$@"`, 'sh', ...argv], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    serialization: 'advanced',
    ...(bounds !== undefined && { env: {} }),
  });
  const clock = new WorkClock(bounds?.ms, () => child.kill('SIGKILL'));
  let outcomeMessage: Extract<FromChild, { outcome: Outcome }> | undefined;
  const lastLines: string[] = [];
  const send = (message: ToChild) => {
    // The process may have ended, so that the message can't be sent.
    child.send(message as object, () => undefined);
  };
  child.on('message', (message: FromChild) => {
    if ('outcome' in message) outcomeMessage = message;
    else {
      clock.stop();
      void answerRequest(message.request, answer).then((outcome) => {
        clock.start();
        send({ id: message.id, outcome });
      });
    }
  });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream as Readable }).on('line', (line) => {
      const text = printable(line, MAX_LINE);
      log(text);
      if (lastLines.push(text) > MAX_LAST_LINES) lastLines.shift();
    });
  }
  try {
    clock.start();
    send({ order });
    const signal = await new Promise<NodeJS.Signals | null>((resolve, reject) => {
      child.once('error', reject).once('close', (_status, by) => resolve(by));
    });
    const tooLarge = (why: string) => new AuditError('SOURCE_TOO_LARGE', `${subject} takes ${why}`);
    if (clock.isOver) throw tooLarge(`longer than ${clock.seconds} s`);
    if (
      bounds !== undefined &&
      (outcomeMessage?.isLimit === true || (outcomeMessage === undefined && signal !== null))
    ) {
      throw tooLarge(`more memory than ${bounds.megabytes} MB, or recurses too deeply`);
    }
    if (outcomeMessage === undefined)
      throw new Error(`${subject} ended without a result: ${lastLines.join(' ')}`);
    return outcomeMessage.outcome;
  } finally {
    clock.stop();
    child.kill('SIGKILL');
  }
}

/**
 * Runs a computation within bounds.
 *
 * @returns what the function returns
 * @throws AuditError of the function, or SOURCE_TOO_LARGE; Error
 */
export async function computeApart<T>(
  subject: string,
  task: Task,
  order: unknown,
  { bounds = BOUNDS, ...options }: ApartOptions = {},
): Promise<T> {
  const outcome = await runApart(subject, task, order, { ...options, bounds });
  if ('value' in outcome) return outcome.value as T;
  const { code, message } = outcome;
  if (Object.hasOwn(AUDIT_CODES, code)) throw new AuditError(code as AuditCode, message);
  throw new Error(`${subject}: ${code}: ${message}`);
}

async function answerRequest(request: unknown, answer: Ask | undefined): Promise<Outcome> {
  try {
    return { value: await answer?.(request) };
  } catch (error) {
    return { code: 'ANSWER', message: printable((error as Error).message, MAX_LINE) };
  }
}

/**
 * Returns Node's options. They let the process read files, since it loads the program, but do nothing else.
 */
function createOptions({ megabytes }: Bounds): string[] {
  const pages = megabytes * 16;
  return [
    '--permission',
    '--allow-fs-read=*',
    `--max-old-space-size=${megabytes}`,
    `--wasm-max-mem-pages=${pages}`,
  ];
}

/** Counts the time in which a process works, and ends the process at its limit. */
class WorkClock {
  isOver = false;
  readonly #ms: number | undefined;
  readonly #end: () => void;
  #remainingMs: number;
  #startedAt = 0;
  /**
   * Number of reasons why the clock is stopped: each answer that the process waits for is one. The clock also
   * is stopped until its first start.
   */
  #stops = 1;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number | undefined, end: () => void) {
    this.#ms = ms;
    this.#remainingMs = ms ?? 0;
    this.#end = end;
  }

  get seconds(): number {
    return (this.#ms ?? 0) / 1000;
  }

  start(): void {
    if (this.#ms === undefined || --this.#stops > 0) return;
    this.#startedAt = performance.now();
    this.#timer = setTimeout(
      () => {
        this.isOver = true;
        this.#end();
      },
      Math.max(0, this.#remainingMs),
    );
  }

  stop(): void {
    this.#stops += 1;
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#remainingMs -= performance.now() - this.#startedAt;
  }
}

/** Serves orders; runs in the child process. */
export function serve(run: (order: unknown, ask: Ask) => Promise<unknown>): void {
  const waiting = new Map<number, (outcome: Outcome) => void>();
  let count = 0;
  const ask: Ask = async (request) => {
    const id = ++count;
    const outcome = await new Promise<Outcome>((resolve) => {
      waiting.set(id, resolve);
      process.send?.({ id, request } satisfies FromChild);
    });
    if ('value' in outcome) return outcome.value;
    throw new Error(outcome.message);
  };
  process.on('message', (message: ToChild) => {
    if ('order' in message) {
      void runToOutcome(async () => await run(message.order, ask)).then((outcomeMessage) => {
        process.send?.(outcomeMessage satisfies FromChild, undefined, undefined, () => process.exit());
      }, fail);
    } else {
      waiting.get(message.id)?.(message.outcome);
      waiting.delete(message.id);
    }
  });
  // This process has lost its parent, so no process waits for the result any more.
  process.on('disconnect', () => process.exit(1));
}

/** Prints an error as Node prints an uncaught error. */
function fail(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** @throws errors that no file of an author can cause */
async function runToOutcome(
  action: () => Promise<unknown>,
): Promise<Extract<FromChild, { outcome: Outcome }>> {
  try {
    return { outcome: { value: await action() }, isLimit: false };
  } catch (error) {
    if (isEnclaveError(error)) {
      const { code, message } = error;
      return { outcome: { code, message }, isLimit: false };
    }
    // The stack, a string, an array or the memory of WebAssembly is full.
    if (error instanceof RangeError) {
      return { outcome: { code: 'LIMIT', message: error.message }, isLimit: true };
    }
    throw error;
  }
}
