/** A shell runs the printed script with a fake `aws`, which only prints its arguments. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Argument, fillArgument, formatPlan, type Step } from '../../../../src/cli/parent/aws_plan.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'aws-plan-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Fake of the AWS CLI: `find` finds nothing, `make` prints its arguments, and `read` its standard input. */
const AWS = `aws() {
  case $1 in
    find) ;;
    make) shift; printf '%s\\0' "$@" >>"$OUT"; printf made ;;
    read) cat >>"$OUT" ;;
  esac
}
`;

function runInShell(steps: readonly Step[]): string {
  const out = join(dir, 'out');
  writeFileSync(out, '');
  const { status, stderr } = spawnSync('sh', {
    input: AWS + formatPlan(steps),
    encoding: 'utf8',
    cwd: dir,
    env: { PATH: '/usr/bin:/bin', OUT: out, FOUND: 'of the environment', HOME: dir },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return readFileSync(out, 'utf8');
}

const address: Step = { what: 'it', sets: 'ADDRESS', find: ['aws', 'find'], make: [['aws', 'make']] };
const fragments = [
  '$',
  '$FOUND',
  '\x24{FOUND}',
  '$ADDRESS',
  "'",
  '"',
  '\\',
  '`id`',
  '$(id)',
  '\n',
  ' ',
  '-',
  '--',
  '*',
  '~',
  '=',
];
/** Arguments full of characters that a shell would interpret. */
const odd = fc
  .array(fc.oneof(fc.constantFrom(...fragments), fc.string({ unit: 'binary', maxLength: 3 })), {
    maxLength: 6,
  })
  .map((words) => words.join('').replaceAll('\0', '').toWellFormed());

test('the program gets every argument unchanged, and variables by their value', () => {
  const variable = { variable: 'ADDRESS' };
  const part = fc.oneof(odd, fc.constant(variable));
  const argument: fc.Arbitrary<Argument> = fc.oneof(part, fc.array(part, { minLength: 1, maxLength: 3 }));
  fc.assert(
    fc.property(fc.array(argument, { minLength: 1, maxLength: 5 }), odd, (args, sought) => {
      const step: Step = { what: 'more', find: ['aws', 'find', sought], make: [['aws', 'make', ...args]] };
      const expected = args.map((arg) => fillArgument(arg, () => 'made'));
      expect(runInShell([address, step])).toBe(['', ...expected].map((arg) => `${arg}\0`).join(''));
    }),
    { numRuns: 40 },
  );
});

test('a file is read from any folder', () => {
  fc.assert(
    fc.property(odd, (text) => {
      const input = join(dir, `in ${text.replaceAll('/', '').slice(0, 50).toWellFormed()}`);
      writeFileSync(input, text);
      const step: Step = { what: 'a file', find: ['aws', 'find'], make: [['aws', 'read']], input };
      expect(runInShell([{ ...address, make: [['printf', 'made']] }, step])).toBe(text);
    }),
    { numRuns: 20 },
  );
});
