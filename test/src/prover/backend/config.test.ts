import { describe, expect, test } from 'vitest';
import { readBackendConfig } from '../../../../src/prover/backend/config.ts';

const REQUIRED = { ZKEY: '/keys/main.zkey', WITNESS_BINARIES: '/opt/witness' };
const HASH = 'ab'.repeat(64);

test('two settings are required', () => {
  expect(readBackendConfig(REQUIRED)).toMatchObject({
    zkey: '/keys/main.zkey',
    witnessBinaries: '/opt/witness',
    keyPolicy: { pinned: undefined, allowDevelopment: false },
    engine: expect.stringMatching(/\/build\/prover\/prover$/),
    host: '127.0.0.1',
    port: 8080,
    queue: 16,
    timeoutMs: 60_000,
    logLevel: 'info',
  });
  expect(() => readBackendConfig({ ...REQUIRED, ZKEY: undefined })).toThrow(
    'ZKEY must be the path of the Groth16 proving key',
  );
  expect(() => readBackendConfig({ ZKEY: '/k' })).toThrow(
    'WITNESS_BINARIES must be the folder of the witness generator',
  );
});

test('all other settings can be set', () => {
  const env = {
    ZKEY_BLAKE2B: HASH.toUpperCase(),
    ALLOW_INSECURE_DEV_KEY: '1',
    PROVER_ENGINE: '/opt/prover',
    HOST: '::',
    PORT: '9090',
    QUEUE: '0',
    PROVER_TIMEOUT: '15',
    LOG_LEVEL: 'debug',
  };
  expect(readBackendConfig({ ...REQUIRED, ...env })).toMatchObject({
    keyPolicy: { pinned: HASH, allowDevelopment: true },
    engine: '/opt/prover',
    host: '::',
    port: 9090,
    queue: 0,
    timeoutMs: 15_000,
    logLevel: 'debug',
  });
});

describe('an invalid setting is named', () => {
  test.each([
    ['ZKEY', ''],
    ['WITNESS_BINARIES', ''],
    ['ZKEY_BLAKE2B', 'ab'],
    ['ZKEY_BLAKE2B', `0x${HASH.slice(2)}`],
    ['ALLOW_INSECURE_DEV_KEY', 'true'],
    ['ALLOW_INSECURE_DEV_KEY', ''],
    ['PORT', '65536'],
    ['QUEUE', '-1'],
    ['QUEUE', '1001'],
    ['PROVER_TIMEOUT', '0'],
    ['PROVER_TIMEOUT', '1.5'],
    ['LOG_LEVEL', 'loud'],
  ])('%s=%s', (name, value) => {
    expect(() => readBackendConfig({ ...REQUIRED, [name]: value })).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(`^${name} `) }),
    );
  });
});
