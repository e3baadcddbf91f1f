/**
 * Runs the code that `gen` writes for Python and Go, if these are installed: it must
 * read the vectors, and refuse answers and messages that an attacker changed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DeclaredStruct } from '../../src/library/wire/intent.ts';
import {
  address,
  bool,
  bytes,
  option,
  signedType,
  struct,
  text,
  u8,
  u16,
  u32,
  u64,
  u128,
  u256,
  vector,
} from '../../src/server/index.ts';
import { generateFiles } from '../../src/toolchain/gen/generate.ts';
import type { Vector } from '../../src/toolchain/gen/samples.ts';
import { randomMessages } from '../src/library/wire/random_types.ts';

const ROOT = join(import.meta.dirname, '../..');
const FIXTURES = join(ROOT, 'test/fixtures/signed_readers');

/** Structs whose names and fields are keywords or builtins in Python. */
const None = struct('None', { from: u8, self: u16, class: u32, dict: bool });
const Exception = struct('Exception', { note: text, is_final: bool, b: option(bool) });
const Trade = struct('Trade', {
  pair: text,
  cents: u64,
  venue: address,
  memo: bytes,
  legs: vector(option(None)),
  large: u128,
  largest: u256,
  problem: Exception,
});
const SECRET_KEY = new Uint8Array(32).fill(7);
const KEY = Buffer.from(ed25519.getPublicKey(SECRET_KEY)).toString('hex');
const TYPES = [signedType(0, struct('Price', { pair: text, cents: u64 })), signedType(200, Trade)];

interface Case {
  readonly name: string;
  readonly type: string;
  /** Answer of an endpoint, in JSON. If it is missing, the case reads the message in `bytes`. */
  readonly answer?: string;
  readonly bytes?: string;
  readonly payload?: unknown;
  readonly timestamp_ms?: string;
  /** Bytes of the message that was read, in hex, or the error's code. */
  readonly outcome: string;
}

function createAnswer({ intent, timestamp_ms, payload, bytes }: Vector) {
  const signature = Buffer.from(ed25519.sign(Buffer.from(bytes, 'hex'), SECRET_KEY)).toString('hex');
  const data: Record<string, unknown> = { ...payload };
  return { response: { intent, timestamp_ms, data }, signature };
}

type Answer = ReturnType<typeof createAnswer>;

/** Changes to an answer by an attacker, or by another version of the application. */
const CHANGES: readonly [name: string, code: string, change: (answer: Answer) => unknown][] = [
  [
    'with a later timestamp',
    'SIGNATURE',
    ({ response }) => Object.assign(response, { timestamp_ms: '1700000000001' }),
  ],
  ['with another value', 'SIGNATURE', ({ response }) => Object.assign(response.data, { pair: 'x' })],
  [
    'with another signature',
    'SIGNATURE',
    (answer) => Object.assign(answer, { signature: `00${answer.signature.slice(2)}` }),
  ],
  [
    'with a signature of half the length',
    'MALFORMED',
    (answer) => Object.assign(answer, { signature: '00'.repeat(32) }),
  ],
  ['without a signature', 'MALFORMED', (answer) => Object.assign(answer, { signature: undefined })],
  ['without a response', 'MALFORMED', (answer) => Object.assign(answer, { response: [] })],
  ['with another intent', 'INTENT', ({ response }) => Object.assign(response, { intent: 1 })],
  ['without a field', 'MALFORMED', ({ response }) => Object.assign(response.data, { pair: undefined })],
  ...[null, [], 'a', 1.5, -1, true, '01', '1e3', '18446744073709551616'].map(
    (cents): (typeof CHANGES)[number] => [
      `with ${JSON.stringify(cents)} for a u64`,
      'MALFORMED',
      ({ response }) => Object.assign(response.data, { cents }),
    ],
  ),
];

/** Messages of the type Price that Move would never write. */
const MESSAGES: readonly [name: string, code: string, bytes: string][] = [
  ['a length that is not the shortest', 'MALFORMED', `00${'00'.repeat(8)}8000${'00'.repeat(8)}`],
  ['a length of 2^31', 'MALFORMED', `00${'00'.repeat(8)}8080808008${'00'.repeat(8)}`],
  ['a length without an end', 'MALFORMED', `00${'00'.repeat(8)}${'80'.repeat(20)}`],
  ['text that is not UTF-8', 'MALFORMED', `00${'00'.repeat(8)}01ff${'00'.repeat(8)}`],
  ['another intent', 'INTENT', `01${'00'.repeat(17)}`],
  ['nothing', 'MALFORMED', ''],
];

function createCases(vectors: readonly Vector[]): Case[] {
  const cases = vectors.map((vector): Case => ({ ...vector, outcome: vector.bytes }));
  for (const vector of vectors) {
    const { name, type, bytes } = vector;
    const answer = createAnswer(vector);
    cases.push({ name: `${name} answered`, type, answer: JSON.stringify(answer), outcome: bytes });
    Object.assign(answer, { unsigned: {} });
    Object.assign(answer.response.data, { not_signed: 1 });
    cases.push({ name: `${name} and more`, type, answer: JSON.stringify(answer), outcome: bytes });
    if (!/different/.test(name)) continue;
    for (let end = 0; end < bytes.length; end += 2) {
      cases.push({ name: `${name} to ${end}`, type, bytes: bytes.slice(0, end), outcome: 'MALFORMED' });
    }
    cases.push({ name: `${name} and a byte`, type, bytes: `${bytes}00`, outcome: 'MALFORMED' });
  }
  const price = vectors.find(({ name }) => name === 'price_different');
  if (price === undefined) return cases;
  const { type } = price;
  for (const [name, code, change] of CHANGES) {
    const answer = createAnswer(price);
    change(answer);
    cases.push({ name: `an answer ${name}`, type, answer: JSON.stringify(answer), outcome: code });
  }
  for (const [name, code, bytes] of MESSAGES) cases.push({ name, type, bytes, outcome: code });
  return cases;
}

const random = fc
  .sample(randomMessages, { numRuns: 12, seed: 49 })
  .map(({ signed }, index) => signedType(index, signed.payload));

/** Sets of generated files, with their cases. */
const SETS = [TYPES, random].map(createSet);

function createSet(types: readonly DeclaredStruct[]) {
  const { application } = generateFiles(types, 'app');
  const vectors: Vector[] = JSON.parse(application.get('generated/vectors.json') ?? '').vectors;
  return { application, cases: createCases(vectors), types: types.map(({ payload }) => payload.name) };
}

/** Generated files and cases for the type in the example of src/apps/README.md. */
const QUOTE = createSet([signedType(0, struct('Quote', { pair: text, cents: u64 }))]);

function readSnippet(language: string): string {
  const page = readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8');
  const [, snippet = ''] = page.split(`\n\`\`\`${language}\n`);
  return snippet.slice(0, snippet.indexOf('\n```') + 1);
}

function createFolder(): string {
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'build/readers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function writeSet({ application, cases }: (typeof SETS)[number], file: string, path: string, folder: string) {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), application.get(`generated/${file}`) ?? '');
  writeFileSync(join(folder, 'cases.json'), JSON.stringify(cases));
}

function expectOutcomes(cases: readonly Case[], output: string) {
  const outcomes: unknown[] = JSON.parse(output);
  const pair = (outcome: (test: Case, index: number) => unknown) =>
    cases.map((test, index) => [test.name, outcome(test, index)]);
  expect(pair((_, index) => outcomes[index])).toEqual(pair(({ outcome }) => outcome));
}

const isInstalled = (program: string, ...argv: string[]) => spawnSync(program, argv).status === 0;
const PYTHON = ['python3', '/usr/bin/python3'].find((program) =>
  isInstalled(program, '-c', 'import cryptography'),
);

test('the cases have every kind of outcome', () => {
  const codes = SETS.flatMap(({ cases }) =>
    cases.map(({ outcome }) => outcome.replace(/^[0-9a-f]+$/, 'read')),
  );
  expect(new Set(codes)).toEqual(new Set(['read', 'MALFORMED', 'INTENT', 'SIGNATURE']));
});

describe.skipIf(PYTHON === undefined)('in Python', () => {
  test.each(SETS)('%# reads the vectors, and refuses changed answers and messages', (set) => {
    const folder = createFolder();
    writeSet(set, 'signed.py', 'signed.py', folder);
    const argv = ['-B', '-W', 'error', join(FIXTURES, 'run.py'), folder, KEY];
    expectOutcomes(set.cases, execFileSync(PYTHON ?? '', argv, { encoding: 'utf8' }));
  });

  test('refuses a key that is not 32 bytes', () => {
    const folder = createFolder();
    writeSet(QUOTE, 'signed.py', 'signed.py', folder);
    const program = `
import signed
for size in (0, 31, 33):
    try:
        signed.verify_signature(b'', bytes(64), bytes(size))
    except signed.SignedError as error:
        print(error.code)
`;
    const output = execFileSync(PYTHON ?? '', ['-B', '-c', program], { cwd: folder, encoding: 'utf8' });
    expect(output).toBe('SIGNATURE\n'.repeat(3));
  });

  test('the example of src/apps/README.md verifies an answer', () => {
    const folder = createFolder();
    writeSet(QUOTE, 'signed.py', 'signed.py', folder);
    const quote = QUOTE.cases.find(({ name }) => name === 'quote_different answered');
    const answerText = JSON.stringify(quote?.answer);
    const requests = `
import json
class post:
    def __init__(self, *_, **__): pass
    def json(self): return json.loads(${answerText})
`;
    writeFileSync(join(folder, 'requests.py'), requests);
    const head = `import requests, signed\nurl = ''\npublic_key = bytes.fromhex('${KEY}')\n`;
    writeFileSync(join(folder, 'example.py'), head + readSnippet('python'));
    expect(execFileSync(PYTHON ?? '', ['-B', 'example.py'], { cwd: folder, encoding: 'utf8' })).toBe(
      '2 1700000000000\n',
    );
  });
});

describe.skipIf(!isInstalled('go', 'version'))('in Go', () => {
  test.each(SETS)('%# reads the vectors, and refuses changed answers and messages', (set) => {
    const folder = createFolder();
    writeSet(set, 'signed.go', 'signed/signed.go', folder);
    writeFileSync(join(folder, 'go.mod'), 'module readers\n\ngo 1.21\n');
    const branches = set.types.map(
      (type) => `		case "${type}":
			if c.Answer != "" {
				message, err := signed.ReadAnswer[signed.${type}]([]byte(c.Answer), key)
				if err != nil {
					outcomes = append(outcomes, written(nil, err))
					continue
				}
				outcomes = append(outcomes, written(signed.EncodeMessage(message)))
				continue
			}
			message, err := signed.DecodeMessage[signed.${type}](decode(c.Bytes))
			if err != nil {
				outcomes = append(outcomes, written(nil, err))
				continue
			}
			outcomes = append(outcomes, written(signed.EncodeMessage(message)))
`,
    );
    const snippet = readSnippet('go').replace('Quote', set.types[0] ?? '');
    const example = `
func example(body []byte, publicKey ed25519.PublicKey) error {
	${snippet}	_ = message
	return err
}
`;
    const program = readFileSync(join(FIXTURES, 'main.go.txt'), 'utf8');
    writeFileSync(
      join(folder, 'main.go'),
      program.replace('\t\t// CASES\n', () => branches.join('')) + example,
    );
    const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GOTOOLCHAIN: 'local' };
    const go = (...argv: string[]) => execFileSync('go', argv, { cwd: folder, env, encoding: 'utf8' });
    go('vet', './...');
    expectOutcomes(set.cases, go('run', '.', 'cases.json', KEY));
    if (isInstalled('gofmt', '-h')) {
      expect(execFileSync('gofmt', ['-d', 'signed'], { cwd: folder, encoding: 'utf8' })).toBe('');
    }
  });
});
