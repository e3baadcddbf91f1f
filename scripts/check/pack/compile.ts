/** Compiles modules that import other packages of this repository by name, and puts those packages among them. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { readManifest, ROOT } from './tarball.ts';

/** @throws Error if the compiler reports an error, on standard error */
export function runCompiler(project: string): void {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', project], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}

/**
 * Compiles modules and what they reach to a folder that is laid out as `src` is. What they import by the name of a
 * package of this repository is compiled too, and imported by a relative path: no registry has it.
 *
 * @param entries modules, from `src`
 * @param packages folders of `src`: the packages that may be reached
 * @param folder is emptied first
 */
export function compile(entries: readonly string[], packages: readonly string[], folder: string): void {
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
  for (const file of globSync('**/*.{js,d.ts}', { cwd: folder })) link(folder, file, modules);
}

/** The sources, from `src`, by the name under which other packages import them. */
function modulesByName(packages: readonly string[]): ReadonlyMap<string, string> {
  const modules = new Map<string, string>();
  for (const each of packages) {
    const { name, exports } = readManifest(each);
    for (const [entry, path] of Object.entries(exports)) modules.set(join(name, entry), join(each, path));
  }
  return modules;
}

/** Lets a compiled module import the others where they are. */
function link(folder: string, file: string, modules: ReadonlyMap<string, string>): void {
  const path = join(folder, file);
  const linked = readFileSync(path, 'utf8').replaceAll(IMPORTS, (whole, start, quote, specifier) => {
    const target = targetOf(specifier, file, modules);
    if (target === undefined) return whole;
    if (target.endsWith('.cjs')) copyCommonJs(folder, join(dirname(file), target));
    return `${start}${quote}${target.replace(/\.ts$/, '.js')}${quote}`;
  });
  writeFileSync(path, linked);
}

/** As the compiler writes them, also within types; not what looks like one in a comment. */
const IMPORTS = /(^(?:import|export)\b(?:[^;'"]*?\bfrom)?\s*|\bimport\()(['"])([^'"\n]+)\2/gm;

/** What a module must import instead; undefined for a package of npm or of Node. */
function targetOf(specifier: string, file: string, modules: ReadonlyMap<string, string>): string | undefined {
  if (specifier.startsWith('.')) return specifier;
  const module = modules.get(specifier);
  if (module === undefined) return undefined;
  const path = relative(dirname(file), module);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The compiler reads only the declarations of what is written in CommonJS, and emits neither. */
function copyCommonJs(folder: string, file: string): void {
  for (const each of [file, file.replace(/\.cjs$/, '.d.cts')]) {
    copyFileSync(join(ROOT, 'src', each), join(folder, each));
  }
}
