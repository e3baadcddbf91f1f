import { expect, test } from 'vitest';
import { formatLiteral, signedAnswers, signedModules } from '../../../../src/toolchain/dev/signed_modules.ts';
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
  // Only the module that declares a struct can make one.
  ['Point', { x: 1n }, undefined],
  ['vector<Point>', [], undefined],
  ['Option<Point>', null, undefined],
])('a %s is written in Move: %o', (move, value, literal) => {
  expect(formatLiteral(move, value)).toBe(literal);
});

test('Move accepts the signature of an answer, and the values are those that the application signed', async () => {
  const answers = await signedAnswers(findProject().application('weather'));
  if (answers === undefined) throw new Error('weather has fakes');
  const modules = signedModules('app', answers);
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
