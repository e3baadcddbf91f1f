/** Tests the salt service's own settings: their defaults, and the values that stop the start. */
import { readSettings } from 'sui-enclave-server';
import { describe, expect, test } from 'vitest';
import { SALT_SETTINGS } from '../settings.ts';

const read = (env: Record<string, string>) => readSettings(SALT_SETTINGS, { SALT_CLIENTS: '[]', ...env });
const FINGERPRINTS = ['0'.repeat(32), 'ab'.repeat(16)];

test('only the clients are required', () => {
  expect(read({})).toEqual({
    SALT_CLIENTS: '[]',
    SALT_SEED_FINGERPRINTS: undefined,
    SALT_USER_REQUESTS_PER_MINUTE: 30,
    SALT_ADDRESS_REQUESTS_PER_MINUTE: 300,
    SALT_MAX_VERIFICATIONS: 64,
  });
  expect(() => readSettings(SALT_SETTINGS, {})).toThrow(
    'SALT_CLIENTS must list the clients whose tokens get a salt',
  );
});

test('each version of the seed may have a fingerprint', () => {
  const { SALT_SEED_FINGERPRINTS } = read({ SALT_SEED_FINGERPRINTS: FINGERPRINTS.join(',') });
  expect(SALT_SEED_FINGERPRINTS).toEqual(FINGERPRINTS);
});

describe('readSettings', () => {
  test.each([
    ['SALT_CLIENTS', ''],
    ['SALT_SEED_FINGERPRINTS', ''],
    ['SALT_SEED_FINGERPRINTS', 'AB'.repeat(16)],
    ['SALT_SEED_FINGERPRINTS', `${FINGERPRINTS[0]},`],
    ['SALT_SEED_FINGERPRINTS', FINGERPRINTS.join(', ')],
    ['SALT_USER_REQUESTS_PER_MINUTE', '0'],
    ['SALT_USER_REQUESTS_PER_MINUTE', '10001'],
    ['SALT_ADDRESS_REQUESTS_PER_MINUTE', '0'],
    ['SALT_ADDRESS_REQUESTS_PER_MINUTE', '100001'],
    ['SALT_MAX_VERIFICATIONS', '0'],
    ['SALT_MAX_VERIFICATIONS', '10001'],
  ])('refuses %s=%o, and names the setting', (name, text) => {
    expect(() => read({ [name]: text })).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(`^${name} `) }),
    );
  });
});
