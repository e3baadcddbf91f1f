import { describe, expect, test } from 'vitest';
import {
  formatRepositoryFields,
  parseRepository,
  rewriteLinks,
} from '../../../../scripts/check/pack/repository.ts';
import { ConfigError } from '../../../../src/library/errors.ts';

const PAGE = 'https://github.com/example/enclave';
const repository = { page: PAGE, ref: 'v1.2.3' };

test('a manifest names the repository, and the folder of the package in it', () => {
  expect(parseRepository(`git+${PAGE}.git`, 'v1.2.3')).toEqual(repository);
  expect(formatRepositoryFields(repository, 'src/cli')).toEqual({
    repository: { type: 'git', url: `git+${PAGE}.git`, directory: 'src/cli' },
    homepage: `${PAGE}#readme`,
    bugs: { url: `${PAGE}/issues` },
  });
});

test.each([
  PAGE,
  `${PAGE}.git`,
  'git+http://github.com/example/enclave.git',
  'git+https://github.com/example.git',
  'git+https://github.com/example/enclave/more.git',
  'git+https://github.com.example/example/enclave.git',
  '',
])('refuses the URL %j, for which npm would refuse the provenance', (url) => {
  expect(() => parseRepository(url, 'v1.2.3')).toThrow(ConfigError);
});

describe('a page of a package', () => {
  const rewrite = (markdown: string) =>
    rewriteLinks(
      { path: 'src/library/sui/README.md', markdown, packed: ['src/library/client/README.md'] },
      repository,
    );

  test('links to the repository, at the version, for a file that the package lacks', () => {
    expect(rewrite('See [the commands](../../../CONTRIBUTING.md#commands) and [`a[0]`](b.ts).')).toBe(
      `See [the commands](${PAGE}/blob/v1.2.3/CONTRIBUTING.md#commands) and [\`a[0]\`](${PAGE}/blob/v1.2.3/src/library/sui/b.ts).`,
    );
  });

  test('has no link to a file that the package lacks if no repository is known', () => {
    expect(
      rewriteLinks({ path: 'src/a.md', markdown: 'As [`b`](../b.md) says', packed: [] }, undefined),
    ).toBe('As `b` says');
  });

  test.each([
    '[a heading](#nodes)',
    '[the client](../client/README.md)',
    '[the client](../client/README.md#calls-that-fail)',
    '[a site](https://example.com/a.md)',
    '[a person](mailto:a@example.com)',
    '`[code](../a.md)`',
    '```md\n[code](../a.md)\n```',
  ])('keeps %j', (markdown) => {
    expect(rewrite(markdown)).toBe(markdown);
  });
});
