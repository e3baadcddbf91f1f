import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  buildPackage,
  chooseFramework,
  packageAtPath,
  packageNames,
  testPackage,
} from '../../src/toolchain/move/packages.ts';
import { repositoryAt } from '../../src/toolchain/project.ts';
import { enclaveVectors, feedVectors, realDocumentTests, weatherVectors } from './vectors.ts';
import { withoutOwnTests } from './without_own_tests.ts';

const framework = chooseFramework(process.env);

const MOVE = new URL('../../move/', import.meta.url);

function read(path: string): string {
  return readFileSync(new URL(path, MOVE), 'utf8');
}

function findNames(source: string, pattern: RegExp): string[] {
  return [...source.matchAll(pattern)].map(([, name]) => name ?? '');
}

const TESTS = packageNames()
  .flatMap((name) => readdirSync(new URL(`${name}/tests/`, MOVE)).map((file) => `${name}/tests/${file}`))
  .map(read)
  .join('\n');

describe('the Move modules that are generated from test/vectors', () => {
  test.each([
    ['enclave/tests/vectors.move', enclaveVectors],
    ['enclave/tests/real_document_cli_tests.move', realDocumentTests],
    ['feed/tests/vectors.move', feedVectors],
    ['weather/tests/vectors.move', weatherVectors],
  ])('move/%s is up to date', async (path, generate) => {
    await expect(generate()).toMatchFileSnapshot(fileURLToPath(new URL(path, MOVE)));
  });
});

/** Reports of the packages' own tests, by package. */
const runs = new Map<string, ReturnType<typeof testPackage>>();

/** Runs a package's own tests, or returns the report of the run before. */
function runTests(name: string): ReturnType<typeof testPackage> {
  const run = runs.get(name) ?? testPackage(name, framework);
  runs.set(name, run);
  return run;
}

describe.each(packageNames())('move/%s', (name) => {
  test('compiles without a warning', async () => {
    const build = await buildPackage(name, framework);
    expect(build.warnings).toBe('');
    expect(build.modules).not.toHaveLength(0);
  });

  test('passes its unit tests', async () => {
    const run = await runTests(name);
    expect(run.output).toMatch(/Test result: OK\. Total tests: [1-9]/);
    expect(run.passed, run.output).toBe(true);
  });
});

test('the error for code that uses a module which the stub lacks tells how to get the framework', async () => {
  const extra = { 'sources/reader.move': 'module app::reader;\n\nuse sui::bcs;\n' };
  const run = await testPackage('weather', chooseFramework({}), { extra });
  expect(run.passed).toBe(false);
  expect(run.output).toContain("Unbound module: 'sui::bcs'");
  expect(run.output).toMatch(/stub of Sui's framework lacks this: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR/);
  // A mistake in the code itself does not count as one of the framework.
  const readerFile = { 'sources/reader.move': 'module app::reader;\n\nuse app::nothing;\n' };
  const { output } = await testPackage('weather', chooseFramework({}), { extra: readerFile });
  expect(output).toContain('app::nothing');
  expect(output).not.toContain('FRAMEWORK=fetch');
});

test.each([
  ['option::some(1u64).do!(|_| ());', /FRAMEWORK=fetch/],
  ['3u64.do!(|_| ());', /FRAMEWORK=fetch/],
])('the error for a macro that the stub lacks gives the same advice: %s', async (line, advice) => {
  const extra = { 'sources/reader.move': `module app::reader;\n\nfun read() { ${line} }\n` };
  expect((await testPackage('weather', chooseFramework({}), { extra })).output).toMatch(advice);
});

test('the error for a method that a type of the package lacks does not mention the framework', async () => {
  const line = 'public struct Point has drop { x: u64 }\n\nfun read(point: &Point) { point.move_by(1) }';
  const extra = { 'sources/reader.move': `module app::reader;\n\n${line}\n` };
  const { output } = await testPackage('weather', chooseFramework({}), { extra });
  expect(output).toContain("No known method 'move_by'");
  expect(output).not.toContain('FRAMEWORK=fetch');
});

describe.each([
  'enclave/sources/enclave.move',
  'enclave/sources/pcrs.move',
  'enclave/sources/attested.move',
  'enclave/sources/once.move',
  'enclave/sources/source.move',
  'feed/sources/feed.move',
  'weather/sources/weather.move',
])('move/%s', (path) => {
  const source = read(path);

  test.each(findNames(source, /^public(?:\(package\))? fun (\w+)/gm))('%s is called by a test', (fun) => {
    expect(new RegExp(`[.:]${fun}(<[^(]*>)?\\(`).test(TESTS)).toBe(true);
  });

  test('has a doc comment on every public item', () => {
    const before = findNames(source, /^(.*)\n(?=public(?:\(package\))? (?!use ))/gm);
    expect(before.length).toBeGreaterThan(2);
    for (const line of before) expect(line).toMatch(/^\/\/\/ /);
  });
});

test.each([
  ['enclave', 'enclave'],
  ['enclave', 'pcrs'],
  ['enclave', 'once'],
  ['enclave', 'source'],
  ['feed', 'feed'],
])('every error of the module %s::%s is provoked by a test', (folder, module) => {
  const source = read(`${folder}/sources/${module}.move`);
  const errors = new Set(findNames(source, /^const (E[A-Z]\w+): vector<u8>/gm));
  expect(errors.size).toBeGreaterThan(2);
  const provoked = findNames(TESTS, new RegExp(`expected_failure\\(abort_code = ${module}::(\\w+)\\)`, 'g'));
  expect(new Set(provoked)).toEqual(errors);
});

describe('the runner', () => {
  // The smaller package is enough: its own tests run together with the failing one.
  const failing = '#[test_only] module app::failing; #[test] fun it_fails() { abort 3 }';

  test('fails when one test fails', async () => {
    const run = await testPackage('weather', framework, { extra: { 'tests/failing.move': failing } });
    expect(run.passed).toBe(false);
    expect(run.output).toContain('[ FAIL    ] app::failing::it_fails');
    expect(run.output).toContain('failed: 1');
  });

  test('fails when a test does not compile', async () => {
    const run = await testPackage('weather', framework, { extra: { 'tests/failing.move': 'module' } });
    expect(run).toMatchObject({ passed: false, output: expect.stringContaining('tests/failing.move') });
  });

  test('names the tests of a real attestation document as left out', async () => {
    const run = await runTests('enclave');
    expect(run.leftOut).toEqual(['tests/real_document_cli_tests.move']);
  });

  test('has no verifier of attestation documents: tests that need it compile, and fail where they call it', async () => {
    const run = await testPackage('enclave', framework, {
      withCliTests: true,
      extra: withoutOwnTests('enclave'),
    });
    expect(run.output.match(/\[ FAIL {4}\] \S+/g)).toEqual([
      '[ FAIL    ] enclave::real_document_cli_tests::a_registrar_registers_the_document',
      '[ FAIL    ] enclave::real_document_cli_tests::a_rotation_registers_the_successor',
      '[ FAIL    ] enclave::real_document_cli_tests::another_image_is_refused',
      '[ FAIL    ] enclave::real_document_cli_tests::anyone_registers_the_document_under_an_open_config',
      '[ FAIL    ] enclave::real_document_cli_tests::one_transaction_creates_and_shares_a_config_and_an_enclave',
      '[ FAIL    ] enclave::real_document_cli_tests::the_registers_and_the_key_are_those_of_the_document',
    ]);
    expect(
      run.output.match(/aborted with code 0 originating in the module sui::nitro_attestation/g),
    ).toHaveLength(6);
  });
});

test('a local dependency names a package of the repository, or one of the framework', () => {
  const root = mkdtempSync(join(tmpdir(), 'move-packages-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'move/price'), { recursive: true });
  writeFileSync(join(root, 'move/price/Move.toml'), '');
  const repository = repositoryAt(root);
  const find = (path: string) => packageAtPath(path, repository);
  expect(find('../price')).toBe('price');
  // In the installed framework, feed names enclave by a path from its own folder.
  expect([find('../enclave'), find('../feed')]).toEqual(['enclave', 'feed']);
  expect(find(relative(join(root, 'move/price'), fileURLToPath(new URL('feed', MOVE))))).toBe('feed');
  expect([find('../weather'), find('../../feed'), find('../'), find('/etc')]).toEqual(
    Array(4).fill(undefined),
  );
});

describe('the choice of a framework', () => {
  test('is the stub by default, and its description names it', () => {
    expect(chooseFramework({})).toMatchObject({
      isStub: true,
      description: expect.stringContaining("a stub of Sui's framework"),
    });
  });

  test('is still the stub if SUI_FRAMEWORK_DIR names the folder of the stub', () => {
    const dir = fileURLToPath(new URL('../../src/devnet/move_framework', import.meta.url));
    expect(chooseFramework({ SUI_FRAMEWORK_DIR: dir }).isStub).toBe(true);
  });

  test('is not the stub with FRAMEWORK=fetch', () => {
    expect(chooseFramework({ FRAMEWORK: 'fetch' }).isStub).toBe(false);
  });

  test.each([
    ['the cause', { cause: Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }) }, /ENOTFOUND/],
    ['the message where there is no cause', {}, /fetch failed/],
  ])(
    'fails with an error of its own, which has %s, if the framework can not be fetched',
    async (_case, options, reason) => {
      const refused = () => Promise.reject(new TypeError('fetch failed', options));
      vi.spyOn(globalThis, 'fetch').mockImplementation(refused);
      // The fetcher pauses before it retries.
      vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void) =>
        setImmediate(run)) as never);
      onTestFinished(() => void vi.restoreAllMocks());
      await expect(buildPackage('enclave', chooseFramework({ FRAMEWORK: 'fetch' }))).rejects.toMatchObject({
        code: 'FRAMEWORK_UNREACHABLE',
        message: expect.stringMatching(new RegExp(`github\\.com.*${reason.source}.*SUI_FRAMEWORK_DIR`)),
      });
    },
  );

  test.each([
    [{ SUI_FRAMEWORK_DIR: '/nowhere' }, 'SUI_FRAMEWORK_DIR=/nowhere: there is no move-stdlib/Move.toml'],
    [{ FRAMEWORK: 'real' }, 'FRAMEWORK must be "fetch" or unset'],
    [{ FRAMEWORK: 'fetch', SUI_FRAMEWORK_DIR: '/nowhere' }, 'not both'],
  ])('%j is refused', (env, message) => {
    expect(() => chooseFramework(env)).toThrow(message);
  });
});
