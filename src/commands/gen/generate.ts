/** What is generated of the types that an application signs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DeclaredStruct } from 'sui-enclave/wire/intent';
import { schemaTypeOf } from 'sui-enclave/wire/schema_type';
import { loadFolder } from 'sui-enclave-server/load_application';
import type { ApplicationFolder } from '../project.ts';
import { clientModule } from './client_module.ts';
import { GenError } from './errors.ts';
import { generatedCode, generatedJson } from './generated_file.ts';
import { moveModule, moveTests } from './move_module.ts';
import { vectorsOf } from './samples.ts';
import { signedStructs } from './signed_structs.ts';

/**
 * @param moveFolder absolute, of a Move package that depends on `enclave`
 * @returns content by path
 * @throws GenError; ConfigError of the application
 */
export async function generate(
  { name, folder }: ApplicationFolder,
  moveFolder: string,
): Promise<ReadonlyMap<string, string>> {
  const { module } = await loadFolder(folder, name);
  const { move, application } = filesOfTypes(module.signs, packageNameIn(moveFolder));
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
export function filesOfTypes(types: readonly DeclaredStruct[], packageName: string): GeneratedFiles {
  const structs = signedStructs(types.map(schemaTypeOf));
  const vectors = vectorsOf(types);
  const lines = vectors.map((vector) => `    ${JSON.stringify(vector)}`);
  return {
    move: new Map([
      ['sources/signed.move', generatedCode(moveModule(packageName, structs))],
      ['tests/signed_vectors.move', generatedCode(moveTests(packageName, structs, vectors))],
    ]),
    application: new Map([
      ['generated/vectors.json', generatedJson(`  "vectors": [\n${lines.join(',\n')}\n  ]\n`)],
      ['generated/client.ts', generatedCode(clientModule(structs))],
    ]),
  };
}

function packageNameIn(folder: string): string {
  const file = join(folder, 'Move.toml');
  const toml = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const [, name] = /^\[package\]$[^[]*?^name *= *"([a-z][a-z0-9_]*)" *$/ms.exec(toml) ?? [];
  if (name !== undefined) return name;
  throw new GenError('GEN_PACKAGE', `${file} is missing, or does not name the package`);
}
