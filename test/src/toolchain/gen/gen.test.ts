/**
 * The files that are generated from signed types. All languages have the same bytes, and no foreign file is
 * overwritten.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { describeSigned, type SignedType } from '../../../../src/library/client/index.ts';
import { toSchemaType } from '../../../../src/library/wire/schema_type.ts';
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
} from '../../../../src/server/index.ts';
import { GEN_CODES } from '../../../../src/toolchain/gen/errors.ts';
import { generatedFiles, main } from '../../../../src/toolchain/gen/gen.ts';
import { generate, generateFiles } from '../../../../src/toolchain/gen/generate.ts';
import { generatedCode, writeGenerated } from '../../../../src/toolchain/gen/generated_file.ts';
import type { Vector } from '../../../../src/toolchain/gen/samples.ts';
import { snakeCase } from '../../../../src/toolchain/gen/signed_structs.ts';
import { chooseFramework, testPackage } from '../../../../src/toolchain/move/packages.ts';
import { cloneAt, repositoryAt } from '../../../../src/toolchain/project.ts';
import { call } from '../../cli/run.ts';
import { randomMessages } from '../../library/wire/random_types.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const FIXTURES = join(ROOT, 'test/fixtures/apps');

const Leg = struct('Leg', { venue: address, price: u64 });
/** Names that only look like keywords of Move. */
const Words = struct('Words', {
  has: u8,
  self: u8,
  address: u8,
  option: u8,
  phantom: u8,
  signed: u8,
  string: text,
});
const Route = struct('RouteOfLegs', {
  first: Leg,
  others: vector(option(Leg)),
  memo: bytes,
  memos: option(vector(bytes)),
  notes: option(bytes),
  names: vector(text),
  tag: u8,
  small: u16,
  medium: u32,
  large: u128,
  largest: u256,
  is_open: bool,
  is_final: bool,
  words: Words,
});
const Price = signedType(0, struct('Price', { pair: text, cents: u64 }));
const TYPES = [Price, signedType(3, Route), signedType(255, Leg)];

/** Makes a folder from which imports of packages are resolved. */
function createFolder(): string {
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  const path = mkdtempSync(join(ROOT, 'build/gen-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

function parseVectors(json: string): Vector[] {
  return JSON.parse(json).vectors;
}

async function runMove(files: ReadonlyMap<string, string>) {
  const run = await testPackage('weather', chooseFramework({}), { extra: Object.fromEntries(files) });
  expect(run.output).not.toMatch(/^(warning|error)/m);
  expect(run.passed, run.output).toBe(true);
  return [...run.output.matchAll(/\[ PASS {4}\] app::signed_vectors::(\w+)/g)].map(([, name]) => name);
}

describe('the vectors', () => {
  const { move, application } = generateFiles(TYPES, 'app');
  const vectors = parseVectors(application.get('generated/vectors.json') ?? '');

  test('exist for every type, with zeros, different values and the largest values', () => {
    expect(vectors.map(({ name }) => name)).toEqual(
      ['price', 'route_of_legs', 'leg'].flatMap((name) => [
        `${name}_zeros`,
        `${name}_different`,
        `${name}_largest`,
      ]),
    );
  });

  test("hold for the application's own types", () => {
    for (const { type, intent, timestamp_ms, payload, bytes } of vectors) {
      const { message } = Object(TYPES.find(({ payload: { name } }) => name === type));
      expect(message.serialize({ intent, timestamp_ms, payload }).toHex()).toBe(bytes);
    }
  });

  test('hold in Move, whose compiler prints no warning', async () => {
    expect((await runMove(move)).sort()).toEqual(vectors.map(({ name }) => name).sort());
  });

  test('hold in the module for dapps', async () => {
    const file = join(createFolder(), 'client.ts');
    writeFileSync(file, application.get('generated/client.ts') ?? '');
    const client: Record<string, SignedType<unknown, unknown>> = await import(pathToFileURL(file).href);
    for (const { type, intent, timestamp_ms, payload, bytes } of vectors) {
      const { message } = client[type] ?? {};
      expect(message?.serialize({ intent, timestamp_ms, payload }).toHex()).toBe(bytes);
      expect(message?.serialize(message.parse(Buffer.from(bytes, 'hex'))).toHex()).toBe(bytes);
    }
  });

  test('hold for the reader that shares no code with the generated files', () => {
    for (const { type, bytes } of vectors) {
      const signed = TYPES.find(({ payload: { name } }) => name === type);
      if (signed === undefined) throw new Error('no type');
      const rows = describeSigned(toSchemaType(signed), Buffer.from(bytes, 'hex'));
      expect(rows.at(-1)?.to).toBe(bytes.length / 2);
    }
    const price = vectors.find(({ name }) => name === 'price_different');
    const [, , pair, cents] = describeSigned(toSchemaType(Price), Buffer.from(price?.bytes ?? '', 'hex'));
    expect({ pair: pair?.value, cents: cents?.value }).toEqual(price?.payload);
  });

  test('hold in Move for random types', async () => {
    const messages = fc.sample(randomMessages, { numRuns: 12, seed: 30 });
    const types = messages.map(({ signed }, index) => signedType(index, signed.payload));
    const files = generateFiles(types, 'app');
    expect(await runMove(files.move)).toHaveLength(3 * types.length);
  });

  test('fail in Move if one side has the fields in another order', async () => {
    const swapped = new Map(move).set(
      'sources/signed.move',
      (move.get('sources/signed.move') ?? '').replace(
        '    venue: address,\n    price: u64,\n}',
        '    price: u64,\n    venue: address,\n}',
      ),
    );
    const run = await testPackage('weather', chooseFramework({}), { extra: Object.fromEntries(swapped) });
    expect(run.passed).toBe(false);
    expect(run.output).toMatch(/FAIL.*leg_different/);
  });
});

test('the module for dapps compiles with its declared types, and is formatted', () => {
  const dir = createFolder();
  const { application } = generateFiles(TYPES, 'app');
  writeFileSync(join(dir, 'client.ts'), application.get('generated/client.ts') ?? '');
  writeFileSync(
    join(dir, 'use.ts'),
    `import type { EnclaveClient } from 'sui-enclave/client';
import { Leg, Price, RouteOfLegs } from './client.ts';
export async function use(client: EnclaveClient): Promise<[Price, RouteOfLegs, Leg]> {
  const price: Price = (await client.call('/a', {}, Price)).data;
  const route: RouteOfLegs = (await client.call('/b', {}, RouteOfLegs)).data;
  const leg: Leg | null | undefined = route.others[0];
  return [price, route, leg ?? (await client.call('/c', {}, Leg)).data];
}
`,
  );
  const config = { extends: join(ROOT, 'tsconfig.json'), include: [], files: ['use.ts'] };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config));
  const run = (program: string, ...args: string[]) =>
    execFileSync(join(ROOT, 'node_modules/.bin', program), args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  expect(run('tsc', '-p', join(dir, 'tsconfig.json'))).toBe('');
  run('biome', 'check', '--vcs-enabled=false', '--error-on-warnings', join(dir, 'client.ts'));
});

describe('gen refuses', () => {
  const signs = (...structs: { name: string; fields: readonly object[] }[]) =>
    structs.map((payload, intent) => ({ intent, payload })) as never;
  const field = (name: string, move: string) => ({ name, move, type: move === 'u8' ? u8 : { move } });
  test.each<[string, keyof typeof GEN_CODES, never, RegExp]>([
    ['an application that signs nothing', 'GEN_NOTHING', signs(), /signs nothing/],
    ['an unknown type', 'GEN_TYPE', signs({ name: 'A', fields: [field('a', 'u65')] }), /^A\.a .* u65/],
    [
      'a type within a vector',
      'GEN_TYPE',
      signs({ name: 'A', fields: [field('a', 'vector<f64>')] }),
      /^A\.a /,
    ],
    [
      'more fields than Sui publishes',
      'GEN_TYPE',
      signs({ name: 'A', fields: Array.from({ length: 33 }, (_, index) => field(`a${index}`, 'u8')) }),
      /^the struct A has 33 fields/,
    ],
    ['a keyword', 'GEN_NAME', signs({ name: 'A', fields: [field('move', 'u8')] }), /^A\.move: move is/],
    ['a name with a hyphen', 'GEN_NAME', signs({ name: 'A', fields: [field('a-b', 'u8')] }), /^A\.a-b /],
    ['a name that begins with _', 'GEN_NAME', signs({ name: 'A', fields: [field('_a', 'u8')] }), /^A\._a /],
    [
      'a struct in lower case',
      'GEN_NAME',
      signs({ name: 'a', fields: [field('a', 'u8')] }),
      /^the struct a /,
    ],
    [
      "a struct with the name of a type of Move's own",
      'GEN_NAME',
      signs({ name: 'String', fields: [field('a', 'u8')] }),
      /String/,
    ],
    [
      'a name whose function would have too long a name',
      'GEN_NAME',
      signs({ name: `A${'a'.repeat(100)}`, fields: [field('b'.repeat(100), 'u8')] }),
      /more than 128/,
    ],
    [
      'two fields that would have one name in Go',
      'GEN_CONFLICT',
      signs({ name: 'A', fields: [field('a_b', 'u8'), field('aB', 'u8')] }),
      /field of Go AB/,
    ],
    [
      'two fields that would have one name in Python',
      'GEN_CONFLICT',
      signs({ name: 'A', fields: [field('from', 'u8'), field('from_', 'u8')] }),
      /field of Python from_/,
    ],
    [
      'a struct with a name of the generated code',
      'GEN_NAME',
      signs({ name: 'SignedMessage', fields: [field('a', 'u8')] }),
      /SignedMessage/,
    ],
    [
      'two structs of one name',
      'GEN_CONFLICT',
      [signedType(0, struct('A', { leg: struct('Leg', { a: u8 }), other: Leg }))] as never,
      /two structs Leg/,
    ],
    [
      'two structs whose functions have one name',
      'GEN_CONFLICT',
      signs({ name: 'New', fields: [field('price', 'u8')] }, { name: 'Price', fields: [field('a', 'u8')] }),
      /new_price/,
    ],
    [
      'two structs that would have one name in functions of Move',
      'GEN_CONFLICT',
      signs({ name: 'AB', fields: [field('a', 'u8')] }, { name: 'Ab', fields: [field('a', 'u8')] }),
      /struct ab/,
    ],
    [
      'a type that is signed twice',
      'GEN_CONFLICT',
      [signedType(0, Leg), signedType(1, Leg)] as never,
      /signed type Leg/,
    ],
  ])('%s', (_, code, types, message) => {
    expect(() => generateFiles(types, 'app')).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });
});

test.each([
  ['Price', 'price'],
  ['WeatherResponse', 'weather_response'],
  ['NFTOfUser2', 'nft_of_user2'],
  ['A_B', 'a_b'],
])('the type %s is named %s in functions', (name, snake) => {
  expect(snakeCase(name)).toBe(snake);
});

describe('the files of an application', () => {
  const dice = join(FIXTURES, 'dice');
  const application = { name: 'dice', folder: dice };

  function movePackage(toml: string): string {
    const dir = createFolder();
    writeFileSync(join(dir, 'Move.toml'), toml);
    return dir;
  }

  test('are in its folder and its Move package, and their Move modules have the name of the package', async () => {
    const dir = movePackage('[package]\nedition = "2024"\nname = "games"\n\n[dependencies]\n');
    const files = await generate(application, dir);
    expect([...files.keys()]).toEqual([
      join(dir, 'sources/signed.move'),
      join(dir, 'tests/signed_vectors.move'),
      join(dice, 'generated/vectors.json'),
      join(dice, 'generated/client.ts'),
      join(dice, 'generated/signed.py'),
      join(dice, 'generated/signed.go'),
    ]);
    expect(files.get(join(dir, 'sources/signed.move'))).toContain('\nmodule games::signed;\n');
    expect(await generate(application, dir)).toEqual(files);
  });

  test.each([['[dependencies]\nname = "x"\n'], ['[package]\nname = "a-b"\n'], ['']])(
    'can not be made without the name of the Move package: %j',
    async (toml) => {
      await expect(generate(application, movePackage(toml))).rejects.toMatchObject({ code: 'GEN_PACKAGE' });
    },
  );
});

describe("in an author's own repository", () => {
  /** Makes a repository that is an application itself. The folder's name differs from the application's. */
  function createRepository() {
    const root = createFolder();
    cpSync(join(FIXTURES, 'dice/app.ts'), join(root, 'app.ts'));
    writeFileSync(join(root, 'app.yaml'), 'name: dice\nendpoints: []\nsecrets: []\n');
    for (const name of ['dice', 'games']) {
      mkdirSync(join(root, 'move', name), { recursive: true });
      writeFileSync(join(root, 'move', name, 'Move.toml'), `[package]\nname = "${name}"\n`);
    }
    return repositoryAt(root);
  }

  test('no name is needed, and the Move package has the name of the application by default', async () => {
    const project = createRepository();
    const files = await generatedFiles(project, undefined, undefined);
    expect([...files.keys()]).toEqual([
      join(project.root, 'move/dice/sources/signed.move'),
      join(project.root, 'move/dice/tests/signed_vectors.move'),
      join(project.root, 'generated/vectors.json'),
      join(project.root, 'generated/client.ts'),
      join(project.root, 'generated/signed.py'),
      join(project.root, 'generated/signed.go'),
    ]);
    expect(await generatedFiles(project, 'dice', undefined)).toEqual(files);
    const otherFolder = join(project.root, 'move/games');
    const [[path, source] = []] = await generatedFiles(project, undefined, otherFolder);
    expect([path, source]).toEqual([
      join(otherFolder, 'sources/signed.move'),
      expect.stringContaining('\nmodule games::signed;\n'),
    ]);
  });

  test('an unknown name is refused, as is a missing name in a clone', async () => {
    await expect(generatedFiles(createRepository(), 'tally', undefined)).rejects.toMatchObject({
      code: 'CONFIG',
    });
    await expect(generatedFiles(cloneAt(), undefined, undefined)).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('gen', () => {
  const { application } = generateFiles(TYPES, 'app');
  const listFilesBelow = (dir: string) =>
    new Map([...application].map(([path, content]) => [join(dir, path), content]));

  test('writes the files, and does not change them later', () => {
    const files = listFilesBelow(createFolder());
    expect(() => writeGenerated(files, true)).toThrow(expect.objectContaining({ code: 'GEN_OUTDATED' }));
    expect([...files.keys()].some((path) => existsSync(path))).toBe(false);
    expect(writeGenerated(files, false)).toEqual([...files.keys()]);
    expect(writeGenerated(files, true)).toEqual([]);
    expect(writeGenerated(files, false)).toEqual([]);
  });

  test('replaces a file of its own that is out of date', () => {
    const path = join(createFolder(), 'a.move');
    writeGenerated(new Map([[path, generatedCode('module a::b;\n')]]), false);
    expect(() => writeGenerated(new Map([[path, generatedCode('module a::c;\n')]]), true)).toThrow(
      expect.objectContaining({ code: 'GEN_OUTDATED' }),
    );
    expect(writeGenerated(new Map([[path, generatedCode('module a::c;\n')]]), false)).toEqual([path]);
    expect(readFileSync(path, 'utf8')).toMatch(/\nmodule a::c;\n$/);
  });

  test.each([
    ['client.ts', 'edited', 'GEN_EDITED', (text: string) => text.replace('cents', 'pence')],
    ['client.ts', 'with an additional line', 'GEN_EDITED', (text: string) => `${text}\n`],
    ['client.ts', 'without its header', 'GEN_FOREIGN_FILE', (text: string) => text.replace(/^.*\n/, '')],
    ['client.ts', 'with foreign content', 'GEN_FOREIGN_FILE', () => 'export {};\n'],
    ['signed.py', 'edited', 'GEN_EDITED', (text: string) => text.replace('cents', 'pence')],
    ['signed.go', 'without its header', 'GEN_FOREIGN_FILE', (text: string) => text.replace(/^.*\n/, '')],
    ['vectors.json', 'edited', 'GEN_EDITED', (text: string) => text.replace('price_zeros', 'x')],
    ['vectors.json', 'with foreign content', 'GEN_FOREIGN_FILE', () => '{}\n'],
  ])('refuses a file and then writes nothing: %s, %s', (name, _, code, change) => {
    const dir = createFolder();
    const path = join(dir, 'generated', name);
    writeGenerated(listFilesBelow(dir), false);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
    const edited = readFileSync(path, 'utf8');
    const first = join(dir, 'a.ts');
    for (const check of [true, false]) {
      const files = new Map([[first, generatedCode('')], ...listFilesBelow(dir)]);
      expect(() => writeGenerated(files, check)).toThrow(expect.objectContaining({ code }));
    }
    expect([existsSync(first), readFileSync(path, 'utf8')]).toEqual([false, edited]);
  });
});

describe('sui-enclave gen', () => {
  test.each([
    [['salt', '--move', 'move/weather'], 1, /^GEN_NOTHING/],
    [['salt'], 1, /^GEN_/],
    [['weather', '--check'], 1, /^GEN_OUTDATED: .*signed\.move/],
    [
      ['wether'],
      1,
      /^CONFIG: APP=wether: there is no such application; the applications are: .*\bsalt\b.*\bweather\b/,
    ],
    [[], 2, /^USAGE: missing: <application>/],
    [['weather', '--chek'], 2, /^USAGE/],
  ])('%j exits with %i', async (argv, status, message) => {
    expect(await call(main, argv)).toMatchObject({ status, stderr: expect.stringMatching(message) });
  });

  test('has a page that explains its codes', () => {
    const page = readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8');
    for (const code of ['GEN_FOREIGN_FILE', 'GEN_EDITED', 'GEN_NAME', 'GEN_TYPE', 'GEN_CONFLICT']) {
      expect(page).toContain(`\`${code}\``);
      expect(GEN_CODES).toHaveProperty(code);
    }
  });
});
