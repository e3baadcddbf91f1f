/** Names the public repository of the packages in their manifests, and in the links of their pages. */
import { posix } from 'node:path';
import { ConfigError } from '../../../src/library/errors.ts';

/** A commit of the public repository. */
export interface Repository {
  /** URL of its page, such as `https://github.com/owner/name`. */
  readonly page: string;
  /** Tag or id of the commit that is packed. */
  readonly ref: string;
}

/** Form of a repository's URL, which npm compares with the repository whose workflow publishes. */
const URL_FORM = /^git\+(https:\/\/github\.com\/[\w.-]+\/[\w.-]+)\.git$/;

/**
 * Returns the repository that the `repository.url` of a package.json names; undefined if it names none.
 *
 * @throws ConfigError, if the URL has another form
 */
export function parseRepository(url: string | undefined, ref: string): Repository | undefined {
  if (url === undefined) return undefined;
  const [, page] = URL_FORM.exec(url) ?? [];
  if (page === undefined) {
    throw new ConfigError(
      `package.json: repository.url is ${JSON.stringify(url)}; write git+https://github.com/<owner>/<name>.git`,
    );
  }
  return { page, ref };
}

/** Returns the fields of a manifest that name the repository. @param directory the package's folder */
export function formatRepositoryFields({ page }: Repository, directory: string): object {
  return {
    repository: { type: 'git', url: `git+${page}.git`, directory },
    homepage: `${page}#readme`,
    bugs: { url: `${page}/issues` },
  };
}

/** A page of the repository that a package contains. */
export interface Page {
  /** Path in the repository. */
  readonly path: string;
  readonly markdown: string;
  /** Paths in the repository of pages that the package has too, at the same places. */
  readonly packed: readonly string[];
}

/** Fenced code and code spans, which stay as they are, or a link with its text and target. */
const CODE_OR_LINK = /^ *```[\s\S]*?^ *```|`[^`\n]+`|\[((?:[^[\]`]|`[^`\n]*`)*)\]\(([^)\s]+)\)/gm;

/**
 * Returns a page whose links work outside of the repository: each link to a file that the package lacks names
 * the file in the public repository, or is only its text while no repository is known.
 */
export function rewriteLinks({ path, markdown, packed }: Page, repository: Repository | undefined): string {
  return markdown.replaceAll(CODE_OR_LINK, (whole, text: string | undefined, target = '') => {
    if (text === undefined || /^(#|[a-z][a-z0-9+.-]*:)/i.test(target)) return whole;
    const [file = '', heading] = target.split('#');
    const linked = posix.join(posix.dirname(path), file);
    if (packed.includes(linked)) return whole;
    if (repository === undefined) return text;
    const { page, ref } = repository;
    return `[${text}](${page}/blob/${ref}/${linked}${heading === undefined ? '' : `#${heading}`})`;
  });
}
