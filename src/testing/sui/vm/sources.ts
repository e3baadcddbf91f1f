/** The sources that the Move VM compiles as one package: the stub of Sui's framework, and packages of `move/`. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const FRAMEWORK = new URL('../../move_framework/', import.meta.url);

export type Files = Readonly<Record<string, string>>;

/** A package's sources and those of its local dependencies, which are published with it. */
export interface Sources {
  readonly files: Files;
  /** Named addresses, which are all those of the published package. */
  readonly names: readonly string[];
}

let framework: Files | undefined;

/** The stub, with the modules of `model/` in place of those of the same name. */
export function frameworkSources(): Files {
  framework ??= {
    ...read(new URL('move-stdlib/sources/', FRAMEWORK), 'sources/std/'),
    ...read(new URL('sui-framework/sources/', FRAMEWORK), 'sources/sui/'),
    ...read(new URL('model/', FRAMEWORK), 'sources/sui/'),
  };
  return framework;
}

/**
 * @param move the folder of the packages; ends in a slash
 * @param name a package in it
 */
export function packageSources(move: URL, name: string): Sources {
  const folder = new URL(`${name}/`, move);
  const manifest = readFileSync(new URL('Move.toml', folder), 'utf8');
  const dependencies = [...manifest.matchAll(/\blocal\s*=\s*["']([^"']+)["']/g)].map(([, path = '']) => {
    const local = new URL(`${path}/`, folder);
    return packageSources(new URL('../', local), basename(local.pathname));
  });
  const [, own = name] = /^\s*name\s*=\s*["'](\w+)["']/m.exec(manifest) ?? [];
  const [, addresses = ''] = /^\[addresses\]([^[]*)/m.exec(manifest) ?? [];
  const named = [...addresses.matchAll(/^\s*(\w+)\s*=/gm)].map(([, name = '']) => name);
  return {
    files: Object.assign(
      {},
      ...dependencies.map(({ files }) => files),
      read(new URL('sources/', folder), `sources/${name}/`),
    ),
    names: [...new Set([...dependencies.flatMap(({ names }) => names), own, ...named])],
  };
}

/** The manifest of everything as one package. Extensions of modules are not in the edition 2024 yet. */
export function manifestOf(addresses: Readonly<Record<string, string>>): string {
  const named = { std: '0x1', sui: '0x2', ...addresses };
  const lines = Object.entries(named).map(([name, address]) => `${name} = "${address}"`);
  return `[package]\nname = "model"\nedition = "2024.alpha"\nimplicit-dependencies = false\n\n[addresses]\n${lines.join('\n')}\n`;
}

function read(folder: URL, prefix: string): Files {
  const paths = readdirSync(fileURLToPath(folder), { recursive: true, encoding: 'utf8' });
  const files = paths.filter((path) => path.endsWith('.move')).sort();
  return Object.fromEntries(
    files.map((path) => [prefix + path, readFileSync(new URL(path, folder), 'utf8')]),
  );
}
