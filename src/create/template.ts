/**
 * Makes the files of a new application, either for a clone of sui-enclave's repository or for a repository of
 * its own.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pascalCase } from './names.ts';

const TEMPLATES = fileURLToPath(new URL('templates', import.meta.url));

/**
 * Templates of applications. `oracle` signs prices of a service, `feed` keeps the price of several sources on
 * chain, `weather` signs the temperature of a place, and `llm` the answer of a language model's API. `empty`
 * signs nothing yet.
 */
export const APPLICATION_TEMPLATES = ['oracle', 'feed', 'weather', 'llm', 'empty'] as const;
export type ApplicationTemplate = (typeof APPLICATION_TEMPLATES)[number];

/**
 * Templates of repositories. `dapp` is `weather` with a page that asks the enclave. In a repository,
 * `feed` also has a page, which shows the feed's last values.
 */
export const TEMPLATE_NAMES = [...APPLICATION_TEMPLATES, 'dapp'] as const;
export type TemplateName = (typeof TEMPLATE_NAMES)[number];

/** File contents by path, in the order of the paths. */
export type Files = ReadonlyMap<string, string>;

/**
 * Puts the name of the application into a path or the content of a template. The templates say "price" only
 * for the application itself, and never in the plural, so that every name fits.
 */
export function rename(text: string, name: string): string {
  const forms: Record<string, string> = { price: name, Price: pascalCase(name), PRICE: name.toUpperCase() };
  return text.replace(/price/gi, (form) => forms[form] ?? form);
}

/** Folders of the pages, by template. */
const PAGES: Partial<Record<TemplateName, string>> = { dapp: 'dapp', feed: 'feed_page' };

/** Returns the files of an application, for a repository of its own. */
export function applicationFiles(template: TemplateName, name: string): Files {
  return readTemplate(findApplication(template), name);
}

/** Returns the files of a repository's page; no files if the template has no page. */
export function pageFiles(template: TemplateName, name: string): Files {
  const page = PAGES[template];
  return page === undefined
    ? new Map()
    : new Map([...readTemplate('page', name), ...readTemplate(page, name)]);
}

function findApplication(template: TemplateName): ApplicationTemplate {
  return template === 'dapp' ? 'weather' : template;
}

/**
 * Returns the files that `sui-enclave schema` and `gen` write, so that a new repository has them.
 */
export function derivedFiles(template: TemplateName, name: string): Files {
  return readTemplate(join('derived', findApplication(template)), name);
}

/** Returns the files of an application for a clone, in `src/apps/<name>` and `move/<name>`. */
export function filesInClone(template: ApplicationTemplate, name: string): Files {
  const files = [...applicationFiles(template, name)].map(([path, content]): [string, string] => [
    path.startsWith('move/') ? path : `src/apps/${name}/${path}`,
    content
      .replaceAll("'sui-enclave-toolchain/testing/", "'sui-enclave-testing/")
      .replaceAll('../../node_modules/sui-enclave-toolchain/move/', '../')
      .replaceAll('root: out/', 'root: ../../../out/'),
  ]);
  return new Map(files);
}

/** Returns the other files of a new repository, except for package.json and its lockfile. */
export function repositoryFiles(name: string): Files {
  return readTemplate('repository', name);
}

/**
 * Reads a template. In its folder, code and README have the suffix .txt, so that no compiler, test or site of
 * this repository uses them. The names of .gitignore and .npmrc begin with an underscore instead of a dot,
 * since npm does not pack files of these names.
 */
function readTemplate(template: string, name: string): Files {
  const folder = join(TEMPLATES, template);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    files.sort().map((file): [string, string] => {
      const path = file
        .slice(folder.length + 1)
        .replace(/\.txt$/, '')
        .replace(/(^|\/)_(?=gitignore$|npmrc$)/, '$1.');
      return [rename(path, name), withDigest(rename(readFileSync(file, 'utf8'), name))];
    }),
  );
}

/**
 * Replaces the digest in the first line of a file that `gen` wrote, since the application's name changes
 * the lines below.
 */
function withDigest(content: string): string {
  return content.replace(
    /^((?:\/\/|#) Written by sui-enclave gen: [^\n]* sha256:)[0-9a-f]{64}\n([\s\S]*)$/,
    (_whole, line: string, body: string) =>
      `${line}${createHash('sha256').update(body).digest('hex')}\n${body}`,
  );
}

/** Writes files that must not exist yet. Programs become executable. */
export function writeFiles(folder: string, files: Files): void {
  for (const [path, content] of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, { flag: 'wx', mode: content.startsWith('#!') ? 0o755 : 0o644 });
  }
}
