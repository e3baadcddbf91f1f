/** Tests the content that `keeper.yaml` may have, and the errors for other content. */
import { describe, expect, test } from 'vitest';
import { parseKeeperFile } from '../../../../src/cli/keeper/file.ts';

const id = (digit: string) => `0x${digit.repeat(64)}`;
const register = (digit: string) => digit.repeat(96);
const FILE = {
  network: 'testnet',
  package: id('1'),
  config: id('2'),
  registrar: id('3'),
  registers: { pcr0: register('A'), pcr1: register('b'), pcr2: register('c') },
  enclaves: ['https://one.example', 'https://two.example:8443/path/'],
  gas_a_day: 500_000_000,
};

/** Parses JSON, which is YAML. */
const parse = (changes: object) =>
  parseKeeperFile(JSON.stringify({ ...FILE, ...changes }), '/etc/keeper.yaml');

test('the file is read as written, with defaults for missing settings', () => {
  expect(parse({})).toEqual({
    network: 'testnet',
    nodes: [],
    enclavePackage: id('1'),
    configId: id('2'),
    registrarId: id('3'),
    image: { pcr0: register('a'), pcr1: register('b'), pcr2: register('c') },
    urls: FILE.enclaves,
    root: undefined,
    intervalMs: 60_000,
    maxPauseMs: 300_000,
    gasADay: 500_000_000n,
    gasBudget: 50_000_000n,
    maxGasPrice: 3000n,
    metricsPort: undefined,
  });
  const settings = {
    node: 'https://node.example',
    interval: 1,
    max_pause: 1,
    gas_budget: 1,
    max_gas_price: 750,
    metrics_port: 9464,
  };
  expect(parse({ ...settings, root: 'dev-root.pem' })).toMatchObject({
    nodes: ['https://node.example'],
    // The path is relative to the file.
    root: '/etc/dev-root.pem',
    intervalMs: 1000,
    maxPauseMs: 1000,
    gasBudget: 1n,
    maxGasPrice: 750n,
    metricsPort: 9464,
  });
});

test('the file may leave the registrar out', () => {
  expect(parse({ registrar: undefined }).registrarId).toBe(undefined);
});

test('the file may name several nodes', () => {
  const node = ['https://one.example', 'https://two.example'];
  expect(parse({ node })).toMatchObject({ network: 'testnet', nodes: node });
  expect(parse({ node, network: undefined })).toMatchObject({ network: undefined, nodes: node });
});

describe('the file is refused:', () => {
  test.each<[string, object]>([
    ['config is missing', { config: undefined }],
    ['registrar must be 0x and 64 hexadecimal digits', { registrar: '0x5' }],
    ['package must be a string, in quotes', { package: 5 }],
    ['registers must be a map', { registers: 'out/nitro.pcrs' }],
    ['registers.pcr1 is missing', { registers: { pcr0: register('a'), pcr2: register('c') } }],
    ['registers.pcr0 must be a string, in quotes', { registers: { ...FILE.registers, pcr0: 7 } }],
    ['registers.pcr2 must be 96 hexadecimal digits', { registers: { ...FILE.registers, pcr2: 'ab' } }],
    ['registers.pcr0 is zero', { registers: { ...FILE.registers, pcr0: register('0') } }],
    ['there is no property registers.pcr3', { registers: { ...FILE.registers, pcr3: register('a') } }],
    ['enclaves must be a list of URLs', { enclaves: 'https://one.example' }],
    ['enclaves must have at least one URL', { enclaves: [] }],
    [
      'enclaves must have at most 64 URLs',
      { enclaves: Array.from({ length: 65 }, (_, n) => `http://e${n}.example`) },
    ],
    ['enclaves.0 must be the URL of an enclave', { enclaves: ['http://127.0.0.1:99999'] }],
    ['node must be an https URL', { node: 'nonsense' }],
    ['enclaves has a URL twice', { enclaves: ['https://one.example', 'https://one.example/'] }],
    ['enclaves.0 must be the URL of an enclave', { enclaves: ['https://user@one.example'] }],
    ['network must be one of', { network: 'othernet' }],
    ['network is missing, and so is node', { network: undefined }],
    ['node must be an https URL', { node: 'http://node.example' }],
    ['node must be an https URL', { node: 'https://node.example?key=secret' }],
    ['node must be an https URL', { node: ['https://node.example', 'http://node.example'] }],
    ['node must be a URL, or a list of URLs', { node: 5 }],
    ['node must have at least one URL', { node: [] }],
    ['node must have at most 8 URLs', { node: Array.from({ length: 9 }, (_, n) => `https://n${n}.example`) }],
    ['node has a URL twice', { node: ['https://node.example', 'https://node.example/'] }],
    ['interval must be an integer from 1 to 3600', { interval: 0 }],
    ['interval must be an integer from 1 to 3600', { interval: 5.5 }],
    ['max_pause must not be less than interval', { interval: 100, max_pause: 99 }],
    ['gas_a_day is missing', { gas_a_day: undefined }],
    ['gas_a_day must be an integer from 1 to', { gas_a_day: '500000000' }],
    ['gas_a_day must not be less than gas_budget', { gas_a_day: 49_999_999 }],
    ['max_gas_price must be an integer from 1 to', { max_gas_price: 0 }],
    ['metrics_port must be an integer from 1 to 65535', { metrics_port: 0 }],
    ['there is no property capability', { capability: id('4') }],
  ])('%s', (message, changes) => {
    expect(() => parse(changes)).toThrow(
      expect.objectContaining({
        code: 'KEEPER_FILE',
        exit: 2,
        message: expect.stringContaining(`/etc/keeper.yaml: ${message}`),
      }),
    );
  });

  test('an id without quotes loses digits in YAML', () => {
    const yaml = JSON.stringify(FILE).replace(`"${FILE.config}"`, ` ${FILE.config}`);
    expect(() => parseKeeperFile(yaml, 'keeper.yaml')).toThrow('config must be a string, in quotes');
  });

  test.each([
    ['is not YAML', '{'],
    ['is not YAML', 'network: testnet\nnetwork: mainnet'],
    ['must be a map', '- a'],
    ['must be a map', ''],
  ])('%s: %j', (message, yaml) => {
    expect(() => parseKeeperFile(yaml, 'keeper.yaml')).toThrow(message);
  });
});
