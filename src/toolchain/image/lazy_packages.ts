/**
 * Packages that a server needs late, or never. In an image, each is a file of its own beside server.js, with
 * everything that it needs itself. A start does not read or compile the file; the first use loads it.
 */
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';

export interface LazyPackage {
  /** Module of the package that others load, from the root. */
  readonly module: string;
  /** The file in the image. */
  readonly file: string;
  /**
   * Whether others load it when they need it. Otherwise it stands for itself until one of its properties is
   * used.
   */
  readonly isLoadedLate?: true;
}

export const LAZY_PACKAGES: readonly LazyPackage[] = [
  // Builds requests to upstreams: `loadAxios`.
  { module: 'node_modules/axios/dist/browser/axios.cjs', file: 'server.axios.js', isLoadedLate: true },
  // Reads texts in other encodings than UTF-8, for Express' parsers of bodies.
  { module: 'node_modules/iconv-lite/lib/index.js', file: 'server.iconv-lite.js' },
  // The table of media types, for Express.
  { module: 'node_modules/mime-types/index.js', file: 'server.mime-types.js' },
  // Reads queries and forms that nest, for Express.
  { module: 'node_modules/qs/lib/index.js', file: 'server.qs.js' },
];

/** The files of a server in an image: some of them may be missing. */
export const SERVER_FILES: readonly string[] = ['server.js', ...LAZY_PACKAGES.map(({ file }) => file)];

/**
 * Has the bundler load packages from their files, where the bundle is.
 *
 * @param root of the build
 */
export function loadLazily(root: string, packages: readonly LazyPackage[]): Plugin {
  const byPath = new Map(
    packages.map((lazyPackage) => [realpathSync(join(root, lazyPackage.module)), lazyPackage]),
  );
  return {
    name: 'lazy packages',
    resolveId(source) {
      return packages.some(({ file }) => source === `./${file}`) ? { id: source, external: true } : null;
    },
    load(id) {
      const lazyPackage = byPath.get(id);
      if (lazyPackage === undefined) return null;
      return {
        code: lazyPackage.isLoadedLate ? loadAtOnce(lazyPackage) : loadOnUse(lazyPackage),
        moduleType: 'js',
      };
    },
  };
}

const loadAtOnce = ({ file }: LazyPackage) => `module.exports = require('./${file}');`;

/** Its properties are those of the package, which has no others than an object has. */
const loadOnUse = ({ file }: LazyPackage) => `
const load = () => require('./${file}');
module.exports = new Proxy({}, {
  get: (_, name) => load()[name],
  set: (_, name, value) => Reflect.set(load(), name, value),
  has: (_, name) => Reflect.has(load(), name),
  ownKeys: () => Reflect.ownKeys(load()),
  getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(load(), name),
  defineProperty: (_, name, descriptor) => Reflect.defineProperty(load(), name, descriptor),
  deleteProperty: (_, name) => Reflect.deleteProperty(load(), name),
});
`;
