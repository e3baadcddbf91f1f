/**
 * Runs circom's witness generator, in C++ or in Node. It uses no files, since input and output are private.
 */

import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { quantity } from 'sui-enclave/wording';
import { ProverError } from './errors.ts';
import type { CircuitInput } from './input.ts';

/** Error of a witness generator whose input does not satisfy the circuit. */
export class WitnessRefusal extends ProverError {
  constructor() {
    super('PROVER_WITNESS', 'the witness generator refused the input: it does not satisfy the circuit');
  }
}

export interface WitnessOptions {
  readonly timeoutMs?: number;
  /** Ends the generator; generateWitness then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Buffer for the witness, of exactly the witness's size. Default: a new buffer. */
  readonly buffer?: Buffer;
}

/** Maximum size of a witness in bytes. A witness of the full circuit has 33 MB. */
const MAX_WITNESS = 256 * 1024 * 1024;

/**
 * Shell command that runs the generator, which expects file names. Node's own pipes are sockets, which can't
 * be opened by name, so a shell creates real pipes. The shell writes the generator's exit code to descriptor
 * 3. Core dumps are disabled, because the generator aborts if it refuses its input.
 */
const PIPELINE = 'ulimit -c 0; cat | { "$@" /dev/stdin /dev/stdout 2>/dev/null; echo $? >&3; } | cat';

/**
 * Computes the witness for an input, in the format of a `.wtns` file. Anyone who has the witness can prove
 * the login, and knows its token. Overwrite the witness after use.
 *
 * @param generator program and arguments, to which the names of input and output are appended
 * @throws ProverError: WitnessRefusal, or PROVER_WITNESS for any other reason
 */
export async function generateWitness(
  generator: readonly string[],
  input: CircuitInput,
  { timeoutMs = 60_000, signal, buffer }: WitnessOptions = {},
): Promise<Buffer> {
  signal?.throwIfAborted();
  const { stdin, stdout, status, closed, end } = startPipeline(generator);
  const timer = setTimeout(end, timeoutMs);
  signal?.addEventListener('abort', end);
  // A generator that exits early closes its input. Its exit code gives the reason.
  stdin.on('error', () => {});
  stdin.end(JSON.stringify(input));
  try {
    const [witness, exit] = await Promise.all([
      buffer ? readInto(buffer, stdout, end) : read(stdout, MAX_WITNESS, end),
      read(status, 16, end),
      closed,
    ]);
    signal?.throwIfAborted();
    const isWitness = witness.toString('latin1', 0, 4) === 'wtns';
    if (exit.toString() === '0\n' && isWitness) {
      if (buffer && witness.length < buffer.length) throw createSizeError(buffer.length);
      return witness;
    }
    witness.fill(0);
    throw createError(exit.toString().trim(), timeoutMs);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ProverError) throw error;
    throw new ProverError('PROVER_WITNESS', 'the witness generator could not be run');
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}

function startPipeline(generator: readonly string[]) {
  const child = spawn('/bin/sh', ['-c', PIPELINE, 'sh', ...generator], {
    // The pipeline gets a process group of its own, so that all of it can be killed.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore', 'pipe'],
  });
  const closed = new Promise<void>((resolve, reject) => {
    child.once('close', () => resolve());
    child.once('error', reject);
  });
  const end = () => child.pid !== undefined && killGroup(child.pid);
  const [stdin, stdout, , status] = child.stdio as readonly unknown[] as [Writable, Readable, null, Readable];
  return { stdin, stdout, status, closed, end };
}

/**
 * Creates the error for a failure. It leaves out the generator's own messages, which may contain private
 * values.
 *
 * @param exit exit code of the generator: 1 or 134 if it refused its input, by an exception in JavaScript or
 *   an abort in C++. It is empty if the pipeline was killed before it wrote the code
 */
function createError(exit: string, timeoutMs: number): ProverError {
  return exit === '1' || exit === '134'
    ? new WitnessRefusal()
    : new ProverError('PROVER_WITNESS', `the witness generator ${describeFailure(exit, timeoutMs)}`);
}

function describeFailure(exit: string, timeoutMs: number): string {
  if (exit === '') return `did not finish within ${timeoutMs} ms, or was killed`;
  if (exit === '0') return 'wrote no witness';
  // These are the shell's codes for a program that is missing or can't be executed.
  if (exit === '126' || exit === '127') return 'could not be run';
  // The code of a process that a signal ended is the signal's number plus 128.
  return `crashed: exit code ${exit}`;
}

function createSizeError(bytes: number): ProverError {
  const message = `the witness generator does not make witnesses of ${quantity(bytes, 'byte')}: it and the key belong to different circuits`;
  return new ProverError('PROVER_WITNESS', message);
}

/** Reads a stream into the buffer, and returns the part that was written. */
async function readInto(buffer: Buffer, stream: Readable, end: () => void): Promise<Buffer> {
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (size + chunk.length > buffer.length) {
      end();
      throw createSizeError(buffer.length);
    }
    chunk.copy(buffer, size);
    chunk.fill(0);
    size += chunk.length;
  }
  return buffer.subarray(0, size);
}

async function read(stream: Readable, limit: number, end: () => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) {
      end();
      throw new ProverError('PROVER_WITNESS', `the witness generator wrote more than ${limit} bytes`);
    }
    chunks.push(chunk);
  }
  const all = Buffer.concat(chunks);
  for (const chunk of chunks) chunk.fill(0);
  return all;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has already exited.
  }
}
