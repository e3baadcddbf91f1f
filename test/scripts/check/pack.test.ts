import { expect, test } from 'vitest';
import { formatVersion } from '../../../scripts/check/pack.ts';
import { ConfigError } from '../../../src/library/errors.ts';

const COMMIT = '7c8ad3bf06c8b06de1c4d23e2a7e74bcc9312345';

test('an experimental version names its commit', () => {
  const version = formatVersion('1.2.3', 'experimental', { commit: COMMIT, tags: ['v1.2.3'] });
  expect(version).toBe('1.2.3-experimental.7c8ad3bf06c8');
});

test('a commit whose short form is not a valid identifier is given in full', () => {
  const commit = `0123456789${'0'.repeat(10)}${COMMIT.slice(20)}`;
  expect(formatVersion('1.2.3', 'experimental', { commit, tags: [] })).toBe(`1.2.3-experimental.${commit}`);
});

test('an experimental version needs a commit', () => {
  const pack = () => formatVersion('1.2.3', 'experimental', { commit: null, tags: [] });
  expect(pack).toThrow(ConfigError);
  expect(pack).toThrow(/git repository/);
});

test('a stable version is that of its tag', () => {
  expect(formatVersion('1.2.3', 'stable', { commit: COMMIT, tags: ['latest', 'v1.2.3'] })).toBe('1.2.3');
});

test.each([[[]], [['v1.2.4']], [['1.2.3']], [['v1.2.3-rc.1']]])('no other tag is stable: %j', (tags) => {
  const pack = () => formatVersion('1.2.3', 'stable', { commit: COMMIT, tags });
  expect(pack).toThrow(ConfigError);
  expect(pack).toThrow(/at its tag only: v1\.2\.3$/);
});
