import { describe, expect, test } from 'vitest';
import { describePublication, formatVersion } from '../../../scripts/check/pack.ts';
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

test('a stable version is the version of its tag', () => {
  expect(formatVersion('1.2.3', 'stable', { commit: COMMIT, tags: ['latest', 'v1.2.3'] })).toBe('1.2.3');
});

test.each([[[]], [['v1.2.4']], [['1.2.3']], [['v1.2.3-rc.1']]])('no other tag is stable: %j', (tags) => {
  const pack = () => formatVersion('1.2.3', 'stable', { commit: COMMIT, tags });
  expect(pack).toThrow(ConfigError);
  expect(pack).toThrow(/only at its tag: v1\.2\.3$/);
});

describe('the public repository', () => {
  const stable = { commit: COMMIT, tags: ['v1.2.3'] };
  const url = 'git+https://github.com/example/enclave.git';

  test('is linked at the tag of a stable version, and at the commit of an experimental one', () => {
    const manifest = { version: '1.2.3', repository: { url } };
    expect(describePublication(manifest, 'stable', stable)).toEqual({
      version: '1.2.3',
      channel: 'stable',
      repository: { page: 'https://github.com/example/enclave', ref: 'v1.2.3' },
    });
    expect(describePublication(manifest, 'experimental', stable).repository?.ref).toBe(COMMIT);
  });

  test('is required for a stable version only', () => {
    const pack = (channel: 'stable' | 'experimental') =>
      describePublication({ version: '1.2.3' }, channel, stable);
    expect(() => pack('stable')).toThrow(ConfigError);
    expect(() => pack('stable')).toThrow(/"repository": \{"type": "git", "url": "git\+https:/);
    expect(pack('experimental').repository).toBeUndefined();
  });
});
