/** Checks that a new repository of any name has the files that `schema` and `gen` would write there. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  APPLICATION_TEMPLATES,
  type ApplicationTemplate,
  derivedFiles,
  type Files,
  filesInClone,
  writeFiles,
} from '../../../src/create/template.ts';
import { compareGenerated } from '../../../src/toolchain/dev/test.ts';
import { generatedFiles } from '../../../src/toolchain/gen/gen.ts';
import { type Project, repositoryAt } from '../../../src/toolchain/project.ts';
import { createSchemaFile } from '../../../src/toolchain/schema/app_schema.ts';

const BUILD = fileURLToPath(new URL('../../../build/', import.meta.url));
const LONGEST = 'a_name_that_has_32_characters_ab';

/** Creates a repository in a folder of this one, so that imports find this repository's packages. */
function createRepository(template: ApplicationTemplate, name: string): Project {
  mkdirSync(BUILD, { recursive: true });
  const root = mkdtempSync(join(BUILD, 'derived-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const files: Files = new Map(
    [...filesInClone(template, name)].map(([path, content]) => [
      path.replace(`src/apps/${name}/`, ''),
      content,
    ]),
  );
  writeFiles(root, files);
  writeFiles(root, derivedFiles(template, name));
  return repositoryAt(root);
}

describe.each(['price', 'gas_2', LONGEST])('a repository named %s', (name) => {
  test.each(APPLICATION_TEMPLATES)('has its schema.json, with the template %s', async (template) => {
    const schema = await createSchemaFile(createRepository(template, name).application());
    expect(derivedFiles(template, name).get('schema.json')).toBe(schema);
  });

  test('has all files of gen with the template oracle, and none with the template empty', async () => {
    const project = createRepository('oracle', name);
    const expectedFiles = await generatedFiles(project, undefined, undefined);
    const { 'schema.json': _, ...generated } = Object.fromEntries(derivedFiles('oracle', name));
    const paths = [...expectedFiles].map(([path, content]) => [path.slice(project.root.length + 1), content]);
    expect(generated).toEqual(Object.fromEntries(paths));
    expect([...derivedFiles('empty', name).keys()]).toEqual(['schema.json']);
  });
});

describe('sui-enclave test', () => {
  const compare = (project: Project) =>
    compareGenerated(project.application(), join(project.root, 'move/price'));

  test.each(APPLICATION_TEMPLATES)('accepts the files of the template %s', async (template) => {
    await compare(createRepository(template, 'price'));
  });

  test.each([
    ['schema.json', 'SCHEMA_OUTDATED'],
    ['generated/client.ts', 'GEN_OUTDATED'],
    ['move/price/sources/signed.move', 'GEN_OUTDATED'],
    ['generated/vectors.json', 'GEN_EDITED'],
  ])('refuses a %s that is missing or changed', async (path, code) => {
    const project = createRepository('oracle', 'price');
    const file = join(project.root, path);
    if (code === 'GEN_OUTDATED') rmSync(file);
    else writeFileSync(file, `${derivedFiles('oracle', 'price').get(path)}\n`);
    await expect(compare(project)).rejects.toMatchObject({ code });
  });

  test('accepts an application without generated files, and one with a signed.move of its own', async () => {
    const project = createRepository('oracle', 'price');
    for (const path of derivedFiles('oracle', 'price').keys()) rmSync(join(project.root, path));
    await compare(project);
    writeFileSync(join(project.root, 'move/price/sources/signed.move'), 'module price::signed;\n');
    await compare(project);
  });
});
