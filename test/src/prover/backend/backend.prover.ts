/**
 * Tests the backend end to end with the real engine, circom's generators and the small circuit's development
 * key.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, copyFileSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type RunningBackend, startBackend } from '../../../../src/prover/backend/backend.ts';
import { readBackendConfig } from '../../../../src/prover/backend/config.ts';
import { findGenerator } from '../../../../src/prover/backend/generator.ts';
import { EngineWorker } from '../../../../src/prover/engine.ts';
import { readVerifyingKey, verifyProof } from '../../../../src/prover/verify.ts';
import { generateWitness } from '../../../../src/prover/witness.ts';
import { builtArtifacts, ENGINE, locateGenerator, ROOT } from '../../../../src/toolchain/prover/artifacts.ts';
import { createInput, recordedLog, temporaryFolder } from './support.ts';

const artifacts = builtArtifacts('small');
const verifyingKey = readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')));
const WASM = join(artifacts.circuit, 'circuit_js');
/** circom's generator in C++, if it was built. */
const NATIVE = locateGenerator(artifacts)[0] === process.execPath ? undefined : artifacts.circuit;
const ENV = {
  ZKEY: artifacts.zkey,
  WITNESS_BINARIES: NATIVE ?? WASM,
  PROVER_ENGINE: ENGINE,
  ALLOW_INSECURE_DEV_KEY: '1',
  PORT: '0',
};
const TESTDATA = join(ROOT, 'src/prover/native/testdata');

async function start(env: Record<string, string> = {}): Promise<RunningBackend> {
  const backend = await startBackend({
    config: readBackendConfig({ ...ENV, ...env }),
    log: recordedLog().log,
  });
  onTestFinished(() => backend.close());
  return backend;
}

interface Answer {
  readonly pi_a: string[];
  readonly pi_b: string[][];
  readonly pi_c: string[];
  readonly protocol: string;
  readonly curve: string;
}

type Input = ReturnType<typeof createInput>;

const post = (url: string, { circuit }: Input, signal: AbortSignal | null = null) =>
  fetch(`${url}/input`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(circuit),
  });

/** Returns whether the answer has a valid proof for this input. */
async function hasProofFor({ publicInput }: Input, response: Response): Promise<boolean> {
  expect(response.status, await response.clone().text()).toBe(200);
  const { pi_a, pi_b, pi_c, protocol, curve } = (await response.json()) as Answer;
  expect({ protocol, curve }).toEqual({ protocol: 'groth16', curve: 'bn128' });
  return verifyProof(verifyingKey, { a: pi_a, b: pi_b, c: pi_c }, [BigInt(publicInput)]);
}

const fetchState = async (url: string) =>
  ((await (await fetch(`${url}/healthz`)).json()) as { status: string }).status;

describe('the service', () => {
  let inputs: Input[];
  beforeAll(() => {
    inputs = Array.from({ length: 200 }, (_, salt) => createInput(salt));
  });

  test('fails one request if the engine is killed during its proof, and proves the other requests', async () => {
    const { url, enginePid } = await start();
    const [first, second, third] = inputs as [Input, Input, Input];
    const posted = [first, second].map((input) => post(url, input));
    await expect.poll(() => fetchState(url), { interval: 5 }).toBe('proving');
    const pid = enginePid() as number;
    process.kill(pid, 'SIGKILL');
    const next = post(url, third);
    const responses = await Promise.all(posted);
    // On a busy machine, the first proof may end just before the kill, which then ends the second proof.
    const [killed, proven] = responses[0]?.status === 500 ? [0, 1] : [1, 0];
    expect([responses[killed]?.status, await responses[killed]?.text()]).toEqual([
      500,
      'BACKEND_ENGINE: the engine exited before it answered: try again',
    ]);
    expect(await hasProofFor([first, second][proven] as Input, responses[proven] as Response)).toBe(true);
    expect(await hasProofFor(third, await next)).toBe(true);
    expect(enginePid()).not.toBe(pid);
  });

  test('keeps the engine while 12 callers leave at different moments, and makes the proof of the next caller', async () => {
    const { url, enginePid } = await start();
    const pid = enginePid();
    for (const [index, input] of inputs.slice(0, 12).entries()) {
      const leaver = new AbortController();
      const abandoned = post(url, input, leaver.signal).catch(() => 'left');
      await sleep(70 * index);
      leaver.abort();
      await abandoned;
    }
    const [input] = inputs as [Input];
    expect(await hasProofFor(input, await post(url, input))).toBe(true);
    expect(enginePid()).toBe(pid);
  });

  test('has an engine that ends a cancelled proof, and makes the next proof with the same key', async () => {
    const { command } = await findGenerator(ENV.WITNESS_BINARIES);
    const [{ circuit, publicInput }] = inputs as [Input];
    const worker = new EngineWorker(ENGINE);
    onTestFinished(() => worker.kill());
    await worker.load(artifacts.zkey, 60_000);
    const witness = await generateWitness(command, circuit);
    const leaver = new AbortController();
    const abandoned = worker.prove(witness, 60_000, leaver.signal);
    leaver.abort(new Error('left'));
    await expect(abandoned).rejects.toThrow('left');
    expect((await worker.prove(witness, 60_000)).publicInputs).toEqual([publicInput]);
  });

  test('answers 200 simultaneous requests: those in the queue with their proofs, and all others with Retry-After', async () => {
    const { url } = await start({ QUEUE: '4' });
    const answers = await Promise.all(inputs.map((input) => post(url, input)));
    const proved = inputs.filter((_, index) => answers[index]?.status === 200);
    // The first five are admitted immediately. More are admitted if a place became free while requests were
    // still arriving.
    expect(proved.length).toBeGreaterThanOrEqual(5);
    expect(proved.length).toBeLessThan(20);
    for (const [index, input] of inputs.entries()) {
      const answer = answers[index] as Response;
      if (answer.status === 200) {
        expect(await hasProofFor(input, answer)).toBe(true);
        continue;
      }
      expect([answer.status, await answer.text()]).toEqual([503, 'Server at capacity']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    const [first] = inputs as [Input];
    expect(await hasProofFor(first, await post(url, first))).toBe(true);
    expect(await fetchState(url)).toBe('ready');
  });

  test('refuses an input that does not satisfy the circuit, and proves the next input', async () => {
    const { url } = await start();
    const [input, otherInput] = inputs as [Input, Input];
    const contradictory = {
      ...input,
      circuit: { ...input.circuit, all_inputs_hash: otherInput.publicInput },
    };
    const answer = await post(url, contradictory);
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringMatching(/^the input does not satisfy the circuit/),
    ]);
    expect(await hasProofFor(input, await post(url, input))).toBe(true);
  });

  test('works with the generator in WebAssembly', async () => {
    const { url } = await start({ WITNESS_BINARIES: WASM });
    const [input] = inputs as [Input];
    expect(await hasProofFor(input, await post(url, input))).toBe(true);
  });
});

test('npm run prover:backend makes a proof without writing any file', async () => {
  const input = createInput(5);
  // No process that the shell starts can write to a file (RLIMIT_FSIZE), as on a full disk.
  const script = '! { printf x > "$PROBE"; } 2>/dev/null || exit 9; exec "$0" "$1"';
  const command = [
    '-c',
    `trap "" XFSZ; ulimit -f 0; ${script}`,
    process.execPath,
    'src/prover/backend/main.ts',
  ];
  const service = spawn('/bin/sh', command, {
    cwd: ROOT,
    env: {
      ...ENV,
      PATH: process.env['PATH'],
      TMPDIR: '/nonexistent',
      PROBE: join(temporaryFolder(), 'probe'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void service.kill('SIGKILL'));
  let printed = '';
  service.stdout.on('data', (chunk) => (printed += chunk));
  await expect.poll(() => printed, { timeout: 120_000 }).toContain('"msg":"listening"');
  const [, url = ''] = /"url":"([^"]+)"/.exec(printed) ?? [];
  expect(await hasProofFor(input, await post(url, input))).toBe(true);
  service.kill('SIGTERM');
  expect(await once(service, 'exit')).toEqual([0, null]);
  expect(printed).not.toContain(input.publicInput);
});

describe('the real generators', () => {
  test.each(['C++', 'WebAssembly'])('in %s are recognised by their files', async (kind) => {
    const folder = kind === 'C++' ? NATIVE : WASM;
    if (folder === undefined) return;
    const { size, canMake } = await findGenerator(folder);
    expect(size).toBe('small');
    // The key's header contains the number of wires after the two moduli and their sizes.
    const wires = countWires(artifacts.zkey);
    expect([wires - 1, wires, wires + 1].map(canMake)).toEqual([false, true, false]);
  });
});

/**
 * Reads the number of wires in a `.zkey` file: it follows the 32 bytes of BN254's order.
 */
function countWires(zkey: string): number {
  const header = Buffer.alloc(256);
  const fd = openSync(zkey, 'r');
  readSync(fd, header, 0, header.length, 0);
  closeSync(fd);
  const orderIndex = header.indexOf(Buffer.from('010000f093f5e143', 'hex'));
  return header.readUInt32LE(orderIndex + 32);
}

describe('a real key is refused', () => {
  const refusal = (message: string | RegExp) =>
    expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) });

  test('if it is unknown, and the error contains its hash', async () => {
    const key = join(TESTDATA, 'snarkjs.zkey');
    const [hash] = execFileSync('b2sum', [key], { encoding: 'utf8' }).split(' ');
    await expect(start({ ZKEY: key })).rejects.toThrow(refusal(/public inputs|ZKEY_BLAKE2B=/));
    await expect(start({ ZKEY: key, ZKEY_BLAKE2B: 'ab'.repeat(64) })).rejects.toThrow(
      refusal(new RegExp(`public inputs|is ${hash}, not`)),
    );
  });

  test('if it is damaged', async () => {
    const key = join(temporaryFolder(), 'damaged.zkey');
    copyFileSync(join(TESTDATA, 'tiny.zkey'), key);
    const fd = openSync(key, 'r+');
    writeSync(fd, Buffer.alloc(64, 0xff), 0, 64, 400);
    closeSync(fd);
    await expect(start({ ZKEY: key })).rejects.toThrow(refusal(/can't be loaded: .*PROVER_BAD_KEY/));
  });

  test('if it and the generator belong to different circuits', async () => {
    await expect(start({ ZKEY: join(TESTDATA, 'tiny.zkey') })).rejects.toThrow(
      refusal(/public inputs|belong to different circuits/),
    );
  });
});
