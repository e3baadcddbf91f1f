/** The commits of older versions that an auditor names. */
import { expect, test } from 'vitest';
import { UsageError } from '../../../../src/cli/command_line.ts';
import { parseOlderSource } from '../../../../src/toolchain/audit/older_sources.ts';

const SOURCE = {
  url: 'https://code.example/app',
  commit: '1'.repeat(40),
  folder: 'src/apps/weather',
  frameworkVersion: '0.1.0',
  measurementsSha256: '2'.repeat(64),
};

test('a commit is in the repository and folder of the config unless another folder is named', () => {
  const commit = 'a'.repeat(40);
  expect(parseOlderSource(commit, SOURCE)).toEqual({ url: SOURCE.url, commit, folder: SOURCE.folder });
  expect(parseOlderSource(`${commit}:app`, SOURCE).folder).toBe('app');
  expect(parseOlderSource(`${commit}:`, SOURCE).folder).toBe('');
  expect(parseOlderSource('b'.repeat(64), null)).toEqual({ url: '', commit: 'b'.repeat(64), folder: '' });
});

test('a text that is not a whole hash is refused', () => {
  for (const text of [
    'main',
    'a'.repeat(39),
    `${'a'.repeat(40)} `,
    `-${'a'.repeat(40)}`,
    'A'.repeat(40),
    '',
  ]) {
    expect(() => parseOlderSource(text, SOURCE)).toThrow(UsageError);
  }
});
