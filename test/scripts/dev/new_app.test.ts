import { expect, test } from 'vitest';
import { checkName, filesOf, main, rename } from '../../../scripts/dev/new_app.ts';

test.each(['stocks', 'gas_prices', 'a', 'x2'])('%s can be the name of an application', (name) => {
  expect(() => checkName(name)).not.toThrow();
});

test.each(['', 'Stocks', '2x', 'a-b', 'a__b', 'a_', '../x', 'module', 'u64', 'enclave', 'a'.repeat(33)])(
  '%j cannot be the name of an application',
  (name) => {
    expect(() => checkName(name)).toThrow(/^invalid name: /);
  },
);

test('names of the application change, and text about prices does not', () => {
  const text = `module price::price; public struct PRICE {} PriceError 'price' the price service let price = 1;`;
  expect(rename(text, 'gas_prices')).toBe(
    `module gas_prices::gas_prices; public struct GAS_PRICES {} GasPricesError 'gas_prices' the price service let price = 1;`,
  );
  expect(rename('move/price/tests/price_tests.move', 'x')).toBe('move/x/tests/x_tests.move');
  expect(rename('/v1/prices/SUI of api.prices.example', 'x')).toBe('/v1/prices/SUI of api.prices.example');
});

test('a page is read as paths and what follows each of them', () => {
  const page = '`a/b.ts`\n\n```ts\none\ntwo\n```\n\n`c`\n\ntext\n\n```sh\nx\n```\n';
  expect([...filesOf(page)]).toEqual([['a/b.ts', 'one\ntwo\n']]);
});

test.each([
  [[], 'missing: <name>'],
  [['stocks', '0x5'], 'unexpected argument: 0x5'],
  [['Stocks'], 'invalid name: Stocks'],
])('%j is refused with 2 before anything is written', async (argv, message) => {
  let printed = '';
  const io = { log: () => {}, error: (text: string) => (printed += text), stdin: () => '' };
  expect(await main(argv, {}, io)).toBe(2);
  expect(printed).toContain(message);
});
