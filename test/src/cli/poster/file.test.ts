/** `poster.yaml`: its properties, its defaults, and the mistakes that it names. */
import { expect, test } from 'vitest';
import { PosterFileError, parsePosterFile } from '../../../../src/cli/poster/file.ts';

const ID = `0x${'a'.repeat(64)}`;
const MINIMAL = {
  network: 'testnet',
  function: 'weather::update_weather',
  enclaves: ['https://one.example'],
  gas_an_hour: 100_000_000,
  gas_a_day: 100_000_000,
};

const parse = (content: object) => parsePosterFile(JSON.stringify(content), '/etc/poster.yaml');

test('the file has defaults for all but network, function, enclaves and the limits of gas', () => {
  expect(parse(MINIMAL)).toMatchObject({
    nodes: [],
    body: undefined,
    objects: [],
    anyAnswer: false,
    expectedAborts: [],
    intervalMs: 60_000,
    maxPauseMs: 300_000,
    maxAgeMs: 3_600_000,
    gasAnHour: 100_000_000n,
    gasBudget: 50_000_000n,
    maxGasPrice: 3000n,
    metricsPort: undefined,
  });
  for (const name of Object.keys(MINIMAL)) {
    expect(() => parse({ ...MINIMAL, [name]: undefined }), name).toThrow(PosterFileError);
  }
});

test('the file may have a body in YAML, and a root relative to its folder', () => {
  const yaml = `${JSON.stringify({ ...MINIMAL, root: 'root.pem' }).slice(0, -1)}, "body": {"payload": {"places": ["Oslo"], "days": 3}}}`;
  expect(parsePosterFile(yaml, '/etc/poster.yaml')).toMatchObject({
    body: { payload: { places: ['Oslo'], days: 3 } },
    root: '/etc/root.pem',
  });
});

test.each<[string, object, RegExp]>([
  ['a misspelt property', { enclave: [] }, /there is no property enclave/],
  ['a short id', { config: '0x5' }, /config must be 0x and 64/],
  ['a function without a module', { function: 'update' }, /function must be PACKAGE::module::function/],
  [
    'an application without a network',
    { network: undefined, node: 'https://a.example', app: 'x' },
    /app needs network/,
  ],
  ['an object that is not an id', { objects: [ID, 'b'] }, /objects.1 must be 0x and 64/],
  [
    'an abort without a module',
    { expected_aborts: ['ENotDue'] },
    /expected_aborts.0 must be a module and a name/,
  ],
  [
    'too little gas in an hour for a transaction',
    { gas_an_hour: 49_999_999 },
    /gas_an_hour must not be less than gas_budget/,
  ],
  [
    'less gas in a day than in an hour',
    { gas_an_hour: 100_000_001 },
    /gas_a_day must not be less than gas_an_hour/,
  ],
  ['a pause below the interval', { interval: 400 }, /max_pause must not be less than interval/],
  ['an http URL of a node', { node: 'http://sui.example' }, /node must be an https URL/],
  ['an enclave twice', { enclaves: ['https://a.example', 'https://a.example/'] }, /enclaves has a URL twice/],
  [
    'a body with a number that is not exact',
    { body: { at: 2 ** 60 } },
    /body must consist of JSON values, with integers above 2\^53/,
  ],
])('the file is refused with %s', (_case, changes, message) => {
  expect(() => parse({ ...MINIMAL, ...changes })).toThrow(
    expect.objectContaining({ code: 'POSTER_FILE', exit: 2, message: expect.stringMatching(message) }),
  );
});

test('a file that is not YAML is refused', () => {
  expect(() => parsePosterFile('{', 'poster.yaml')).toThrow(PosterFileError);
});
