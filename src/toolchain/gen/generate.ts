/** Generates the files of the types that an application signs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DeclaredStruct } from 'sui-enclave/wire/intent';
import { toSchemaType } from 'sui-enclave/wire/schema_type';
import { loadForAuthor } from '../application.ts';
import type { ApplicationFolder } from '../project.ts';
import { clientModule } from './client_module.ts';
import { GenError } from './errors.ts';
import { generatedCode, generatedJson, isGenerated } from './generated_file.ts';
import { goModule } from './go_module.ts';
import { moveModule, moveTests } from './move_module.ts';
import { pythonModule } from './python_module.ts';
import { createVectors } from './samples.ts';
import { signedStructs } from './signed_structs.ts';

/** Paths of the generated files in the Move package and in the application's folder. */
const MOVE_MODULE = 'sources/signed.move';
const MOVE_TESTS = 'tests/signed_vectors.move';
const VECTORS = 'generated/vectors.json';
const CLIENT = 'generated/client.ts';
const PYTHON = 'generated/signed.py';
const GO = 'generated/signed.go';

/** Returns whether a file exists that `generate` would replace. */
export function hasGenerated({ folder }: ApplicationFolder, moveFolder: string): boolean {
  const inMove = [MOVE_MODULE, MOVE_TESTS].map((path) => join(moveFolder, path));
  return [...inMove, ...[VECTORS, CLIENT, PYTHON, GO].map((path) => join(folder, path))].some(isGenerated);
}

/**
 * Generates the files of an application.
 *
 * @param moveFolder absolute path of a Move package that depends on `enclave`
 * @returns content by path
 * @throws GenError; ConfigError of the application
 */
export async function generate(
  { name, folder }: ApplicationFolder,
  moveFolder: string,
): Promise<ReadonlyMap<string, string>> {
  const { module } = await loadForAuthor(folder, name);
  const { move, application } = generateFiles(module.signs, readPackageName(moveFolder));
  return new Map([
    ...[...move].map(([path, content]) => [join(moveFolder, path), content] as const),
    ...[...application].map(([path, content]) => [join(folder, path), content] as const),
  ]);
}

/** Content by path: in the Move package, and in the application's folder. */
export interface GeneratedFiles {
  readonly move: ReadonlyMap<string, string>;
  readonly application: ReadonlyMap<string, string>;
}

/** @throws GenError */
export function generateFiles(types: readonly DeclaredStruct[], packageName: string): GeneratedFiles {
  const structs = signedStructs(types.map(toSchemaType));
  const vectors = createVectors(types);
  const lines = vectors.map((vector) => `    ${JSON.stringify(vector)}`);
  return {
    move: new Map([
      [MOVE_MODULE, generatedCode(moveModule(packageName, structs))],
      [MOVE_TESTS, generatedCode(moveTests(packageName, structs, vectors))],
    ]),
    application: new Map([
      [VECTORS, generatedJson(`  "vectors": [\n${lines.join(',\n')}\n  ]\n`)],
      [CLIENT, generatedCode(clientModule(structs))],
      [PYTHON, generatedCode(pythonModule(structs), '#')],
      [GO, generatedCode(`\n${goModule(structs)}`)],
    ]),
  };
}

function readPackageName(folder: string): string {
  const file = join(folder, 'Move.toml');
  const toml = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const [, name] = /^\[package\]$[^[]*?^name *= *"([a-z][a-z0-9_]*)" *$/ms.exec(toml) ?? [];
  if (name !== undefined) return name;
  throw new GenError('GEN_PACKAGE', `${file} is missing, or does not name the package`);
}
