/** Runs the engine's client against misbehaving workers; test/src/prover/circuit tests the real one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { proveOnce } from '../../../src/prover/engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'engine-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const PROOF = {
  pi_a: ['1', '2', '1'],
  pi_b: [
    ['1', '2'],
    ['3', '4'],
    ['1', '0'],
  ],
  pi_c: ['5', '6', '1'],
};

/** A worker that calls `onFrame(type, body)` for each request; `answer(type, json)` answers. */
function worker(name: string, onFrame: string): string {
  const file = join(folder, name);
  const script = `#!${process.execPath}
    const answer = (type, json, pieces = 1) => {
      const body = Buffer.from(JSON.stringify(json));
      const head = Buffer.alloc(9);
      head.writeUInt32LE(5 + body.length, 0);
      head.writeUInt8(type, 4);
      head.writeUInt32LE(1, 5);
      const frame = Buffer.concat([head, body]);
      const size = Math.ceil(frame.length / pieces);
      for (let at = 0; at < frame.length; at += size) process.stdout.write(frame.subarray(at, at + size));
    };
    const onFrame = (type, body) => { ${onFrame} };
    let pending = Buffer.alloc(0);
    process.stdin.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32LE(0)) {
        const end = 4 + pending.readUInt32LE(0);
        onFrame(pending.readUInt8(4), pending.subarray(9, end));
        pending = pending.subarray(end);
      }
    });`;
  writeFileSync(file, script, { mode: 0o755 });
  return file;
}

const WITNESS = Buffer.alloc(200_000, 7);
const prove = (engine: string, timeoutMs = 10_000) =>
  proveOnce(engine, '/keys/k.zkey', WITNESS, { timeoutMs });
const refusal = (message: RegExp) =>
  expect.objectContaining({ code: 'PROVER_ENGINE', message: expect.stringMatching(message) });

test('sends the worker the key, then the witness, and returns its proof', async () => {
  const engine = worker(
    'good',
    `if (type === 1 && String(body) === '/keys/k.zkey' && process.argv[2] === 'worker') answer(129, {});
     else if (type === 2 && body.length === 200000 && body.every((byte) => byte === 7)) answer(130, { proof: ${JSON.stringify(PROOF)} }, 5);
     else answer(255, { code: 'X', message: 'x' });`,
  );
  expect(await prove(engine)).toEqual({ a: PROOF.pi_a, b: PROOF.pi_b, c: PROOF.pi_c });
});

test.each<[string, string, RegExp]>([
  ['refuses the key', `answer(255, { code: 'PROVER_BAD_KEY', message: 'no key' })`, /PROVER_BAD_KEY.*no key/],
  [
    'refuses the witness',
    `type === 1 ? answer(129, {}) : answer(255, { code: 'C', message: 'm' })`,
    /refused/,
  ],
  ['answers another request', 'answer(131, {})', /refused/],
  ['exits', 'process.exit(0)', /exited before it answered/],
  [
    'sends more than the largest answer',
    'process.stdout.write(Buffer.alloc(100, 0xff))',
    /more than the largest/,
  ],
  [
    'sends less than the head of an answer',
    'process.stdout.write(Buffer.alloc(4))',
    /less than the smallest/,
  ],
  ['never answers', '', /exited before it answered/],
])('fails if the worker %s', async (name, onFrame, message) => {
  const engine = worker(name.replaceAll(' ', '-'), onFrame);
  await expect(prove(engine, 3000)).rejects.toThrow(refusal(message));
});

test('reports an engine that does not exist', async () => {
  await expect(prove('/nonexistent')).rejects.toThrow(refusal(/could not be started/));
});
