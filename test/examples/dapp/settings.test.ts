import { expect, test } from 'vitest';
import { readSettings } from '../../../examples/dapp/src/settings.ts';

const id = (digit: string) => `0x${digit.repeat(64)}`;
const image = { pcr0: '0'.repeat(96), pcr1: '1'.repeat(96), pcr2: '2'.repeat(96) };
const enclave = { url: 'https://weather.example', image };
const sui = { network: 'testnet', nodeUrl: 'https://node.example', packageId: id('a'), configId: id('b') };
const services = { saltUrl: 'https://salt.example', proverUrl: 'https://prover.example/v1' };
const login = { issuer: 'https://id.example', name: 'Example', clientId: 'x', ...services };

test('accepts settings for production, which have neither roots nor a faucet', () => {
  expect(readSettings({ enclave, sui })).toEqual({ enclave, sui });
  expect(readSettings({ enclave, sui, login })).toEqual({ enclave, sui, login });
});

test.each([
  ['the whole file', null],
  ['enclave', { sui }],
  ['enclave.url', { sui, enclave: { ...enclave, url: 'javascript:alert(1)' } }],
  ['enclave.image.pcr1', { sui, enclave: { ...enclave, image: { ...image, pcr1: '' } } }],
  ['enclave.developmentRoot', { sui, enclave: { ...enclave, developmentRoot: 'a' } }],
  ['sui.configId', { enclave, sui: { ...sui, configId: '0x6' } }],
  ['login.issuer', { enclave, sui, login: { ...login, issuer: 'id.example' } }],
  ['policy', { enclave, sui, policy: {} }],
])('names the place of a mistake: %s', (place, json) => {
  expect(() => readSettings(json)).toThrow(new RegExp(`^${place}: `));
});
