/** `sui-enclave schema [application]`: writes the schema.json of applications, or compares it. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError, EnclaveError } from 'sui-enclave/errors';
import { command, runAsProcess } from '../command.ts';
import { text } from '../values.ts';
import { SCHEMA_FILE, schemaFileOf } from './app_schema.ts';

const APPS = fileURLToPath(new URL('../../apps', import.meta.url));

/** A schema.json is not what the command would write. */
class OutdatedError extends EnclaveError {
  readonly code = 'SCHEMA_OUTDATED';
}

/** @param app its name; default: every application @throws ConfigError if there is none */
function foldersOf(app: string | undefined): string[] {
  const names = globSync('*/app.yaml', { cwd: APPS }).map(dirname).sort();
  const chosen = names.filter((name) => app === undefined || name === app);
  if (chosen.length === 0) {
    throw new ConfigError(`there is no application ${app}; the applications are: ${names.join(', ')}`);
  }
  return chosen.map((name) => join(APPS, name));
}

export const main = command({
  name: 'schema',
  purpose: `Writes schema.json beside app.ts: what the endpoints of an application take, as JSON Schema, and the fields of the
types that it signs. An image contains the file, and answers GET /schema with it.`,
  arguments: { application: { schema: text, optional: true } },
  options: { check: { help: 'write nothing, and fail if a file is not what would be written' } },
  notes:
    'without a name: every application of src/apps\nexit codes: 0 written, or equal; 1 a file differs, or an application fails; 2 invalid command line',
  async run({ args: { application }, options: { check } }) {
    const files: string[] = [];
    const outdated: string[] = [];
    for (const folder of foldersOf(application)) {
      const file = join(folder, SCHEMA_FILE);
      const content = await schemaFileOf(folder);
      const isEqual = existsSync(file) && readFileSync(file, 'utf8') === content;
      if (!isEqual) outdated.push(file);
      if (!isEqual && !check) writeFileSync(file, content);
      files.push(file);
    }
    if (check && outdated.length > 0) {
      throw new OutdatedError(`${outdated.join(', ')}: run sui-enclave schema, and look at what changed`);
    }
    return { json: { files }, text: files.join('\n') };
  },
});

if (import.meta.main) await runAsProcess(main);
