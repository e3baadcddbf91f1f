/** `sui-enclave schema [application]`: writes the schema.json of applications, or checks it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnclaveError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { text } from 'sui-enclave-cli/values';
import { applicationNames } from 'sui-enclave-server/load_application';
import { type ApplicationFolder, findProject, type Project } from '../project.ts';
import { createSchemaFile, SCHEMA_FILE } from './app_schema.ts';

/** Error for a schema.json that differs from what the command would write. */
class OutdatedError extends EnclaveError {
  readonly code = 'SCHEMA_OUTDATED';
}

/**
 * Lists the applications of a project.
 *
 * @param name name of the only application to list. Default: every application
 * @throws ConfigError for an unknown application
 */
export function listApplications(project: Project, name: string | undefined): ApplicationFolder[] {
  if (name !== undefined || !project.isClone) return [project.application(name)];
  return applicationNames(join(project.root, 'src/apps')).map((applicationName) =>
    project.application(applicationName),
  );
}

/**
 * Writes the schemas of applications, or checks them.
 *
 * @param check whether to write nothing, and to throw if a file would change
 * @returns the paths of the files
 * @throws OutdatedError; the errors of `createSchemaFile`
 */
export async function updateSchemas(
  applications: readonly ApplicationFolder[],
  check: boolean,
): Promise<string[]> {
  const files: string[] = [];
  const outdated: string[] = [];
  for (const application of applications) {
    const file = join(application.folder, SCHEMA_FILE);
    const content = await createSchemaFile(application);
    const isEqual = existsSync(file) && readFileSync(file, 'utf8') === content;
    if (!isEqual) outdated.push(file);
    if (!isEqual && !check) writeFileSync(file, content);
    files.push(file);
  }
  if (check && outdated.length > 0) {
    throw new OutdatedError(`${outdated.join(', ')}: run sui-enclave schema, and look at what changed`);
  }
  return files;
}

export const main = command({
  name: 'schema',
  purpose: `Writes schema.json beside app.ts: the inputs of an application's endpoints, as JSON Schema, and the fields of the
types that it signs. An image contains the file, and answers GET /schema with it.`,
  example: '--check',
  arguments: { application: { schema: text, optional: true } },
  options: { check: { help: 'write nothing, and fail if a file is out of date' } },
  notes:
    'without <application>: the application of this repository, or in a clone of sui-enclave all of src/apps\nexit codes: 0 written, or equal; 1 a file differs, or an application fails; 2 invalid command line',
  async run({ args: { application }, options: { check } }) {
    const files = await updateSchemas(listApplications(findProject(), application), check);
    return { json: { files }, text: files.join('\n') };
  },
});

if (import.meta.main) await runAsProcess(main);
