/** Compiles what is published for Node, and lays out the modules of each package. */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT, readManifest } from './tarball.ts';

const SRC = join(ROOT, 'src');
/** All compiled modules, where they are in `src`. */
const COMPILED = join(ROOT, 'build/package-modules');

/** Folders of `src` whose modules are imported by name. What is packed here runs in Node. */
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

/** @throws Error if the compiler reports an error, on standard error */
export function runCompiler(project: string): void {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', project], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}

/** Compiles modules and all that they reach. @param entries from `src`, without extension */
export function compile(entries: readonly string[]): void {
  rmSync(COMPILED, { recursive: true, force: true });
  mkdirSync(COMPILED, { recursive: true });
  const project = `${COMPILED}.tsconfig.json`;
  const source = (path: string) => join(SRC, path);
  const compilerOptions = {
    types: ['node'],
    rootDir: SRC,
    outDir: COMPILED,
    // The compiler emits nothing for what it finds in node_modules, where the workspaces are links.
    paths: Object.fromEntries([...MODULES].map(([name, path]) => [name, [source(path)]])),
  };
  const files = entries.map((entry) => source(`${entry}.ts`));
  writeFileSync(
    project,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.lib.json'), compilerOptions, files }),
  );
  runCompiler(project);
}

/** The sources, from `src`, by the names under which modules import them. */
const MODULES: ReadonlyMap<string, string> = new Map(
  PACKAGES.flatMap((folder) => {
    const { name, exports, imports = {} } = readManifest(folder);
    const nodeImports = Object.entries(imports).map(([entry, { node = '' }]) => [entry, node] as const);
    const entries = Object.entries(exports).map(([entry, path]) => [join(name, entry), path] as const);
    return [...entries, ...nodeImports].map(([entry, path]) => [entry, join(folder, path)] as const);
  }),
);

export interface Layout {
  /** Folder for the modules, in the same places as in `src`. It is emptied first. */
  readonly folder: string;
  /** Modules, from `src` and without extension: all that they reach is in the package. */
  readonly entries: readonly string[];
  /** Modules that are published with their declarations, and with the types that these name. */
  readonly declared?: readonly string[] | 'all';
  /** Modules of other published packages: their names there, by their paths from `src` without extension. */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

/**
 * Lays out compiled modules. What they import by the name of a package of this repository is in the package
 * too, and imported by a relative path; what is `elsewhere` is imported from there.
 *
 * @returns the modules `elsewhere` that are imported
 */
export function layOut({ folder, entries, declared = [], elsewhere = new Map() }: Layout): string[] {
  rmSync(folder, { recursive: true, force: true });
  const imported = new Set<string>();
  const declarations = declared === 'all' ? entries : declared;
  // Grows while it is visited.
  const files = new Set([...entries.map(moduleFile), ...declarations.map(declarationFile)]);

  /** Returns the specifier that a module must import instead. */
  function link(specifier: string, file: string): string {
    const isRelative = specifier.startsWith('.');
    const source = isRelative ? join(dirname(file), specifier) : MODULES.get(specifier);
    // The module is of npm or of Node.
    if (source === undefined) return specifier;
    const module = withoutExtension(source);
    const name = elsewhere.get(module);
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
    // The compiler emits nothing for what is written in CommonJS.
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

/** @returns the modules in a folder that has been laid out, without extension */
export function modulesIn(folder: string): string[] {
  return globSync('**/*.js', { cwd: folder }).map(withoutExtension).sort();
}

/** Returns the modules in a folder of `src`, without extension. */
export function sourcesIn(folder: string): string[] {
  return globSync(`${folder}/**/*.ts`, { cwd: SRC }).map(withoutExtension);
}

export function withoutExtension(path: string): string {
  return path.replace(/(\.d)?\.(ts|js)$/, '');
}

const moduleFile = (module: string) => `${module}.js`;
const declarationFile = (module: string) => `${module}.d.ts`;

/** Imports as the compiler writes them, also within types, but not text in comments that looks like one. */
const IMPORTS = /(^(?:import|export)\b(?:[^;'"]*?\bfrom)?\s*|\bimport\()(['"])([^'"\n]+)\2/gm;

/** Modules that are started or bundled by their path. */
const OWN_FILES = /(\bnew URL\('[^'\n]+)\.ts(', import\.meta\.url\))/g;
