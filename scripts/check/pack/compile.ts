/** Compiles published modules for Node, and writes each package's modules to its folder. */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT, readManifest } from './tarball.ts';

const SRC = join(ROOT, 'src');
/** Folder of all compiled modules, with the same layout as `src`. */
const COMPILED = join(ROOT, 'build/package-modules');

/** Folders of `src` whose modules are imported by name. */
const PACKAGES = [
  'library',
  'service',
  'server',
  'devnet',
  'testing',
  'prover',
  'create',
  'cli',
  'toolchain',
];

/** Runs the TypeScript compiler, which reports to standard error. @throws Error if it reports an error */
export function runCompiler(project: string): void {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', project], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}

/** Compiles modules and all modules that they import. @param entries from `src`, without extension */
export function compile(entries: readonly string[]): void {
  rmSync(COMPILED, { recursive: true, force: true });
  mkdirSync(COMPILED, { recursive: true });
  const project = `${COMPILED}.tsconfig.json`;
  const source = (path: string) => join(SRC, path);
  const compilerOptions = {
    types: ['node'],
    rootDir: SRC,
    outDir: COMPILED,
    // The compiler emits nothing for modules in node_modules, where the workspaces are links.
    paths: Object.fromEntries([...MODULES].map(([name, path]) => [name, [source(path)]])),
  };
  const files = entries.map((entry) => source(`${entry}.ts`));
  writeFileSync(
    project,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.lib.json'), compilerOptions, files }),
  );
  runCompiler(project);
}

/**
 * Paths of the sources from `src`, by their names in imports. Of several paths for a name, it is the one for
 * Node.
 */
const MODULES: ReadonlyMap<string, string> = new Map(
  PACKAGES.flatMap((folder) => {
    const { name, exports, imports = {} } = readManifest(folder);
    const nodeImports = Object.entries(imports).map(([entry, { node = '' }]) => [entry, node] as const);
    const entries = Object.entries(exports).map(([entry, path]) => [join(name, entry), path] as const);
    return [...entries, ...nodeImports].map(([entry, path]) => [entry, join(folder, path)] as const);
  }),
);

export interface Layout {
  /** Output folder for the modules, with the same layout as `src`. It is emptied first. */
  readonly folder: string;
  /** Modules from `src`, without extension. The package also gets all modules that they import. */
  readonly entries: readonly string[];
  /** Modules that are published with their declarations and with the types that these use. */
  readonly declared?: readonly string[] | 'all';
  /** Names of modules in other published packages, by their paths from `src` without extension. */
  readonly externalModules?: ReadonlyMap<string, string>;
}

/**
 * Writes compiled modules to a package's folder. If they import a module of this repository by name, the
 * package gets that module too, and the import becomes a relative path. Modules in `externalModules` are
 * imported from their package.
 *
 * @returns the modules in `externalModules` that are imported
 */
export function layOut({ folder, entries, declared = [], externalModules = new Map() }: Layout): string[] {
  rmSync(folder, { recursive: true, force: true });
  const imported = new Set<string>();
  const declarations = declared === 'all' ? entries : declared;
  // The set grows while the loop visits it.
  const files = new Set([...entries.map(moduleFile), ...declarations.map(declarationFile)]);

  /** Returns the specifier that replaces an import in a module. */
  function link(specifier: string, file: string): string {
    const isRelative = specifier.startsWith('.');
    const source = isRelative ? join(dirname(file), specifier) : MODULES.get(specifier);
    // The module belongs to npm or Node.
    if (source === undefined) return specifier;
    const module = withoutExtension(source);
    const name = externalModules.get(module);
    if (name !== undefined) {
      imported.add(module);
      return name;
    }
    const isDeclaration = file.endsWith('.d.ts');
    const isCommonJs = source.endsWith('.cjs');
    if (isCommonJs) files.add(isDeclaration ? source.replace(/cjs$/, 'd.cts') : source);
    else files.add(isDeclaration ? declarationFile(module) : moduleFile(module));
    const path = relative(dirname(file), isCommonJs ? source : moduleFile(module));
    return path.startsWith('.') ? path : `./${path}`;
  }

  for (const file of files) {
    const to = join(folder, file);
    mkdirSync(dirname(to), { recursive: true });
    if (declared === 'all' && file.endsWith('.js')) files.add(declarationFile(withoutExtension(file)));
    // The compiler emits nothing for files in CommonJS.
    if (/\.c(js|ts)$/.test(file)) cpSync(join(SRC, file), to);
    else {
      const linked = readFileSync(join(COMPILED, file), 'utf8')
        .replaceAll(IMPORTS, (_whole, start, quote, name) => `${start}${quote}${link(name, file)}${quote}`)
        .replaceAll(OWN_FILES, '$1.js$2');
      writeFileSync(to, linked);
    }
  }
  return [...imported].sort();
}

/** @returns the modules in a folder that `layOut` wrote, without extension */
export function listModules(folder: string): string[] {
  return globSync('**/*.js', { cwd: folder }).map(withoutExtension).sort();
}

/** Returns the modules in a folder of `src`, without extension. */
export function listSources(folder: string): string[] {
  return globSync(`${folder}/**/*.ts`, { cwd: SRC }).map(withoutExtension);
}

export function withoutExtension(path: string): string {
  return path.replace(/(\.d)?\.(ts|js)$/, '');
}

const moduleFile = (module: string) => `${module}.js`;
const declarationFile = (module: string) => `${module}.d.ts`;

/** Matches imports as the compiler writes them, also in types, but not similar text in comments. */
const IMPORTS = /(^(?:import|export)\b(?:[^;'"]*?\bfrom)?\s*|\bimport\()(['"])([^'"\n]+)\2/gm;

/** Matches references to modules that are started or bundled by their path. */
const OWN_FILES = /(\bnew URL\('[^'\n]+)\.ts(', import\.meta\.url\))/g;
