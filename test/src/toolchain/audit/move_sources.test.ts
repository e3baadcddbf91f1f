/** An audit finds the modules that sources declare, even if comments and strings look like declarations. */
import { expect, test } from 'vitest';
import { localPaths, modulesIn } from '../../../../src/toolchain/audit/move_sources.ts';

const listDeclared = (text: string) => [...modulesIn({ 'sources/a.move': text })];

test('modules are found in every syntax that declares them', () => {
  expect(listDeclared('module app::one;')).toEqual(['one']);
  expect(listDeclared('module 0x0::one { } module app::two { }')).toEqual(['one', 'two']);
  expect(listDeclared('address 0x0 { module one { } }')).toEqual(['one']);
  expect(listDeclared('#[test_only]\nmodule\n  app\n::\n/* a /* b */ c */ one // d\n;')).toEqual(['one']);
  expect(listDeclared('module `app`::`one`;')).toEqual(['one']);
});

test('a declaration in a comment or a string does not count', () => {
  expect(listDeclared('// module app::one;\nmodule app::two;')).toEqual(['two']);
  expect(listDeclared('/* // */ module app::one; /* /* */ module app::two; */')).toEqual(['one']);
  expect(listDeclared('const A: vector<u8> = b"\\" module app::one;"; // "\nmodule app::two;')).toEqual([
    'two',
  ]);
  expect(listDeclared('/* module app::one;')).toEqual([]);
});

test('a hostile text is read in a single pass', () => {
  const escapes = '\\"'.repeat(1_000_000);
  for (const end of ['', '\\', '"'])
    expect(listDeclared(`module app::one; "${escapes}${end}`)).toEqual(['one']);
  expect(listDeclared('/*'.repeat(1_000_000))).toEqual([]);
});

test('only sources declare modules, and only Move.toml names dependencies', () => {
  expect([...modulesIn({ 'Move.toml': 'module app::one;' })]).toEqual([]);
  expect(localPaths({ 'Move.toml': 'a = { local = "../a" }\nb = { local = \'../b\' }' })).toEqual([
    '../a',
    '../b',
  ]);
  expect(localPaths({})).toEqual([]);
});
