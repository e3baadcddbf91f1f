import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ApplicationTemplate, filesInClone } from '../../../../src/create/template.ts';
import {
  collectSignedAnswers,
  formatLiteral,
  formatModules,
} from '../../../../src/toolchain/dev/signed_modules.ts';
import { chooseFramework, testPackage } from '../../../../src/toolchain/move/packages.ts';
import { findProject } from '../../../../src/toolchain/project.ts';

test.each([
  ['bool', true, 'true'],
  ['u8', 7, '7u8'],
  ['u256', 2n ** 255n, `${2n ** 255n}u256`],
  ['address', `0x${'0'.repeat(63)}5`, `@0x${'0'.repeat(63)}5`],
  ['String', 'Zürich "', 'x"5ac3bc726963682022".to_string()'],
  ['vector<u8>', Uint8Array.of(1, 255), 'x"01ff"'],
  ['vector<u64>', [1n, 2n], 'vector<u64>[1u64, 2u64]'],
  ['vector<String>', [], 'vector<std::string::String>[]'],
  ['Option<String>', null, 'option::none<std::string::String>()'],
  ['Option<u64>', 3n, 'option::some(3u64)'],
  ['vector<vector<u8>>', [Uint8Array.of(1)], 'vector<vector<u8>>[x"01"]'],
  // Only the module that declares a struct can make values of it.
  ['Point', { x: 1n }, undefined],
  ['vector<Point>', [], undefined],
  ['Option<Point>', null, undefined],
])('a %s is written in Move: %o', (move, value, literal) => {
  expect(formatLiteral(move, value)).toBe(literal);
});

test('Move accepts the signature of an answer, and the values are those that the application signed', async () => {
  const answers = await collectSignedAnswers(findProject().application('weather'));
  if (answers === undefined) throw new Error('weather has fakes');
  const modules = formatModules('app', answers);
  expect([...modules.keys()]).toEqual(['tests/signed_answer.move']);
  const ownTests = `#[test_only]
module app::own_tests;
use app::signed_answer as signed;
#[test]
fun it_is_signed() {
    assert!(sui::ed25519::ed25519_verify(&signed::signature(), &signed::public_key(), &signed::signed_bytes()));
    assert!(signed::location() == b"San Francisco".to_string());
    assert!(signed::temperature() > 0 && signed::timestamp_ms() > 1700000000000);
}
#[test, expected_failure]
fun another_message_is_not() {
    assert!(sui::ed25519::ed25519_verify(&signed::signature(), &signed::public_key(), &b"other"));
}
`;
  const extra = { ...Object.fromEntries(modules), 'tests/own_tests.move': ownTests };
  const { passed, output } = await testPackage('weather', chooseFramework({}), { extra });
  expect(output).toContain('app::own_tests::it_is_signed');
  expect(passed, output).toBe(true);
});

describe('further requests of stand_in.ts', () => {
  async function listNames(
    change: (standIn: string) => string,
    template: ApplicationTemplate = 'oracle',
  ): Promise<string[]> {
    const build = fileURLToPath(new URL('../../../../build/', import.meta.url));
    mkdirSync(build, { recursive: true });
    const folder = mkdtempSync(join(build, 'signed-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [path, content] of filesInClone(template, 'price')) {
      const name = path.replace('src/apps/price/', '');
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), name === 'stand_in.ts' ? change(content) : content);
    }
    const signed = await collectSignedAnswers({ name: 'price', folder });
    return [...(signed?.answers.keys() ?? [])];
  }
  const newest = "answers: { newest: { path: '/latest?pair=SUI-USD' } },";
  const insert = (line: string) => (text: string) =>
    text.replace('    close,\n', `    ${line}\n    close,\n`);

  test('add their answers to the answer to the example', async () => {
    expect(await listNames(insert(newest))).toEqual(['answer', 'newest']);
  });

  test('are not needed for an answer that a task has published: each task has run once', async () => {
    expect(await listNames((text) => text, 'feed')).toEqual(['answer']);
  });

  test('replace the answer to the example if they have its name', async () => {
    const replaced = "answers: { answer: { path: '/latest?pair=SUI-USD' } },";
    expect(await listNames(insert(replaced))).toEqual(['answer']);
  });

  test('are enough if the answer to the example is not signed', async () => {
    const unsigned = (text: string) => text.replace("path: '/process_data', body", "path: '/nowhere', body");
    expect(await listNames((text) => unsigned(insert(newest)(text)))).toEqual(['newest']);
    await expect(listNames(unsigned)).rejects.toMatchObject({ code: 'CONFIG' });
  });
});
