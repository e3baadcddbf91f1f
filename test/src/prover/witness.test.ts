/** Tests generateWitness with fakes of generators. test/src/prover/circuit runs the real generators. */
import { expect, test } from 'vitest';
import { generateWitness, WitnessRefusal } from '../../../src/prover/witness.ts';

const INPUT = { salt: '5', signature: ['1', '2'] };
/** Returns the command of a generator: a shell script that reads the file "$1" and writes the file "$2". */
const generator = (script: string) => ['/bin/sh', '-c', script, 'sh'];
const run = (script: string, timeoutMs = 10_000) => generateWitness(generator(script), INPUT, { timeoutMs });
const refusal = (message: RegExp) =>
  expect.objectContaining({ code: 'PROVER_WITNESS', message: expect.stringMatching(message) });

test('a generator reads the input, and its output is the witness', async () => {
  const witness = await run('printf wtns > "$2"; cat "$1" > "$2"');
  expect(witness.toString()).toBe(`wtns${JSON.stringify(INPUT)}`);
});

test('a large output arrives completely', async () => {
  const witness = await run('{ printf wtns; head -c 20000000 /dev/zero; } > "$2"');
  expect(witness.length).toBe(20_000_004);
});

test.each<[string, string]>([
  ['a failed constraint', 'cat "$1"; echo "salt 5 is wrong" >&2; exit 1'],
  ['an abort', 'kill -ABRT $$'],
  ['an output followed by exit code 1', 'printf wtns > "$2"; exit 1'],
])("%s is reported as a refusal, without the generator's own messages", async (_, script) => {
  const refused = run(script);
  await expect(refused).rejects.toThrow(refusal(/^the witness generator refused the input/));
  await expect(refused).rejects.toThrow(WitnessRefusal);
});

test.each<[string, string, RegExp]>([
  ['that writes nothing', 'true', /wrote no witness/],
  ['that copies its input', 'cat "$1" > "$2"', /wrote no witness/],
  ['that crashes', 'kill -SEGV $$', /crashed: exit code 139/],
  ['that is killed', 'kill -KILL $$', /crashed: exit code 137/],
])('a generator %s is reported as failed, and not as a refusal of the input', async (_, script, message) => {
  const failed = run(script);
  await expect(failed).rejects.toThrow(refusal(message));
  await expect(failed).rejects.not.toThrow(WitnessRefusal);
});

test('a witness is written into the buffer, and must have its size', async () => {
  const buffer = Buffer.alloc(8);
  const options = { buffer, timeoutMs: 10_000 };
  expect(
    await generateWitness(generator('cat "$1" >/dev/null; printf wtns1234 > "$2"'), INPUT, options),
  ).toEqual(buffer);
  expect(buffer.toString()).toBe('wtns1234');
  for (const [caseName, script] of [
    ['shorter', 'printf wtns > "$2"'],
    ['longer', '{ printf wtns; head -c 1000000 /dev/zero; } > "$2"'],
  ] as const) {
    const pending = generateWitness(generator(script), INPUT, options);
    await expect(pending, caseName).rejects.toThrow(refusal(/belong to different circuits/));
  }
});

test('a generator whose caller has left is killed', async () => {
  const caller = new AbortController();
  const reason = new Error('left');
  const pending = generateWitness(generator('sleep 60'), INPUT, { signal: caller.signal });
  setTimeout(() => caller.abort(reason), 100);
  await expect(pending).rejects.toBe(reason);
  await expect(generateWitness(generator('exit 0'), INPUT, { signal: caller.signal })).rejects.toBe(reason);
});

test('a generator that does not exist or is not executable is reported', async () => {
  for (const program of ['/nonexistent', '/etc/passwd']) {
    await expect(generateWitness([program], INPUT)).rejects.toThrow(refusal(/could not be run/));
  }
});

test('a generator that does not finish is killed with its child processes', async () => {
  const start = performance.now();
  // The promise settles only when no process has the pipe open.
  await expect(run('sleep 60 & sleep 60', 200)).rejects.toThrow(refusal(/within 200 ms/));
  expect(performance.now() - start).toBeLessThan(30_000);
});
