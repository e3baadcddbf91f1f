/** The cache of the tests' Move compiler depends on everything that the compiler reads. */
import { expect, test, vi } from 'vitest';
import { dumpMovePackage } from './move_compiler.ts';

const manifest = (name: string, dependencies = '') =>
  `[package]\nname = "${name}"\nedition = "2024"\nimplicit-dependencies = false\n[addresses]\n${name} = "0x0"\n${dependencies}`;

/** Compiles a module that adds a number to the value of a macro in a dependency. */
async function compile(macroValue: number, addend: number) {
  const fetchLocal = vi.fn(async () => ({
    'Move.toml': manifest('below'),
    'sources/below.move': `module below::below;\npublic macro fun value(): u64 { ${macroValue} }`,
  }));
  const unused = async () => ({});
  const compiled = await dumpMovePackage({
    files: {
      'Move.toml': manifest('app', '[dependencies]\nbelow = { local = "../below" }\n'),
      'sources/app.move': `module app::app;\npublic fun value(): u64 { below::below::value!() + ${addend} }`,
    },
    fetcher: { fetch: unused, fetchFile: async () => null, getResolvedSha: () => undefined, fetchLocal },
    network: 'testnet',
    silenceWarnings: true,
  });
  expect(fetchLocal).toHaveBeenCalled();
  expect(compiled).not.toHaveProperty('error');
  return JSON.stringify(compiled);
}

test('a compilation is reused only for the same sources of the package and of its dependency', async () => {
  const first = await compile(1, 1);
  const outputs = [await compile(1, 1), await compile(2, 1), await compile(1, 7), await compile(1, 1)];
  expect(outputs[0]).toBe(first);
  expect(outputs[3]).toBe(first);
  expect(new Set(outputs).size).toBe(3);
});

test('a failed compilation is not kept: the compiler runs each time', async () => {
  const broken = { files: { 'Move.toml': manifest('app'), 'sources/app.move': 'module app::app' } };
  for (let time = 0; time < 2; time += 1) {
    expect(await dumpMovePackage({ ...broken, network: 'testnet' })).toHaveProperty('error');
  }
});
