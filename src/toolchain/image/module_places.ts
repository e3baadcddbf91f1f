/**
 * Sets the `import.meta` of each module of an application. An image has all of these modules in one file, and
 * the `import.meta` of that file would be wrong for them.
 */
import { extname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';

const LANGUAGES: Readonly<Record<string, 'ts' | 'tsx' | 'jsx'>> = {
  '.ts': 'ts',
  '.mts': 'ts',
  '.tsx': 'tsx',
  '.jsx': 'jsx',
};

/**
 * Returns a plugin for the bundler. In each module in the application's folder, it replaces `import.meta` by
 * the values for a file at the same path below /app, where the image has the folders of app.yaml's `files`.
 * It does not change modules of packages.
 *
 * @param appDir absolute path of the application's folder
 */
export function placeModules(appDir: string): Plugin {
  return {
    name: 'places',
    transform: {
      filter: { code: /\bimport\s*\.\s*meta\b/ },
      handler(code, id) {
        const path = relative(appDir, id);
        if (/^\.\.\/|(^|\/)node_modules\//.test(path)) return null;
        const filename = join('/app', path);
        const place = { dirname: join(filename, '..'), filename, url: pathToFileURL(filename).href };
        let replaced = '';
        let end = 0;
        const lang = LANGUAGES[extname(id)] ?? 'js';
        for (const node of importMetas(parseAst(code, { lang, sourceType: 'module' }))) {
          replaced += `${code.slice(end, node.start)}(${JSON.stringify(place)})`;
          end = node.end;
        }
        return { code: replaced + code.slice(end) };
      },
    },
  };
}

interface Position {
  readonly start: number;
  readonly end: number;
}

/** Returns the positions of `import.meta` in a syntax tree, in their order. */
function importMetas(node: unknown): Position[] {
  if (typeof node !== 'object' || node === null) return [];
  const { type, meta, start, end }: Partial<Position> & { type?: unknown; meta?: { name?: unknown } } = node;
  if (type === 'MetaProperty' && meta?.name === 'import') return [{ start: Number(start), end: Number(end) }];
  return Object.values(node)
    .flatMap(importMetas)
    .sort((a, b) => a.start - b.start);
}
