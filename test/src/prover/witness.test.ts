/** How a witness generator is run; the real ones are in test/src/prover/circuit. */
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

test('an output of some size arrives whole', async () => {
  const witness = await run('{ printf wtns; head -c 20000000 /dev/zero; } > "$2"');
  expect(witness.length).toBe(20_000_004);
});

test.each<[string, string]>([
  ['a failed constraint', 'cat "$1"; echo "salt 5 is wrong" >&2; exit 1'],
  ['an abort', 'kill -ABRT $$'],
  ['no output', 'true'],
  ['an output that is none', 'cat "$1" > "$2"'],
  ['an output of a generator that failed then', 'printf wtns > "$2"; exit 1'],
])('%s is a refusal, whose words are not repeated', async (_, script) => {
  await expect(run(script)).rejects.toThrow(refusal(/^the witness generator refused the input/));
});

test('a generator that is not there, or not to be executed, is named as that', async () => {
  for (const program of ['/nonexistent', '/etc/passwd']) {
    await expect(generateWitness([program], INPUT)).rejects.toThrow(refusal(/could not be run/));
  }
});

test('one that does not end is ended, with all that it started', async () => {
  const start = performance.now();
  // The promise waits for whoever could still write.
  await expect(run('sleep 60 & sleep 60', 200)).rejects.toThrow(refusal(/within 200 ms/));
  expect(performance.now() - start).toBeLessThan(30_000);
});
