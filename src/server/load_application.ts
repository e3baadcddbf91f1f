/** Loads an application by its name, outside an image: in one, the application is part of the bundle. */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import type { DeclaredStruct } from 'sui-enclave/wire/intent';
import type { ApplicationModule } from './app.ts';
import { type Manifest, parseManifest } from './manifest.ts';
import { readSchemaFile } from './schema_file.ts';

/**
 * @param appsDir folder with one subfolder for each application, ending in a slash
 * @param name already validated as a plain folder name
 */
export async function loadApplication(
  appsDir: URL,
  name: string,
): Promise<{ manifest: Manifest; module: ApplicationModule; schema: string | undefined }> {
  const folder = new URL(`${name}/`, appsDir);
  const yaml = await readFile(new URL('app.yaml', folder), 'utf8').catch(() => {
    const others = applicationNames(appsDir).join(', ') || 'none';
    throw new ConfigError(`APP=${name}: there is no such application; the applications are: ${others}`);
  });
  const manifest = parseManifest(yaml);
  const { default: module }: { default?: unknown } = await import(new URL('app.ts', folder).href);
  if (!isApplicationModule(module)) {
    throw new ConfigError(
      `APP=${name}: the default export of app.ts must be defineApp({ signs, create }): signs a list of signed types, each of a struct, and create a function`,
    );
  }
  return { manifest, module, schema: readSchemaFile(fileURLToPath(new URL('schema.json', folder))) };
}

function isApplicationModule(value: unknown): value is ApplicationModule {
  const { signs, create }: Partial<ApplicationModule> = Object(value);
  const isSigned = (type: Partial<DeclaredStruct>) =>
    typeof type?.intent === 'number' && Array.isArray(type.payload?.fields);
  return Array.isArray(signs) && signs.every(isSigned) && typeof create === 'function';
}

function applicationNames(appsDir: URL): string[] {
  return globSync('*/app.yaml', { cwd: fileURLToPath(appsDir) })
    .map(dirname)
    .sort();
}
