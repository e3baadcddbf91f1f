/**
 * TypeDoc plugin that turns the repository's Markdown files into pages. The title of a page is its first
 * heading, and its folder determines its group. The files themselves need no front matter, which GitHub would
 * show.
 */
import { fileURLToPath } from 'node:url';

/** The part of TypeDoc that the plugin uses. Only `make docs` installs TypeDoc. */
interface Page {
  name: string;
  readonly frontmatter: Record<string, unknown>;
  readonly content: readonly { readonly kind: string; readonly text: string }[];
  readonly project: { readonly files: { getReflectionPath(page: Page): string | undefined } };
}

interface TypeDoc {
  on(event: 'bootstrapEnd', handle: () => void): void;
  readonly converter: {
    on(event: 'createDocument', handle: (context: undefined, page: Page) => void): void;
  };
  readonly options: { setValue(name: 'markdownItLoader', load: (parser: MarkdownIt) => void): void };
}

interface MarkdownIt {
  readonly core: {
    readonly ruler: {
      push(name: string, rule: (state: { readonly tokens: readonly Token[] }) => void): void;
    };
  };
}

/** A token of markdown-it. */
interface Token {
  readonly type: string;
  readonly content: string;
  children: readonly Token[] | null;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Groups by the first characters of a page's path. The first match counts. typedoc.json determines the order
 * in the navigation.
 */
const GROUPS: readonly (readonly [start: string, group: string])[] = [
  ['src/library/', 'The library'],
  ['examples/', 'The library'],
  ['src/prover/', "zkLogin's prover"],
  ['deploy/aws/', 'Applications and enclaves'],
  ['deploy/', "zkLogin's prover"],
  ['src/testing/', 'The project'],
  ['src/', 'Applications and enclaves'],
  ['enclave/', 'Applications and enclaves'],
  ['', 'The project'],
];

export function load(application: TypeDoc): void {
  // TypeDoc resets its options after loading its plugins.
  application.on('bootstrapEnd', () =>
    application.options.setValue('markdownItLoader', ({ core }) => {
      core.ruler.push('code_in_headings', ({ tokens }) => nameCodeInHeadings(tokens));
    }),
  );
  application.converter.on('createDocument', (_context, page) => {
    const path = page.project.files.getReflectionPath(page) ?? '';
    const { title, group } = describePage(
      path.slice(ROOT.length),
      page.content.map(({ text }) => text).join(''),
    );
    page.name = title;
    page.frontmatter['group'] = group;
  });
}

/**
 * Returns the title of a page and its group in the navigation.
 *
 * @param path of the page in the repository
 * @throws Error if the page has no heading
 */
export function describePage(path: string, markdown: string): { title: string; group: string } {
  const [, heading] = /^# (.+)$/m.exec(markdown) ?? [];
  if (heading === undefined) throw new Error(`${path} has no heading of the first level`);
  const [, group = ''] = GROUPS.find(([start]) => path.startsWith(start)) ?? [];
  return { title: heading.replaceAll('`', ''), group };
}

/**
 * Adds the text of code spans in headings, which TypeDoc, unlike GitHub, leaves out of anchors and tables of
 * contents. TypeDoc reads the text of a token's children; the code span itself is still printed as code.
 */
function nameCodeInHeadings(tokens: readonly Token[]): void {
  for (const [index, { type }] of tokens.entries()) {
    if (type !== 'heading_open') continue;
    for (const span of tokens[index + 1]?.children ?? []) {
      if (span.type === 'code_inline')
        span.children = [{ type: 'text', content: span.content, children: null }];
    }
  }
}
