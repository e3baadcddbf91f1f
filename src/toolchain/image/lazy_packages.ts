/**
 * Packages that a server needs late or never. An image has each package as a separate file beside server.js,
 * with everything that the package needs. The server's start does not read or compile this file; the first
 * use loads it.
 */
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';

export interface LazyPackage {
  /** Path of the module by which other modules load the package, from the root. */
  readonly module: string;
  /** Name of the package's file in the image. */
  readonly file: string;
  /**
   * Whether other modules load the package only when they need it. If not, a proxy replaces the package, and
   * loads it when one of its properties is used.
   */
  readonly isLoadedLate?: true;
}

export const LAZY_PACKAGES: readonly LazyPackage[] = [
  // Builds requests to upstreams: `loadAxios`.
  { module: 'node_modules/axios/dist/browser/axios.cjs', file: 'server.axios.js', isLoadedLate: true },
  // Reads texts in encodings other than UTF-8, for Express' parsers of bodies.
  { module: 'node_modules/iconv-lite/lib/index.js', file: 'server.iconv-lite.js' },
  // The table of media types, for Express.
  { module: 'node_modules/mime-types/index.js', file: 'server.mime-types.js' },
  // Reads queries and forms that nest, for Express.
  { module: 'node_modules/qs/lib/index.js', file: 'server.qs.js' },
];

/** Names of all files that the server of an image may have. Some of them may be missing. */
export const SERVER_FILES: readonly string[] = ['server.js', ...LAZY_PACKAGES.map(({ file }) => file)];

/**
 * Returns a plugin for the bundler that replaces each package by code that loads the package's own file,
 * beside the bundle.
 *
 * @param root folder of the build
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
        code: lazyPackage.isLoadedLate ? formatRequire(lazyPackage) : formatProxy(lazyPackage),
        moduleType: 'js',
      };
    },
  };
}

const formatRequire = ({ file }: LazyPackage) => `module.exports = require('./${file}');`;

/**
 * Returns code that exports a proxy of the package's exports, which must be a plain object. The proxy loads
 * the package when one of its properties is used.
 */
const formatProxy = ({ file }: LazyPackage) => `
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
