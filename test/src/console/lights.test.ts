import { describe, expect, test } from 'vitest';
import { chooseAnswerLight, chooseLight } from '../../../src/console/chain/lights.ts';
import type { EnclaveConfig, ListedEnclave } from '../../../src/library/sui/index.ts';

const image = { pcr0: '', pcr1: '', pcr2: '' };
const config: EnclaveConfig = {
  id: '0x1',
  enclavePackage: '0x2',
  application: '0x2::weather::WEATHER',
  name: 'weather',
  image,
  source: null,
  capabilityId: '0x3',
  configVersion: 3n,
  overlap: null,
  maxKeyAgeMs: null,
  registrars: [],
  isRetired: false,
  packageVersion: 1n,
  isOpen: false,
};
const enclave: ListedEnclave = {
  id: '0x4',
  enclavePackage: '0x2',
  application: '0x2::weather::WEATHER',
  publicKey: new Uint8Array(32),
  configId: '0x1',
  configVersion: 3n,
  registeredAtMs: 1000n,
  isStale: false,
};

describe('the light of a registered enclave', () => {
  test.each([
    ['registered', 'success', enclave, config],
    ['in overlap', 'success', { ...enclave, configVersion: 2n }, config],
    ['stale', 'warning', { ...enclave, configVersion: 1n, isStale: true }, config],
    ['key too old', 'warning', enclave, { ...config, maxKeyAgeMs: 999n }],
    // Contracts accept no answer of a retired config, even if everything else is in order.
    ['retired', 'danger', { ...enclave, isStale: true }, { ...config, isRetired: true }],
  ] as const)('%s is %s', (word, tone, enclaveState, configState) => {
    expect(chooseLight(enclaveState, configState, 2000)).toMatchObject({ word, tone });
  });
});

describe('the light of an enclave that was asked', () => {
  const registered = new Map([['aa', chooseLight(enclave, config, 2000)]]);

  test.each([
    ['registered', 'success', { kind: 'attested', publicKey: 'aa' }],
    ['unknown key', 'danger', { kind: 'attested', publicKey: 'bb' }],
    ['silent', 'danger', { kind: 'silent', why: 'it is down' }],
    ['not trusted', 'danger', { kind: 'refused', why: 'debug' }],
  ] as const)('%s is %s', (word, tone, answered) => {
    expect(chooseAnswerLight(answered, registered)).toMatchObject({ word, tone });
  });

  test('is the light of its registration, if its key is registered', () => {
    const stale = chooseLight({ ...enclave, isStale: true }, config, 2000);
    expect(chooseAnswerLight({ kind: 'attested', publicKey: 'aa' }, new Map([['aa', stale]]))).toMatchObject({
      word: 'stale',
      tone: 'warning',
    });
  });
});
