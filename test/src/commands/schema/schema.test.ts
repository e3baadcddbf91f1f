/** The schemas of the applications here are up to date, and what an application has is in its schema. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { schemaFileOf } from '../../../../src/commands/schema/app_schema.ts';
import { main } from '../../../../src/commands/schema/schema.ts';
import { readSchema } from '../../../../src/library/client/index.ts';
import { call } from '../run.ts';

const APPS = fileURLToPath(new URL('../../../../src/apps', import.meta.url));
const FIXTURES = fileURLToPath(new URL('../../../fixtures/apps', import.meta.url));

/** A copy of an application where its imports are found. */
function copyOf(folder: string): string {
  const copies = mkdtempSync(join(APPS, '../../build/schema-'));
  onTestFinished(() => rmSync(copies, { recursive: true }));
  const copy = join(copies, 'copy');
  cpSync(folder, copy, { recursive: true });
  return copy;
}

describe('sui-enclave schema', () => {
  test('--check: every schema.json is what it would write (else: npm run schema)', async () => {
    const { status, stdout, stderr } = await call(main, ['--check']);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(join(APPS, 'weather/schema.json'));
    expect(stdout).toContain(join(APPS, 'salt/schema.json'));
  });

  test('--check fails for one that was edited; without it, the command writes it again', async () => {
    const file = join(APPS, 'weather/schema.json');
    const committed = readFileSync(file, 'utf8');
    onTestFinished(() => writeFileSync(file, committed));
    writeFileSync(file, committed.replace('temperature', 'humidity'));
    const checked = await call(main, ['weather', '--check']);
    expect(checked).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SCHEMA_OUTDATED: .*weather/),
    });
    expect((await call(main, ['weather'])).status).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe(committed);
  });

  test('names the applications if there is none of that name', async () => {
    const { status, stderr } = await call(main, ['wether', '--check']);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/the applications are: salt, weather\n$/)]);
  });
});

describe('the schema of an application', () => {
  test('has all that it signs, and each endpoint with its input', async () => {
    const schema = readSchema(JSON.parse(await schemaFileOf(join(FIXTURES, 'dice'))));
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

  test('is always the same', async () => {
    const folder = join(FIXTURES, 'dice');
    expect(await schemaFileOf(folder)).toBe(await schemaFileOf(folder));
  });

  test('is not written if it nests too deep to be read', async () => {
    const folder = copyOf(join(FIXTURES, 'dice'));
    const app = join(folder, 'app.ts');
    const deep = readFileSync(app, 'utf8').replace(
      'picked: v.string()',
      'picked: v.array(v.array(v.array(v.array(v.array(v.string())))))',
    );
    writeFileSync(app, deep.replace('BigInt(picked)', '0n'));
    await expect(schemaFileOf(folder)).rejects.toMatchObject({
      code: 'CLIENT_SCHEMA',
      message: expect.stringMatching(/nests deeper than 8$/),
    });
  });

  test('needs a create that uses neither its key nor secrets', async () => {
    const folder = copyOf(join(FIXTURES, 'dice'));
    const app = join(folder, 'app.ts');
    writeFileSync(
      app,
      readFileSync(app, 'utf8').replace(
        'create: ({ sign }) => ({',
        "create: ({ sign, secret }) => ({ ...{ s: secret('S') },",
      ),
    );
    await expect(schemaFileOf(folder)).rejects.toMatchObject({ code: 'APPLICATION' });
  });
});
