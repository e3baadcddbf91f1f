/** Runs fake witness generators; test/src/prover/circuit runs the real ones. */
import { expect, test } from 'vitest';
import { generateWitness } from '../../../src/prover/witness.ts';

const INPUT = { salt: '5', signature: ['1', '2'] };
/** A generator whose input is "$1" and whose output is "$2". */
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
  ['no output', 'true'],
  ['an output that is not a witness', 'cat "$1" > "$2"'],
  ['an output of a generator that then failed', 'printf wtns > "$2"; exit 1'],
])("%s is reported as a refusal, without the generator's own messages", async (_, script) => {
  await expect(run(script)).rejects.toThrow(refusal(/^the witness generator refused the input/));
});

test('reports a generator that does not exist or is not executable', async () => {
  for (const program of ['/nonexistent', '/etc/passwd']) {
    await expect(generateWitness([program], INPUT)).rejects.toThrow(refusal(/could not be run/));
  }
});

test('kills a generator that does not finish, with its child processes', async () => {
  const start = performance.now();
  // The promise settles only once no process has the pipe open.
  await expect(run('sleep 60 & sleep 60', 200)).rejects.toThrow(refusal(/within 200 ms/));
  expect(performance.now() - start).toBeLessThan(30_000);
});
