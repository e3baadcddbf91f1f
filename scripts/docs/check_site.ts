/**
 * `node scripts/docs/check_site.ts <folder>`: checks the pages that TypeDoc wrote. Every link within the site
 * must name a file and an anchor that exist. No page may load anything from another host, so that the site
 * can be read offline.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { command, runAsProcess } from '../../src/cli/command.ts';
import { path } from '../../src/cli/values.ts';
import { CodedError } from '../../src/library/errors.ts';
import { quantity } from '../../src/library/wording.ts';

/** Every code of a SiteError, and what it means. */
export const SITE_CODES = {
  SITE_EMPTY: 'The folder has no page.',
  SITE_FAULTS:
    'A link names a file or an anchor that does not exist, or a page loads a file from another host.',
} as const;

class SiteError extends CodedError<keyof typeof SITE_CODES> {}

/** Matches the attributes of anchors, which TypeDoc always writes in double quotes. */
const ANCHORS = /\sid="([^"]+)"/g;
const LINKS = /<([a-z]+)\b[^>]*?\s(?:href|src)="([^"]*)"/g;

/**
 * Elements whose `href` or `src` a browser loads with the page. It follows other links only if the reader
 * clicks.
 */
const LOADED = ['img', 'link', 'script', 'use'];

interface Link {
  readonly element: string;
  readonly target: string;
}

/** Anchors and links of a page. */
interface Page {
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly Link[];
}

/**
 * Checks the links of a site.
 *
 * @param folder of the site
 * @returns the number of pages and of links within the site, and each fault as `page: link: problem`
 * @throws SiteError: SITE_EMPTY
 */
export function checkSite(folder: string): { pages: number; links: number; faults: string[] } {
  const root = resolve(folder);
  const files = new Set(globSync('**', { cwd: root }).map((path) => join(root, path)));
  const pages = new Map(
    [...files].filter((path) => path.endsWith('.html')).map((path) => [path, readPage(path)]),
  );
  if (pages.size === 0) throw new SiteError('SITE_EMPTY', `${folder} has no page`);
  let links = 0;
  const faults: string[] = [];
  for (const [path, page] of pages) {
    for (const link of page.links) {
      const url = new URL(link.target, pathToFileURL(path));
      if (url.protocol === 'file:') links += 1;
      const fault =
        url.protocol === 'file:' ? describeDeadLink(url, files, pages) : describeRemoteFile(link, url);
      if (fault !== undefined) faults.push(`${relative(root, path)}: ${link.target}: ${fault}`);
    }
  }
  return { pages: pages.size, links, faults };
}

function readPage(path: string): Page {
  const html = readFileSync(path, 'utf8');
  return {
    anchors: new Set([...html.matchAll(ANCHORS)].map(([, id = '']) => decodeEntities(id))),
    links: [...html.matchAll(LINKS)].map(([, element = '', target = '']) => ({
      element,
      target: decodeEntities(target),
    })),
  };
}

/** Decodes the entities that TypeDoc and markdown-it write in attributes. */
function decodeEntities(text: string): string {
  const entities: Readonly<Record<string, string>> = { quot: '"', '#39': "'", lt: '<', gt: '>', amp: '&' };
  return text.replace(/&(quot|#39|lt|gt|amp);/g, (_, name: string) => entities[name] ?? '');
}

function describeDeadLink(
  url: URL,
  files: ReadonlySet<string>,
  pages: ReadonlyMap<string, Page>,
): string | undefined {
  const path = decodeURIComponent(url.pathname).replace(/\/$/, '/index.html');
  if (!files.has(path)) return 'there is no such file';
  const anchor = decodeURIComponent(url.hash.slice(1));
  const page = pages.get(path);
  // The link "#" goes to the top of the page. Anchors in images are not checked.
  if (anchor === '' || page === undefined || page.anchors.has(anchor)) return undefined;
  return 'the page has no such anchor';
}

function describeRemoteFile({ element }: Link, { host }: URL): string | undefined {
  return LOADED.includes(element) ? `loads a file from ${host}` : undefined;
}

export const main = command({
  name: 'check_site',
  program: 'node scripts/docs/check_site.ts',
  purpose:
    'Checks that every link between the pages of a site names a file and an anchor that exist, and that no page loads a\nfile from another host. Links to other hosts are not followed.',
  arguments: { folder: { schema: path } },
  options: {},
  notes: 'exit codes: 0 no fault; 1 faults; 2 invalid command line',
  run({ args: { folder } }) {
    const { pages, links, faults } = checkSite(folder);
    if (faults.length > 0) {
      throw new SiteError('SITE_FAULTS', `${quantity(faults.length, 'fault')}:\n${faults.join('\n')}`);
    }
    return { json: { pages, links }, text: `${folder}: ${pages} pages, ${links} links between them` };
  },
});

if (import.meta.main) await runAsProcess(main);
