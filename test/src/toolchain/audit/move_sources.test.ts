/** The modules that sources declare, even if comments and strings look like declarations. */
import { expect, test } from 'vitest';
import { localPaths, modulesIn } from '../../../../src/toolchain/audit/move_sources.ts';

const declared = (text: string) => [...modulesIn({ 'sources/a.move': text })];

test('modules are found in every way to declare them', () => {
  expect(declared('module app::one;')).toEqual(['one']);
  expect(declared('module 0x0::one { } module app::two { }')).toEqual(['one', 'two']);
  expect(declared('address 0x0 { module one { } }')).toEqual(['one']);
  expect(declared('#[test_only]\nmodule\n  app\n::\n/* a /* b */ c */ one // d\n;')).toEqual(['one']);
  expect(declared('module `app`::`one`;')).toEqual(['one']);
});

test('comments and strings declare no module', () => {
  expect(declared('// module app::one;\nmodule app::two;')).toEqual(['two']);
  expect(declared('/* // */ module app::one; /* /* */ module app::two; */')).toEqual(['one']);
  expect(declared('const A: vector<u8> = b"\\" module app::one;"; // "\nmodule app::two;')).toEqual(['two']);
  expect(declared('/* module app::one;')).toEqual([]);
});

test('a hostile text is read in a single pass', () => {
  const escapes = '\\"'.repeat(1_000_000);
  for (const end of ['', '\\', '"']) expect(declared(`module app::one; "${escapes}${end}`)).toEqual(['one']);
  expect(declared('/*'.repeat(1_000_000))).toEqual([]);
});

test('only sources declare modules, and only Move.toml names dependencies', () => {
  expect([...modulesIn({ 'Move.toml': 'module app::one;' })]).toEqual([]);
  expect(localPaths({ 'Move.toml': 'a = { local = "../a" }\nb = { local = \'../b\' }' })).toEqual([
    '../a',
    '../b',
  ]);
  expect(localPaths({})).toEqual([]);
});
