/**
 * `sui-enclave new_app <name>`: writes an application into a clone, from a template of `create-sui-enclave`.
 * src/apps/README.md shows the files of the price feed, so the tests of that page test these files too.
 */
import { type ExecFileSyncOptions, execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { nameProblem } from 'create-sui-enclave/names';
import {
  APPLICATION_TEMPLATES,
  type ApplicationTemplate,
  filesInClone,
  writeFiles,
} from 'create-sui-enclave/template';
import { EnclaveError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { CLONE } from 'sui-enclave-cli/places';
import * as v from 'valibot';
import { generate } from '../gen/generate.ts';
import { writeGenerated } from '../gen/generated_file.ts';
import { createSchemaFile, SCHEMA_FILE } from '../schema/app_schema.ts';

/** Name that an application and its Move module share. */
export const applicationName = v.pipe(
  v.string(),
  v.check(
    (name) => nameProblem(name) === undefined,
    ({ input }) => nameProblem(input) ?? '',
  ),
);

/** Error if a file of the application exists already. */
class ExistsError extends EnclaveError {
  readonly code = 'EXISTS';
}

/** Writes the application's files. @returns their paths */
async function write(name: string, template: ApplicationTemplate): Promise<string[]> {
  const files = filesInClone(template, name);
  const paths = [...files.keys()];
  const existing = [`src/apps/${name}`, `move/${name}`, ...paths].find((path) =>
    existsSync(join(CLONE, path)),
  );
  if (existing !== undefined) throw new ExistsError(`${existing} exists already: choose another name`);
  writeFiles(CLONE, files);
  // A name of another length changes the places where lines must break.
  const code = paths.filter((path) => path.endsWith('.ts'));
  const options: ExecFileSyncOptions = { cwd: CLONE, stdio: ['ignore', 'ignore', 'inherit'] };
  execFileSync(
    join(CLONE, 'node_modules/.bin/biome'),
    ['check', '--write', '--log-level=error', ...code],
    options,
  );
  return [...paths, ...(await writeDerived(name, template))];
}

/** Writes the files that `schema` and `gen` make. @returns their paths */
async function writeDerived(name: string, template: ApplicationTemplate): Promise<string[]> {
  const application = { name, folder: join(CLONE, 'src/apps', name) };
  const schema = join(application.folder, SCHEMA_FILE);
  writeFileSync(schema, await createSchemaFile(application), { flag: 'wx' });
  const isSigned = template !== 'empty';
  const generated = isSigned
    ? await generate(application, join(CLONE, 'move', name))
    : new Map<string, string>();
  return [schema, ...writeGenerated(generated, false)].map((path) => relative(CLONE, path));
}

export const main = command({
  name: 'new_app',
  purpose: `Writes an application with its fake upstream, tests and Move package: the price feed of src/apps/README.md under another
name, such as stocks or gas_prices. Existing files are not changed. create-sui-enclave writes the same files, and a
repository around them.`,
  example: 'stocks',
  arguments: { name: { schema: applicationName } },
  options: {
    template: {
      value: '<name>',
      help: `${APPLICATION_TEMPLATES.join(', ')}: the last one signs nothing yet`,
      schema: v.picklist(APPLICATION_TEMPLATES, `must be one of ${APPLICATION_TEMPLATES.join(', ')}`),
      default: 'oracle',
    },
  },
  notes: 'exit codes: 0 written; 1 an application or package of that name exists; 2 invalid command line',
  async run({ args: { name }, options: { template } }) {
    const files = await write(name, template);
    const text = `${files.join('\n')}

Try:   make dev APP=${name}
Test:  npm test -- src/apps/${name} && npm run test:move ${name}
Next:  the host in src/apps/${name}/app.yaml, the type in types.ts, and npx --offline sui-enclave gen ${name}. src/apps/README.md explains each file.`;
    return { json: { files }, text };
  },
});

if (import.meta.main) await runAsProcess(main);
