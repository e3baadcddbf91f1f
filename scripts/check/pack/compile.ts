/** Compiles modules that import other packages of this repository by name, and puts those packages among them. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT, readManifest } from './tarball.ts';

/** @throws Error if the compiler reports an error, on standard error */
export function runCompiler(project: string): void {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', project], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}

export interface Compilation {
  /** Modules, from `src`. */
  readonly entries: readonly string[];
  /** Folders of `src`: the packages that may be reached. */
  readonly packages: readonly string[];
  /** Is emptied first. */
  readonly folder: string;
  /** Modules of another published package: their names in it, by their paths from `src` without extension. */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

/**
 * Compiles modules and what they reach to a folder that is laid out as `src` is. What they import by the name of a
 * package of this repository is compiled too, and imported by a relative path: that package is private, or is published
 * without this module. What is `elsewhere` is imported from there, so that each class exists once.
 *
 * @returns the modules `elsewhere` that are imported
 */
export function compile({ entries, packages, folder, elsewhere = new Map() }: Compilation): string[] {
  const modules = modulesByName(packages);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const source = (path: string) => join(ROOT, 'src', path);
  const project = `${folder}.tsconfig.json`;
  const options = {
    types: ['node'],
    rootDir: join(ROOT, 'src'),
    outDir: folder,
    // The compiler emits nothing for what it finds in node_modules, where the workspaces are links.
    paths: Object.fromEntries([...modules].map(([name, path]) => [name, [source(path)]])),
  };
  const config = {
    extends: join(ROOT, 'tsconfig.lib.json'),
    compilerOptions: options,
    files: entries.map(source),
  };
  writeFileSync(project, JSON.stringify(config));
  runCompiler(project);
  for (const module of elsewhere.keys()) {
    for (const extension of ['js', 'd.ts']) rmSync(join(folder, `${module}.${extension}`), { force: true });
  }
  const linker = { folder, modules, elsewhere, imported: new Set<string>() };
  for (const file of globSync('**/*.{js,d.ts}', { cwd: folder })) link(file, linker);
  return [...linker.imported].sort();
}

/** @returns its compiled modules, from the folder and without extension */
export function modulesIn(folder: string): string[] {
  return globSync('**/*.js', { cwd: folder }).map(withoutExtension).sort();
}

function withoutExtension(path: string): string {
  return path.replace(/\.(ts|js)$/, '');
}

/** The sources, from `src`, by the name under which packages import them. What is packed here runs in Node. */
function modulesByName(packages: readonly string[]): ReadonlyMap<string, string> {
  const modules = new Map<string, string>();
  for (const folder of packages) {
    const { name, exports, imports = {} } = readManifest(folder);
    for (const [entry, path] of Object.entries(exports)) modules.set(join(name, entry), join(folder, path));
    for (const [own, { node }] of Object.entries(imports)) if (node) modules.set(own, join(folder, node));
  }
  return modules;
}

interface Linker extends Required<Pick<Compilation, 'folder' | 'elsewhere'>> {
  /** Sources, from `src`, by name. */
  readonly modules: ReadonlyMap<string, string>;
  /** Gets the modules `elsewhere` that are imported. */
  readonly imported: Set<string>;
}

/** Lets a compiled module find the others where they are. */
function link(file: string, linker: Linker): void {
  const path = join(linker.folder, file);
  const linked = readFileSync(path, 'utf8')
    .replaceAll(IMPORTS, (_whole, start, quote, specifier) => {
      const target = targetOf(specifier, file, linker);
      if (target.endsWith('.cjs')) copyCommonJs(linker.folder, join(dirname(file), target));
      return `${start}${quote}${target}${quote}`;
    })
    .replaceAll(OWN_FILES, '$1.js$2');
  writeFileSync(path, linked);
}

/** As the compiler writes them, also within types; not what looks like one in a comment. */
const IMPORTS = /(^(?:import|export)\b(?:[^;'"]*?\bfrom)?\s*|\bimport\()(['"])([^'"\n]+)\2/gm;

/** Modules that are started or bundled by their path. */
const OWN_FILES = /(\bnew URL\('[^'\n]+)\.ts(', import\.meta\.url\))/g;

/** What a module must import instead. */
function targetOf(specifier: string, file: string, { modules, elsewhere, imported }: Linker): string {
  const isRelative = specifier.startsWith('.');
  const source = isRelative ? join(dirname(file), specifier) : modules.get(specifier);
  // Of npm or of Node.
  if (source === undefined) return specifier;
  const module = withoutExtension(source);
  const name = elsewhere.get(module);
  if (name !== undefined) {
    imported.add(module);
    return name;
  }
  const path = relative(dirname(file), source).replace(/\.ts$/, '.js');
  return path.startsWith('.') ? path : `./${path}`;
}

/** The compiler reads only the declarations of what is written in CommonJS, and emits neither. */
function copyCommonJs(folder: string, file: string): void {
  for (const name of [file, file.replace(/\.cjs$/, '.d.cts')]) {
    copyFileSync(join(ROOT, 'src', name), join(folder, name));
  }
}
