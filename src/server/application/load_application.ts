/**
 * Loads an application from its folder, outside an image. In an image, the application is part of the bundle.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import type { DeclaredStruct } from 'sui-enclave/wire/intent';
import type { ApplicationModule } from './app.ts';
import { type Manifest, parseManifest } from './manifest.ts';
import { readSchemaFile } from './schema_file.ts';

export interface LoadedApplication {
  readonly manifest: Manifest;
  readonly module: ApplicationModule;
  /** The text of schema.json, if the file exists. */
  readonly schema: string | undefined;
}

/**
 * Loads an application from its subfolder of `appsDir`.
 *
 * @param appsDir folder with one subfolder for each application, ending in a slash
 * @param name the application's name, already validated as a plain folder name
 * @throws ConfigError
 */
export async function loadApplication(appsDir: URL, name: string): Promise<LoadedApplication> {
  const apps = fileURLToPath(appsDir);
  const folder = join(apps, name);
  if (readYaml(folder) === undefined) {
    const names = applicationNames(apps).join(', ') || 'none';
    throw new ConfigError(`APP=${name}: there is no such application; the applications are: ${names}`);
  }
  return await loadFolder(folder, nameOfFolder(folder, name));
}

/**
 * Loads an application from its folder.
 *
 * @param folder the application's folder, with `app.yaml` and `app.ts`
 * @param name the application's name, as `nameOfFolder` returns it
 * @throws ConfigError
 */
export async function loadFolder(folder: string, name: string): Promise<LoadedApplication> {
  const manifest = manifestIn(folder);
  const { default: module }: { default?: unknown } = await import(pathToFileURL(join(folder, 'app.ts')).href);
  if (!isApplicationModule(module)) {
    throw new ConfigError(
      `APP=${name}: the default export of app.ts must be defineApp({ signs, create }), where signs is a list of signed types of structs, and create is a function`,
    );
  }
  return { manifest, module, schema: readSchemaFile(join(folder, 'schema.json')) };
}

/** Returns the name of the application in a folder: see `readManifest`. @throws ConfigError */
export function nameOfFolder(folder: string, expectedName?: string): string {
  return readManifest(folder, expectedName).name;
}

/**
 * Reads `app.yaml` of a folder, and the name of the application, which an image measures. `app.yaml` has
 * the name, but may leave it out if the caller passes `expectedName`.
 *
 * @param expectedName the folder's name, if the folder is one of several applications. Any other folder may
 *   have any name
 * @throws ConfigError if both names are missing, or if they differ
 */
export function readManifest(
  folder: string,
  expectedName?: string,
): { readonly name: string; readonly manifest: Manifest } {
  const manifest = manifestIn(folder);
  const { name = expectedName } = manifest;
  if (name === undefined) {
    throw new ConfigError(
      `${join(folder, 'app.yaml')} must have the name of the application: name: ${basename(folder)}`,
    );
  }
  if (expectedName !== undefined && expectedName !== name) {
    throw new ConfigError(
      `APP=${expectedName}: its app.yaml has the name ${name}: rename the folder to match, or remove the name from app.yaml`,
    );
  }
  return { name, manifest };
}

/** Returns the names of the folders that have an `app.yaml`, sorted. */
export function applicationNames(appsDir: string): string[] {
  return globSync('*/app.yaml', { cwd: appsDir }).map(dirname).sort();
}

/** Reads `app.yaml` of a folder. @throws ConfigError */
export function manifestIn(folder: string): Manifest {
  const yaml = readYaml(folder);
  if (yaml === undefined) throw new ConfigError(`${folder} is not an application folder: it has no app.yaml`);
  return parseManifest(yaml);
}

function readYaml(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'app.yaml'), 'utf8');
  } catch {
    return undefined;
  }
}

function isApplicationModule(value: unknown): value is ApplicationModule {
  const { signs, create }: Partial<ApplicationModule> = Object(value);
  const isSigned = (type: Partial<DeclaredStruct>) =>
    typeof type?.intent === 'number' && Array.isArray(type.payload?.fields);
  return Array.isArray(signs) && signs.every(isSigned) && typeof create === 'function';
}
