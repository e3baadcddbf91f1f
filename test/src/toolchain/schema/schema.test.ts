/**
 * The schemas of this repository's applications are up to date, and a schema has all types and
 * endpoints of its application.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readSchema } from '../../../../src/library/client/index.ts';
import { repositoryAt } from '../../../../src/toolchain/project.ts';
import { createSchemaFile } from '../../../../src/toolchain/schema/app_schema.ts';
import { listApplications, main, updateSchemas } from '../../../../src/toolchain/schema/schema.ts';
import { call } from '../../cli/run.ts';

const APPS = fileURLToPath(new URL('../../../../src/apps', import.meta.url));
const FIXTURES = fileURLToPath(new URL('../../../fixtures/apps', import.meta.url));

/** Copies an application to a folder from which its imports resolve. */
function copyFolder(folder: string): string {
  mkdirSync(join(APPS, '../../build'), { recursive: true });
  const copies = mkdtempSync(join(APPS, '../../build/schema-'));
  onTestFinished(() => rmSync(copies, { recursive: true }));
  const copy = join(copies, 'copy');
  cpSync(folder, copy, { recursive: true });
  return copy;
}

describe('sui-enclave schema', () => {
  test('--check: every schema.json is up to date (else: npx --offline sui-enclave schema)', async () => {
    const { status, stdout, stderr } = await call(main, ['--check']);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(join(APPS, 'weather/schema.json'));
    expect(stdout).toContain(join(APPS, 'salt/schema.json'));
  });

  test('--check fails for a missing or edited schema; without --check, the command writes it', async () => {
    const folder = copyFolder(join(FIXTURES, 'dice'));
    const file = join(folder, 'schema.json');
    const outdated = { code: 'SCHEMA_OUTDATED', message: expect.stringContaining(file) };
    await expect(updateSchemas([{ name: 'dice', folder }], true)).rejects.toMatchObject(outdated);
    expect(existsSync(file)).toBe(false);
    expect(await updateSchemas([{ name: 'dice', folder }], false)).toEqual([file]);
    const written = readFileSync(file, 'utf8');
    expect(await updateSchemas([{ name: 'dice', folder }], true)).toEqual([file]);
    writeFileSync(file, written.replace('sides', 'faces'));
    await expect(updateSchemas([{ name: 'dice', folder }], true)).rejects.toMatchObject(outdated);
    await updateSchemas([{ name: 'dice', folder }], false);
    expect(readFileSync(file, 'utf8')).toBe(written);
  });

  test("writes the schema of the only application of an author's repository if no name is passed", async () => {
    const folder = copyFolder(join(FIXTURES, 'dice'));
    writeFileSync(join(folder, 'app.yaml'), 'name: tally\nendpoints: []\nsecrets: []\n');
    const project = repositoryAt(folder);
    const applications = listApplications(project, undefined);
    expect(applications).toEqual([{ name: 'tally', folder }]);
    expect(await updateSchemas(applications, false)).toEqual([join(folder, 'schema.json')]);
    expect(() => listApplications(project, 'weather')).toThrow(/the applications are: tally$/);
  });

  test('lists the applications if it does not know the name', async () => {
    const { status, stderr } = await call(main, ['wether', '--check']);
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/the applications are: .*\bsalt\b.*\bweather\b.*\n$/),
    ]);
  });
});

describe('the schema of an application', () => {
  test('has all types that it signs, and each endpoint with its input', async () => {
    const schema = readSchema(
      JSON.parse(await createSchemaFile({ name: 'dice', folder: join(FIXTURES, 'dice') })),
    );
    expect(schema.signs.map(({ intent, name }) => [intent, name])).toEqual([
      [1, 'Roll'],
      [2, 'Draw'],
    ]);
    expect(schema.endpoints).toContainEqual({ method: 'POST', path: '/bet', idempotent: false });
    expect(schema.endpoints).toContainEqual({ method: 'GET', path: '/rules', idempotent: true });
    expect(Object.keys(schema.inputs)).toEqual([
      'POST /process_data',
      'POST /draw',
      'POST /bet',
      'GET /search',
    ]);
    expect(schema.inputs['GET /search']).toEqual({
      type: 'object',
      properties: { note: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] } },
      required: ['note'],
      additionalProperties: false,
    });
  });

  test('is the same each time', async () => {
    const folder = join(FIXTURES, 'dice');
    expect(await createSchemaFile({ name: 'dice', folder })).toBe(
      await createSchemaFile({ name: 'dice', folder }),
    );
  });

  test('is not written if it is nested too deeply to be read', async () => {
    const folder = copyFolder(join(FIXTURES, 'dice'));
    const app = join(folder, 'app.ts');
    const deep = readFileSync(app, 'utf8').replace(
      'picked: v.string()',
      'picked: v.array(v.array(v.array(v.array(v.array(v.string())))))',
    );
    writeFileSync(app, deep.replace('BigInt(picked)', '0n'));
    await expect(createSchemaFile({ name: 'dice', folder })).rejects.toMatchObject({
      code: 'CLIENT_SCHEMA',
      message: expect.stringMatching(/nests deeper than 8$/),
    });
  });

  test('is refused if create uses a secret', async () => {
    const folder = copyFolder(join(FIXTURES, 'dice'));
    const app = join(folder, 'app.ts');
    writeFileSync(
      app,
      readFileSync(app, 'utf8').replace(
        'create: ({ sign }) => ({',
        "create: ({ sign, secret }) => ({ ...{ s: secret('S') },",
      ),
    );
    await expect(createSchemaFile({ name: 'dice', folder })).rejects.toMatchObject({ code: 'APPLICATION' });
  });
});
