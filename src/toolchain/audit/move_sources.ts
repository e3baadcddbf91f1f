/** Reads the sources of Move packages in a folder, and the names that they declare. */
import { existsSync, globSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Sources } from '../move/packages.ts';
import { AuditError } from './errors.ts';

/** Maximum size of a Move package's sources, in bytes: the chain accepts only far smaller packages. */
const MAX_SOURCE_BYTES = 2_000_000;

/**
 * Reads the sources of a package, without its tests and its Published.toml.
 *
 * @throws AuditError: BYTECODE_UNKNOWN
 */
export function sourcesIn(folder: string): Sources {
  const root = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  const paths = globSync(['Move.toml', 'sources/**/*.move'], { cwd: root }).sort();
  const files = paths.filter((path) => lstatSync(join(root, path)).isFile());
  const bytes = files.reduce((sum, path) => sum + lstatSync(join(root, path)).size, 0);
  if (bytes > MAX_SOURCE_BYTES) {
    throw new AuditError(
      'BYTECODE_UNKNOWN',
      `a package in move/ has more than ${MAX_SOURCE_BYTES} bytes of sources`,
    );
  }
  return Object.fromEntries(files.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

/** Returns the paths of a package's local dependencies. */
export function localPaths(sources: Sources): string[] {
  const paths = (sources['Move.toml'] ?? '').matchAll(/\blocal\s*=\s*["']([^"']+)["']/g);
  return [...paths].map(([, path = '']) => path);
}

/**
 * Returns the names of the modules that sources declare. The compiler may find fewer modules, since it leaves
 * out those for tests.
 */
export function modulesIn(sources: Sources): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [path, text] of Object.entries(sources)) {
    if (!path.endsWith('.move')) continue;
    const tokens = splitTokens(text);
    for (const [index, token] of tokens.entries()) {
      if (token !== 'module') continue;
      const name = tokens[index + 2] === '::' ? tokens[index + 3] : tokens[index + 1];
      if (name !== undefined && /^[a-zA-Z]\w*$/.test(name)) names.add(name);
    }
  }
  return names;
}

// An unterminated string extends to the end of the text, so that the pattern reads each text only once.
const CODE = /\/\/[^\n]*|\/\*|"(?:\\.|[^"\\])*\\?(?:"|$)|\w+|::|[;{]/gs;
const COMMENT = /\/\*|\*\//g;

/** Splits Move code into words and punctuation. Leaves out strings and comments; comments can be nested. */
function splitTokens(text: string): string[] {
  const tokens: string[] = [];
  let depth = 0;
  for (let at = 0; ; ) {
    const pattern = depth > 0 ? COMMENT : CODE;
    pattern.lastIndex = at;
    const [token] = pattern.exec(text) ?? [];
    if (token === undefined) return tokens;
    at = pattern.lastIndex;
    if (token === '/*') depth += 1;
    else if (token === '*/') depth -= 1;
    else if (!/^(?:\/\/|")/.test(token)) tokens.push(token);
  }
}
