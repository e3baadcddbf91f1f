/**
 * The Move compiler ends within its limits of time, stack and memory, whatever the author's sources. Its
 * messages repeat no text unescaped.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MovePackageFetcher } from '@zktx.io/sui-move-builder/full';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BOUNDS, type Bounds } from '../../../../src/toolchain/audit/apart.ts';
import { MoveCommit } from '../../../../src/toolchain/audit/commit.ts';
import { Compiler } from '../../../../src/toolchain/audit/compile.ts';
import type { AuditError } from '../../../../src/toolchain/audit/errors.ts';
import { sourcesIn } from '../../../../src/toolchain/audit/move_sources.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';

const BOUND: Bounds = { ...BOUNDS, ms: 1500 };

function compile(source: string, bounds = BOUND): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'audit-move-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'sources'));
  const manifest = '[package]\nname = "app"\nedition = "2024"\n[addresses]\napp = "0x0"\n';
  writeFileSync(join(folder, 'Move.toml'), manifest);
  writeFileSync(join(folder, 'sources/app.move'), source);
  const compiler = new Compiler(chooseFramework({}), { network: undefined }, bounds);
  return compiler.compile('app', sourcesIn(folder), { folders: new Map(), published: new Map() }).then(
    (modules) => modules.map(({ name }) => name).join(),
    ({ code, message }: AuditError) => `${code}: ${message}`,
  );
}

test('the time limit ends the compiler on ten levels of macros that call macros', async () => {
  const macros = Array.from({ length: 10 }, (_, at) => {
    const call = at === 0 ? '$x' : `f${at - 1}!($x)`;
    return `macro fun f${at}($x: u64): u64 { ${Array(4).fill(call).join(' + ')} }`;
  });
  const source = `module app::app;\n${macros.join('\n')}\npublic fun go(x: u64): u64 { f9!(x) }\n`;
  expect(await compile(source)).toMatch(/^SOURCE_TOO_LARGE: .* longer than 1\.5 s/);
});

test('the stack limit ends the compiler', async () => {
  const source = `module app::app; public fun go(): u64 { ${'('.repeat(100_000)}1${')'.repeat(100_000)} }`;
  expect(await compile(source, BOUNDS)).toMatch(/^NOT_FULLY_CHECKED: .*call stack/);
});

test('sources are not compiled if they are in too many packages', () => {
  const paths = new Map(Array.from({ length: 21 }, (_, at) => [`p${at}`, `/nowhere/p${at}`] as const));
  const compiler = new Compiler(chooseFramework({}), { network: undefined });
  expect(() => new MoveCommit('the commit', paths, compiler)).toThrow(
    expect.objectContaining({ code: 'SOURCE_TOO_LARGE' }),
  );
});

describe('with a framework that is fetched', () => {
  const stub = chooseFramework({});
  const folder = 'subdir = "crates/sui-framework/packages/sui-framework"';
  const source = 'module app::app; public fun go(x: &vector<u64>): u64 { x.length() }';

  async function compileWith(dependency: string): Promise<{ outcome: string; requests: string[] }> {
    const requests: string[] = [];
    const fetcher: MovePackageFetcher = {
      async fetch(url, revision, subdir) {
        requests.push(`${url} ${revision}`);
        if (!url.includes('helper')) return await stub.fetcher.fetch(url, revision, subdir);
        const manifest = '[package]\nname = "helper"\nedition = "2024"\n[addresses]\nhelper = "0x0"\n';
        return { 'Move.toml': manifest, 'sources/helper.move': 'module helper::helper;' };
      },
      fetchFile: async () => null,
      getResolvedSha: () => undefined,
    };
    const compiler = new Compiler({ ...stub, fetcher, isFetched: true }, { network: undefined });
    await compiler.enclave();
    requests.length = 0;
    const manifest = '[package]\nname = "app"\nedition = "2024"\n[dependencies]\n';
    const files = {
      'Move.toml': `${manifest}${dependency}\n[addresses]\napp = "0x0"\n`,
      'sources/app.move': source,
    };
    const outcome = await compiler.compile('app', files, { folders: new Map(), published: new Map() }).then(
      (modules) => modules.map(({ name }) => name).join(),
      ({ code }: AuditError) => code,
    );
    return { outcome, requests };
  }

  test('sources compile against the revision that this program compiles against', async () => {
    const { outcome, requests } = await compileWith('');
    expect(outcome).toBe('app');
    expect(new Set(requests.map((request) => request.split(' ')[0]))).toEqual(
      new Set(['https://github.com/MystenLabs/sui.git']),
    );
  });

  test.each([
    ['a fork', `Sui = { git = "https://github.com/eve/sui.git", ${folder}, rev = "framework/testnet" }`],
    [
      'a commit that a fork may have pushed',
      `Sui = { git = "https://github.com/MystenLabs/sui.git", ${folder}, rev = "${'e'.repeat(40)}" }`,
    ],
    ['another package', 'helper = { git = "https://github.com/eve/helper.git", rev = "main" }'],
  ])('no other package is fetched: %s', async (_name, dependency) => {
    const { outcome, requests } = await compileWith(dependency);
    expect(outcome).toBe('NOT_FULLY_CHECKED');
    expect(requests.join()).not.toMatch(/eve|eeee/);
  });
});

test('names in the messages of the compiler are escaped', async () => {
  const refusal = await compile('module app::app; fun f() { \u001b[2J\u202e }', BOUNDS);
  expect(refusal).toMatch(/^NOT_FULLY_CHECKED: move\/app does not compile/);
  expect(refusal).toMatch(/^[\x20-\x7e…]*$/);
});
