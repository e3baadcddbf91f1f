/**
 * Tests the supervisor with fakes of the engine that crash, hang or violate the protocol. backend.prover.ts
 * tests the real engine.
 */
import { writeFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { KeyFile } from '../../../../src/prover/backend/key.ts';
import { Supervisor } from '../../../../src/prover/backend/supervisor.ts';
import { fakeWorker, LASTS, LOADED, LOADS, PROOF, PROVES, WITNESS_BYTES } from '../fake_worker.ts';
import { keyFile, recordedLog } from './support.ts';

const NEVER = new AbortController().signal;
const failure = (fault: string) => expect.objectContaining({ code: 'PROVER_ENGINE', fault });

interface Options {
  readonly timeoutMs?: number;
  readonly backoffMs?: number;
  readonly beatMs?: number;
  readonly path?: string;
}

async function start(
  onFrame: string,
  { timeoutMs = 10_000, backoffMs = 10, beatMs = 1000, path = keyFile() }: Options = {},
) {
  const { log, printed } = recordedLog();
  const key = new KeyFile(path);
  await key.hash();
  const supervisor = new Supervisor({ program: fakeWorker(onFrame), key, log, timeoutMs, backoffMs, beatMs });
  onTestFinished(() => {
    supervisor.stop();
    key.close();
  });
  await supervisor.start();
  const prove = (publicInput: string, signal = NEVER, leaving = NEVER) => {
    const witness = Buffer.alloc(WITNESS_BYTES);
    witness.write(`wtns${publicInput} `);
    return supervisor.prove(witness, publicInput, { wait: signal, leaving });
  };
  return { supervisor, prove, printed };
}

/** JavaScript that counts the frames of each type in a file, across the worker's restarts. */
const COUNT = `
  const file = folder + '/' + type;
  const count = fs.existsSync(file) ? Number(fs.readFileSync(file, 'utf8')) + 1 : 1;
  fs.writeFileSync(file, String(count));`;

test('a supervisor proves one witness after another with the same process', async () => {
  const { supervisor, prove } = await start(LOADS + PROVES);
  const { pid } = supervisor;
  for (const publicInput of ['1', '2', '3']) {
    expect(await prove(publicInput)).toEqual({ a: PROOF.pi_a, b: PROOF.pi_b, c: PROOF.pi_c });
  }
  expect(supervisor.pid).toBe(pid);
  expect(supervisor.state).toBe('ready');
});

describe.each<[string, string, string]>([
  ['crashes', 'process.exit(3)', 'ended'],
  ['is killed', "process.kill(process.pid, 'SIGKILL')", 'ended'],
  ['hangs', '', 'late'],
  ['sends garbage', 'write(Buffer.alloc(64, 0xff))', 'invalid'],
  ['sends too much', "answer({ more: 'x'.repeat(70000) })", 'invalid'],
  ['answers with the id of another request', "write(frame(130, id + 1, '{}'))", 'invalid'],
  ['answers with the type of another request', "write(frame(129, id, '{}'))", 'invalid'],
  ['answers with JSON of another form', 'answer({ proof: null })', 'invalid'],
  ['proves another statement', `answer({ proof: ${JSON.stringify(PROOF)}, public: ['31415'] })`, 'invalid'],
  [
    'proves for two public inputs',
    `answer({ proof: ${JSON.stringify(PROOF)}, public: ['1', '1'] })`,
    'invalid',
  ],
  ['says that it has no key', "refuse('PROVER_NO_KEY')", 'refused'],
  ['is out of memory', "refuse('PROVER_INTERNAL')", 'refused'],
])('an engine that %s', (_, behaviour, fault) => {
  test('makes one request fail, and the next requests wait until the key is loaded again', async () => {
    const first = `if (type === 2 && count === 1) { ${behaviour}; return; }`;
    const { supervisor, prove } = await start(COUNT + LOADS + first + PROVES, { timeoutMs: 1500 });
    const { pid } = supervisor;
    await expect(prove('1')).rejects.toThrow(failure(fault));
    expect(supervisor.state).toBe('loading');
    expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
    expect(await prove('3')).toMatchObject({ a: PROOF.pi_a });
    expect(supervisor.pid).not.toBe(pid);
  });
});

describe('an engine that does not report its status is replaced', () => {
  const stopsAt = (type: number, count: number) =>
    `if (type === ${type} && count === ${count}) process.kill(process.pid, 'SIGSTOP');`;
  /** Interval of the heartbeats in milliseconds, which is longer than a fake takes to start. */
  const beatMs = 300;

  test('in the middle of a proof', async () => {
    const { supervisor, prove } = await start(COUNT + stopsAt(2, 1) + LOADS + PROVES, { beatMs });
    const { pid } = supervisor;
    await expect(prove('1')).rejects.toThrow(failure('hung'));
    expect(supervisor.state).toBe('loading');
    expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
    expect(supervisor.pid).not.toBe(pid);
  });

  test('while it loads the key again', async () => {
    const { supervisor, prove, printed } = await start(COUNT + stopsAt(1, 2) + LOADS + PROVES, { beatMs });
    process.kill(supervisor.pid as number, 'SIGKILL');
    await expect.poll(() => supervisor.state).toBe('loading');
    expect(await prove('1')).toMatchObject({ a: PROOF.pi_a });
    expect(printed()).toContain('the engine did not answer for 0.9 s');
  });

  test('while it is idle', async () => {
    const { supervisor, prove } = await start(LOADS + PROVES, { beatMs });
    const { pid = 0 } = supervisor;
    process.kill(pid, 'SIGSTOP');
    await expect.poll(() => supervisor.pid).not.toBe(pid);
    expect(await prove('1')).toMatchObject({ a: PROOF.pi_a });
  });
});

test('an engine whose status has an unexpected form is replaced', async () => {
  const malformed = `${LOADS} if (count === 1) status.path = 'unknown'; ${PROVES}`;
  const { supervisor, prove } = await start(COUNT + malformed, { beatMs: 300 });
  const { pid } = supervisor;
  await prove('1');
  await expect.poll(() => supervisor.pid).not.toBe(pid);
  expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
});

test('a witness that the engine refuses does not end the engine', async () => {
  const { supervisor, prove } = await start(
    `${COUNT} ${LOADS} if (count === 1) return refuse('PROVER_UNSATISFIED'); ${PROVES}`,
  );
  const { pid } = supervisor;
  await expect(prove('1')).rejects.toThrow(failure('refused'));
  expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
  expect(supervisor.pid).toBe(pid);
});

test('an engine that is killed while it is idle makes no request fail', async () => {
  const { supervisor, prove, printed } = await start(LOADS + PROVES);
  const { pid = 0 } = supervisor;
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => supervisor.pid).not.toBe(pid);
  expect(await prove('1')).toMatchObject({ a: PROOF.pi_a });
  await expect.poll(printed).toContain('the engine has loaded the key again');
});

test('an engine that keeps crashing is restarted less and less often, until a proof succeeds', async () => {
  const crashes = 'if (type === 2 && count < 5) process.exit(3);';
  const { prove, printed } = await start(COUNT + LOADS + crashes + PROVES, { backoffMs: 40 });
  for (let crash = 1; crash < 5; crash++) await expect(prove('1')).rejects.toThrow(failure('ended'));
  await prove('1');
  const waits = printed()
    .split('\n')
    .flatMap((line) => /"wait_ms":(\d+)/.exec(line)?.[1] ?? []);
  expect(waits).toEqual(['0', '40', '80', '160']);
});

test('a key that could not be loaded is loaded again', async () => {
  const { supervisor, prove } = await start(
    `${COUNT} if (type === 1 && count > 1 && count < 4) return refuse('PROVER_BAD_KEY'); ${LOADS} ${PROVES}`,
  );
  process.kill(supervisor.pid as number, 'SIGKILL');
  await expect.poll(() => supervisor.state).toBe('loading');
  expect(await prove('1')).toMatchObject({ a: PROOF.pi_a });
});

test('a key that was overwritten is not used after a restart', async () => {
  const path = keyFile('a key');
  const { supervisor, prove, printed } = await start(LOADS + PROVES, { path });
  writeFileSync(path, 'another');
  process.kill(supervisor.pid as number, 'SIGKILL');
  await expect.poll(printed).toContain('was changed while in use');
  expect(supervisor.state).toBe('loading');
  await expect(prove('1', AbortSignal.timeout(100))).rejects.toThrow(/timeout/);
  writeFileSync(path, 'a key');
  expect(await prove('1')).toMatchObject({ a: PROOF.pi_a });
});

test('a caller that waits for an engine can leave', async () => {
  const { supervisor, prove } = await start(
    `${COUNT} if (type === 1 && count > 1) return; ${LOADS} ${PROVES}`,
  );
  process.kill(supervisor.pid as number, 'SIGKILL');
  await expect.poll(() => supervisor.state).toBe('loading');
  const caller = new AbortController();
  const waiting = prove('1', caller.signal);
  caller.abort(new Error('left'));
  await expect(waiting).rejects.toThrow('left');
});

test('callers who leave do not make the engine load its key again: each proof is cancelled', async () => {
  const lasts = `if ((type === 2 && count < 4) || type === 4) { ${LASTS} }`;
  const { supervisor, prove } = await start(COUNT + LOADS + lasts + PROVES);
  const { pid } = supervisor;
  for (let caller = 1; caller < 4; caller++) {
    const leavingCaller = new AbortController();
    const proof = prove('1', NEVER, leavingCaller.signal);
    await expect.poll(() => supervisor.state).toBe('proving');
    leavingCaller.abort(new Error('left'));
    await expect(proof).rejects.toThrow('left');
    expect(supervisor.state).toBe('ready');
  }
  expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
  expect(supervisor.pid).toBe(pid);
});

test('a proof that the engine finishes before it reads the cancel request is returned', async () => {
  const ignores = 'if (type === 4) return;';
  const proof = JSON.stringify({ proof: PROOF, public: ['1'], seconds: 1 });
  const late = `if (type === 2 && count === 1) return setTimeout(answer, 100, ${proof});`;
  const { supervisor, prove } = await start(COUNT + LOADS + ignores + late + PROVES);
  const { pid } = supervisor;
  const caller = new AbortController();
  const proved = prove('1', NEVER, caller.signal);
  await expect.poll(() => supervisor.state).toBe('proving');
  caller.abort(new Error('left'));
  expect(await proved).toMatchObject({ a: PROOF.pi_a });
  expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
  expect(supervisor.pid).toBe(pid);
});

test('an engine that cancels a proof without a cancel request is replaced', async () => {
  const { supervisor, prove } = await start(
    `${COUNT} ${LOADS} if (count === 1) return refuse('PROVER_CANCELLED'); ${PROVES}`,
  );
  const { pid } = supervisor;
  await expect(prove('1')).rejects.toThrow(failure('refused'));
  expect(await prove('2')).toMatchObject({ a: PROOF.pi_a });
  expect(supervisor.pid).not.toBe(pid);
});

test.each<[string, string, string]>([
  ['refuses the key', "refuse('PROVER_BAD_KEY')", 'refused'],
  ['exits', 'process.exit(0)', 'ended'],
  [
    'describes the key in an unknown form',
    `answer({ ...${JSON.stringify(LOADED)}, wires: 'many' })`,
    'invalid',
  ],
])('the start fails if the engine %s', async (_, onFrame, fault) => {
  await expect(start(onFrame)).rejects.toThrow(failure(fault));
});

test('stop ends the engine, and no other engine is started', async () => {
  const { supervisor, prove } = await start(LOADS + PROVES);
  const { pid = 0 } = supervisor;
  supervisor.stop();
  expect(supervisor.state).toBe('stopped');
  await expect.poll(() => isAlive(pid)).toBe(false);
  await expect(prove('1', AbortSignal.timeout(300))).rejects.toThrow();
  expect(supervisor.pid).toBeUndefined();
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('start returns what the engine reports about a key', async () => {
  const { log } = recordedLog();
  const key = new KeyFile(keyFile());
  const supervisor = new Supervisor({ program: fakeWorker(LOADS), key, log, timeoutMs: 1000 });
  onTestFinished(() => {
    supervisor.stop();
    key.close();
  });
  const { wires, public: publicInputs, development, witnessBytes } = LOADED;
  const loaded = { wires, public: publicInputs, development, witnessBytes };
  expect(await supervisor.start()).toEqual({ loaded, path: 'avx512ifma' });
});
