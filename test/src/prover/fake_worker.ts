/** Fakes of the proving engine: real processes that speak its framed protocol, and misbehave on request. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A proof of the right form, which is not valid for any public input. */
export const PROOF = {
  pi_a: ['77700000001', '77700000002', '1'],
  pi_b: [
    ['77700000003', '77700000004'],
    ['77700000005', '77700000006'],
    ['1', '0'],
  ],
  pi_c: ['77700000007', '77700000008', '1'],
};

export const WITNESS_BYTES = 200_000;
export const LOADED = {
  wires: 6248,
  public: 1,
  domain: 8192,
  development: true,
  witnessBytes: WITNESS_BYTES,
};

/** Status that a fake reports immediately, unless its JavaScript changes the variable `status`. */
export const STATUS = { state: 'idle', path: 'avx512ifma', progress: 0 };

/** JavaScript of a worker that loads any key. */
export const LOADS = `if (type === 1) return answer(${JSON.stringify(LOADED)});`;
/**
 * JavaScript of a worker that proves any witness, for the public input that the witness contains after
 * `wtns`.
 */
export const PROVES = `if (type === 2) {
  const [publicInput] = /[0-9]+/.exec(String(body.subarray(4, 84)));
  return answer({ proof: ${JSON.stringify(PROOF)}, public: [publicInput], seconds: 0.1 });
}`;
/** JavaScript of a worker whose proofs last until they are cancelled. */
export const LASTS = `if (type === 2) return;
if (type === 4) return write(frame(255, id, JSON.stringify({ code: 'PROVER_CANCELLED', message: 'cancelled' })));`;

/**
 * Writes a worker's program, which is removed after the test.
 *
 * @param onFrame JavaScript that handles every request except status requests. It has `type`, `id`,
 * `body`, `folder` (the program's folder, which outlives each run), `answer(json)`, `refuse(code)`,
 * `frame(type, id, text)`, `write(bytes)` and `status`
 * @returns the program's path
 */
export function fakeWorker(onFrame: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'fake-worker-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, 'worker');
  const script = `#!/usr/bin/env node
    const fs = require('node:fs');
    const folder = ${JSON.stringify(folder)};
    const write = (bytes) => process.stdout.write(bytes);
    const frame = (type, id, text) => {
      const body = Buffer.from(text);
      const head = Buffer.alloc(9);
      head.writeUInt32LE(5 + body.length, 0);
      head.writeUInt8(type, 4);
      head.writeUInt32LE(id, 5);
      return Buffer.concat([head, body]);
    };
    let status = ${JSON.stringify(STATUS)};
    const onFrame = (type, id, body) => {
      if (type === 3) return write(frame(131, id, JSON.stringify(status)));
      const answer = (json) => write(frame(type + 128, id, JSON.stringify(json)));
      const refuse = (code) => write(frame(255, id, JSON.stringify({ code, message: 'refused by the fake' })));
      ${onFrame}
    };
    let pending = Buffer.alloc(0);
    process.stdin.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32LE(0)) {
        const end = 4 + pending.readUInt32LE(0);
        onFrame(pending.readUInt8(4), pending.readUInt32LE(5), pending.subarray(9, end));
        pending = pending.subarray(end);
      }
    });
    process.stdin.on('end', () => process.exit(0));`;
  writeFileSync(program, script, { mode: 0o755 });
  return program;
}
