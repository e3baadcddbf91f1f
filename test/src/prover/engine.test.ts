/**
 * Tests the engine's client with fake workers, most of which misbehave. test/src/prover/circuit tests the
 * real engine.
 */
import { closeSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type EngineFault, EngineWorker, INHERITED_KEY, proveOnce } from '../../../src/prover/engine.ts';
import { fakeWorker, LOADED, LOADS, PROOF, PROVES, WITNESS_BYTES } from './fake_worker.ts';

const WITNESS = Buffer.alloc(WITNESS_BYTES, 7);
WITNESS.write('wtns31415\0');
const prove = (engine: string, timeoutMs = 10_000) =>
  proveOnce(engine, '/keys/k.zkey', WITNESS, { timeoutMs });
const failure = (fault: EngineFault, message: RegExp) =>
  expect.objectContaining({ code: 'PROVER_ENGINE', fault, message: expect.stringMatching(message) });

test('proveOnce sends a worker the key and then the witness, and returns the proof', async () => {
  const engine = fakeWorker(`
    if (type === 1 && String(body) === '/keys/k.zkey' && process.argv[2] === 'worker') return answer(${JSON.stringify(LOADED)});
    if (type !== 2 || body.length !== ${WITNESS_BYTES} || !body.subarray(10).every((byte) => byte === 7)) return refuse('X');
    const whole = frame(130, id, JSON.stringify({ proof: ${JSON.stringify(PROOF)}, public: ['1'] }));
    for (let at = 0; at < whole.length; at += 50) write(whole.subarray(at, at + 50));`);
  expect(await prove(engine)).toEqual({ a: PROOF.pi_a, b: PROOF.pi_b, c: PROOF.pi_c });
});

test.each<[string, string, EngineFault, RegExp]>([
  ['refuses the key', "refuse('PROVER_BAD_KEY')", 'refused', /PROVER_BAD_KEY.*refused by the fake/],
  ['refuses the witness', `${LOADS} refuse('PROVER_UNSATISFIED')`, 'refused', /PROVER_UNSATISFIED/],
  ['refuses without a reason', 'write(frame(255, id, "{}"))', 'refused', /without a reason/],
  ['exits', 'process.exit(0)', 'ended', /exited before it answered/],
  ['is killed', `${LOADS} process.kill(process.pid, 'SIGKILL')`, 'ended', /exited before it answered/],
  [
    'answers with the type of another request',
    "write(frame(131, id, '{}'))",
    'invalid',
    /an answer without a request/,
  ],
  [
    'answers with the id of another request',
    "write(frame(129, id + 1, '{}'))",
    'invalid',
    /an answer without a request/,
  ],
  ['answers twice', `answer(${JSON.stringify(LOADED)}); ${LOADS} `, 'invalid', /an answer without a request/],
  [
    'answers with something that is not JSON',
    "write(frame(129, id, '{'))",
    'invalid',
    /an answer that is not JSON/,
  ],
  ['answers with nothing', "write(frame(129, id, ''))", 'invalid', /an answer that is not JSON/],
  ['answers with JSON of another form', "answer({ wires: '5' })", 'invalid', /an unexpected form/],
  [
    'returns a malformed proof',
    `${LOADS} answer({ proof: { pi_a: ['1'] }, public: [] })`,
    'invalid',
    /an unexpected form/,
  ],
  ['sends garbage', 'write(Buffer.alloc(100, 0xff))', 'invalid', /a frame of 4294967295 bytes/],
  [
    'sends a frame without a head',
    'write(Buffer.from([4, 0, 0, 0, 1, 1, 1, 1]))',
    'invalid',
    /a frame of 4 bytes/,
  ],
  ['sends a frame over the limit', "answer({ more: 'x'.repeat(65536) })", 'invalid', /a frame of \d+ bytes/],
])('proveOnce fails if its worker %s', async (_, onFrame, fault, message) => {
  await expect(prove(fakeWorker(onFrame))).rejects.toThrow(failure(fault, message));
});

test('EngineWorker kills a worker that does not answer in time', async () => {
  const worker = new EngineWorker(fakeWorker(''));
  await expect(worker.load('/keys/k.zkey', 300)).rejects.toThrow(failure('late', /within 300 ms/));
  await worker.ended;
  // The worker stays unusable, and later calls give the same reason.
  await expect(worker.load('/keys/k.zkey', 300)).rejects.toThrow(failure('late', /within 300 ms/));
});

test("proveOnce reports that the engine's program does not exist", async () => {
  await expect(prove('/nonexistent')).rejects.toThrow(failure('unstartable', /could not be started/));
});

describe('a worker', () => {
  function start(onFrame: string, key?: number): EngineWorker {
    const worker = new EngineWorker(fakeWorker(onFrame), key);
    onTestFinished(() => worker.kill());
    return worker;
  }

  test('answers one request after another', async () => {
    const worker = start(LOADS + PROVES);
    expect(await worker.load('/keys/k.zkey', 10_000)).toMatchObject({ public: 1, development: true });
    for (const publicInput of ['1', '2', '31415']) {
      const witness = Buffer.alloc(WITNESS_BYTES);
      witness.write(`wtns${publicInput}`);
      expect((await worker.prove(witness, 10_000)).publicInputs).toEqual([publicInput]);
    }
  });

  test('refuses a request before it has answered the last one', async () => {
    const worker = start(LOADS);
    const first = worker.load('/keys/k.zkey', 10_000);
    await expect(worker.load('/keys/k.zkey', 10_000)).rejects.toThrow(failure('refused', /busy/));
    await first;
  });

  test('continues after a refusal', async () => {
    const worker = start(`${LOADS} if (id < 3) return refuse('PROVER_UNSATISFIED'); ${PROVES}`);
    await worker.load('/keys/k.zkey', 10_000);
    await expect(worker.prove(WITNESS, 10_000)).rejects.toThrow(failure('refused', /PROVER_UNSATISFIED/));
    expect((await worker.prove(WITNESS, 10_000)).publicInputs).toEqual(['31415']);
  });

  test('is killed if it sends an answer without a request', async () => {
    const worker = start(`${LOADS.replace('return', '')} write(frame(130, 2, '{}'));`);
    await worker.load('/keys/k.zkey', 10_000).catch(() => {});
    await worker.ended;
    await expect(worker.prove(WITNESS, 10_000)).rejects.toThrow(
      failure('invalid', /an answer without a request/),
    );
  });

  test('inherits a key that is open, even if another file has taken its path', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'engine-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'k.zkey');
    writeFileSync(path, '6248');
    const key = openSync(path, 'r');
    onTestFinished(() => closeSync(key));
    writeFileSync(`${path}.new`, '1');
    renameSync(`${path}.new`, path);
    const worker = start(
      `answer({ ...${JSON.stringify(LOADED)}, wires: Number(fs.readFileSync(String(body), 'latin1')) })`,
      key,
    );
    expect((await worker.load(INHERITED_KEY, 10_000)).wires).toBe(6248);
  });
});
