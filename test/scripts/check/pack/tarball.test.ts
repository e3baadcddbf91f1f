import { expect, test } from 'vitest';
import { formatInstall } from '../../../../scripts/check/pack/tarball.ts';

const install = (channel: 'stable' | 'experimental') =>
  formatInstall({ version: '1.2.3', channel, repository: undefined }, ['server', 'cli'], ['valibot@1.5.0']);

test('a README names a stable version as a registry does', () => {
  expect(install('stable')).toBe('npm install server@1.2.3 cli@1.2.3 valibot@1.5.0');
});

test('a README names files of an experimental version, which is not in a registry', () => {
  expect(install('experimental')).toBe('npm install ./server-1.2.3.tgz ./cli-1.2.3.tgz valibot@1.5.0');
});
