/** Tests the text that the example dapp shows a user before a signature. */
import { Transaction, type TransactionObjectArgument } from '@mysten/sui/transactions';
import { expect, test } from 'vitest';
import { describeGas, describeSteps, suiText } from '../../../examples/dapp/src/wallet/transaction_words.ts';

const id = (digit: string) => `0x${digit.repeat(64)}`;
const [PACKAGE, SENDER, STRANGER, COIN] = [id('a'), id('b'), id('c'), id('d')];
const reference = (objectId: string) => ({ objectId, version: '1', digest: '1'.repeat(32) });

/** Returns the steps of a transaction, as they are read from the bytes that are signed. */
async function describeTransaction(build: (tx: Transaction) => void) {
  const tx = new Transaction();
  tx.setSender(SENDER);
  tx.setGasBudget(7_500_000);
  tx.setGasPrice(1000);
  tx.setGasPayment([reference(id('e'))]);
  build(tx);
  return describeSteps(Transaction.from(await tx.build()).getData(), PACKAGE);
}

function call(tx: Transaction, target: string, value = 14): TransactionObjectArgument {
  const signed = [tx.pure.string('Oslo'), tx.pure.u64(value)];
  return tx.moveCall({ target, arguments: [...signed, tx.pure.u64(1), tx.pure.vector('u8', [1])] });
}

test("the page's own steps are named with their values", async () => {
  const mint = (name: string, value: number) =>
    describeTransaction((tx) =>
      tx.transferObjects([call(tx, `${PACKAGE}::weather::${name}`, value)], SENDER),
    );
  expect(await mint('update_weather', 14)).toEqual([
    { text: 'Mint a WeatherNFT: 14 °C in Oslo', isExpected: true },
    { text: 'Give what step 1 made to your own address', isExpected: true },
  ]);
  const [first] = await mint('update_temperature', 99_966);
  expect(first).toEqual({ text: 'Mint a TemperatureNFT: −3.4 °C in Oslo', isExpected: true });
});

test.each<[name: string, build: (tx: Transaction) => void, text: RegExp]>([
  [
    'of another package',
    (tx) => call(tx, `${STRANGER}::weather::update_weather`),
    /^Call weather::update_weather of/,
  ],
  ['of another module', (tx) => call(tx, `${PACKAGE}::enclave::update_weather`), /^Call enclave::/],
  ['of another function', (tx) => call(tx, `${PACKAGE}::weather::burn`), /^Call weather::burn/],
  ['of coins', (tx) => tx.splitCoins(tx.gas, [5]), /^Take coins out of the coin that pays the gas$/],
  ['that joins', (tx) => tx.mergeCoins(tx.gas, [tx.objectRef(reference(COIN))]), /^Join coins into/],
  ['that publishes', (tx) => tx.publish({ modules: [[1]], dependencies: [id('1')] }), /^Publish a package$/],
  ['with a list', (tx) => tx.makeMoveVec({ elements: [tx.objectRef(reference(COIN))] }), /^Make a list/],
])('a step %s is not expected', async (_, build, text) => {
  const [step] = await describeTransaction(build);
  expect(step).toEqual({ text: expect.stringMatching(text), isExpected: false });
});

test.each<[name: string, build: (tx: Transaction) => void, text: string]>([
  [
    'of the reading to somebody else',
    (tx) => tx.transferObjects([call(tx, `${PACKAGE}::weather::update_weather`)], STRANGER),
    `Give what step 1 made to ${STRANGER}`,
  ],
  [
    'of an object of the user',
    (tx) => tx.transferObjects([tx.objectRef(reference(COIN))], SENDER),
    'Give the object 0xdddd…dddd to your own address',
  ],
  [
    'of all SUI',
    (tx) => tx.transferObjects([tx.gas], STRANGER),
    `Give the coin that pays the gas to ${STRANGER}`,
  ],
])('a transfer %s is not expected', async (_, build, text) => {
  expect((await describeTransaction(build)).at(-1)).toEqual({ text, isExpected: false });
});

test('the gas is named with its payer and its maximum', () => {
  const data = new Transaction().getData();
  const gasData = { ...data.gasData, budget: '7500000', owner: null };
  const ownGas = { payer: SENDER, isOwn: true, budget: '0.0075 SUI' };
  expect(describeGas({ ...data, sender: SENDER, gasData })).toEqual(ownGas);
  expect(describeGas({ ...data, sender: SENDER, gasData: { ...gasData, owner: SENDER } })).toEqual(ownGas);
  const sponsored = describeGas({ ...data, sender: SENDER, gasData: { ...gasData, owner: STRANGER } });
  expect(sponsored).toEqual({ ...ownGas, payer: STRANGER, isOwn: false });
});

test.each([
  [0n, '0 SUI'],
  [1n, '0.000000001 SUI'],
  [1_000_000_000n, '1 SUI'],
  [12_340_000_000n, '12.34 SUI'],
])('%s MIST are %s', (mist, text) => {
  expect(suiText(mist)).toBe(text);
});
