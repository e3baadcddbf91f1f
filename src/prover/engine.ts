/** Asks the proving engine for a proof over pipes, so that a witness is never written to a file. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { ProverError } from './errors.ts';
import type { Groth16Proof } from './verify.ts';

/** Request types of the engine's worker. The type of an answer is the request's plus ANSWER, or 255 for an error. */
const LOAD = 1;
const PROVE = 2;
const ANSWER = 128;

/** Answers are JSON of a few kilobytes. */
const MAX_ANSWER = 64 * 1024;
/** Sizes in bytes: of the length field, which doesn't count itself, and of the type and id that follow it. */
const LENGTH_SIZE = 4;
const HEAD_SIZE = 5;

type Worker = ChildProcessByStdio<Writable, Readable, null>;

/**
 * Proves a witness in a worker that is started for it and stopped afterwards. Does not verify the proof.
 *
 * @param engine path of the program that scripts/prover/engine.ts builds
 * @param zkey path of the proving key
 * @param witness the contents of a `.wtns` file
 * @throws ProverError: PROVER_ENGINE
 */
export async function proveOnce(
  engine: string,
  zkey: string,
  witness: Uint8Array,
  { timeoutMs = 300_000 }: { readonly timeoutMs?: number } = {},
): Promise<Groth16Proof> {
  const worker: Worker = spawn(engine, ['worker'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const failed = new Promise<never>((_, reject) => {
    worker.once('error', () => reject(new ProverError('PROVER_ENGINE', 'the engine could not be started')));
    worker.once('close', () =>
      reject(new ProverError('PROVER_ENGINE', 'the engine exited before it answered')),
    );
  });
  failed.catch(() => {});
  const timer = setTimeout(() => worker.kill('SIGKILL'), timeoutMs);
  // A worker that exits early closes its input; `failed` reports the exit.
  worker.stdin.on('error', () => {});
  try {
    const answers = framesOf(worker.stdout);
    const ask = async (type: number, body: Uint8Array) => {
      send(worker.stdin, type, body);
      return await Promise.race([answerTo(type, answers), failed]);
    };
    await ask(LOAD, Buffer.from(zkey));
    const { proof } = (await ask(PROVE, witness)) as { proof?: Record<string, unknown> };
    return { a: proof?.['pi_a'], b: proof?.['pi_b'], c: proof?.['pi_c'] } as Groth16Proof;
  } finally {
    clearTimeout(timer);
    worker.kill('SIGKILL');
  }
}

function send(stdin: Writable, type: number, body: Uint8Array): void {
  const head = Buffer.alloc(LENGTH_SIZE + HEAD_SIZE);
  head.writeUInt32LE(HEAD_SIZE + body.length, 0);
  head.writeUInt8(type, LENGTH_SIZE);
  // Requests are sent one at a time, so one id is enough.
  head.writeUInt32LE(1, LENGTH_SIZE + 1);
  stdin.write(head);
  stdin.write(body);
}

async function answerTo(
  type: number,
  answers: AsyncIterator<{ type: number; body: Buffer }>,
): Promise<object> {
  const { value, done } = await answers.next();
  if (done || !value) throw new ProverError('PROVER_ENGINE', 'the engine exited before it answered');
  const body = parse(value.body);
  if (value.type !== type + ANSWER) {
    throw new ProverError('PROVER_ENGINE', `the engine refused (${body.code}): ${body.message}`);
  }
  return body;
}

function parse(body: Buffer): { code?: string; message?: string } {
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new ProverError('PROVER_ENGINE', 'the engine did not answer with JSON');
  }
}

async function* framesOf(stdout: Readable): AsyncGenerator<{ type: number; body: Buffer }> {
  let pending = Buffer.alloc(0);
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= LENGTH_SIZE) {
      const end = LENGTH_SIZE + pending.readUInt32LE(0);
      if (end > MAX_ANSWER)
        throw new ProverError('PROVER_ENGINE', 'the engine sent more than the largest valid answer');
      if (end < LENGTH_SIZE + HEAD_SIZE)
        throw new ProverError('PROVER_ENGINE', 'the engine sent less than the smallest valid answer');
      if (pending.length < end) break;
      yield { type: pending.readUInt8(LENGTH_SIZE), body: pending.subarray(LENGTH_SIZE + HEAD_SIZE, end) };
      pending = pending.subarray(end);
    }
  }
}
