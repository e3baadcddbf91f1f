/** The server takes its secrets from one source, and ignores or refuses secrets from any other. */
import { describe, expect, test } from 'vitest';
import { type SecretSources, startSecrets } from '../../../../src/server/secrets/secret_sources.ts';

const start = (sources: Partial<SecretSources> = {}) =>
  startSecrets({
    config: { secrets: 'any', secretsFd: undefined },
    env: {},
    manifest: { secrets: ['API_KEY'] },
    module: {},
    ...sources,
  });
const CONFIG = (message: string) =>
  expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining(message) });
const sealed = { secrets: 'sealed', secretsFd: undefined } as const;

describe('an application gets its secrets', () => {
  test('from the environment, by default; a missing secret stops the start', () => {
    expect(start({ env: { API_KEY: 'hunter2' } }).get('API_KEY')).toBe('hunter2');
    expect(() => start()).toThrow(CONFIG('API_KEY must be set'));
  });

  test('from the hand-off, after the start; the environment does not count', () => {
    const secrets = start({ config: { secrets: 'any', secretsFd: 3 }, env: { API_KEY: 'hunter2' } });
    expect(secrets.missing()).toEqual(['API_KEY']);
  });

  test("from boot's options, in development; a hand-off takes precedence", () => {
    expect(start({ secrets: { API_KEY: 'given' } }).get('API_KEY')).toBe('given');
    const later = start({ config: { secrets: 'any', secretsFd: 3 }, secrets: { API_KEY: 'given' } });
    expect(later.missing()).toEqual(['API_KEY']);
  });

  test('from a sealed message after the start, by a provisioner or the hand-off', () => {
    const manifest = { secrets: ['API_KEY'], provisioners: ['00'.repeat(32)] };
    expect(start({ config: sealed, manifest }).missing()).toEqual(['API_KEY']);
    expect(start({ config: { ...sealed, secretsFd: 3 } }).missing()).toEqual(['API_KEY']);
    expect(start({ config: sealed, manifest: { secrets: [] } }).missing()).toEqual([]);
  });
});

describe('the start stops', () => {
  test.each([['API_KEY'], ['API_KEY_FILE']])('with SECRETS=sealed, if the environment has %s', (name) => {
    expect(() => start({ config: { ...sealed, secretsFd: 3 }, env: { [name]: 'hunter2' } })).toThrow(
      CONFIG(`${name} must not be set`),
    );
  });

  test('with SECRETS=sealed, if no sealed secrets can arrive', () => {
    expect(() => start({ config: sealed })).toThrow(CONFIG('needs a source of secrets'));
  });

  test('if the environment has a secret that must not be there, whatever the source of secrets', () => {
    const module = { secretsNotInEnvironment: ['API_KEY'] };
    for (const config of [{ secrets: 'any', secretsFd: 3 } as const, sealed]) {
      expect(() => start({ config, module, env: { API_KEY: 'hunter2' } })).toThrow(
        CONFIG('API_KEY must not be in the environment'),
      );
    }
  });
});
