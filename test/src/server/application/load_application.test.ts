import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../../../src/library/errors.ts';
import { loadApplication } from '../../../../src/server/application/load_application.ts';
import { APPS } from '../support.ts';

describe('loadApplication', () => {
  const folders = readdirSync(APPS, { withFileTypes: true }).filter((entry) => entry.isDirectory());

  test.each(folders.map(({ name }) => name))('loads %s of src/apps', async (name) => {
    const { module } = await loadApplication(APPS, name);
    expect(module.create).toBeTypeOf('function');
  });

  test.each([
    ['no default export', 'export const signs = []; export const create = () => ({});'],
    ['no create', 'export default { signs: [] };'],
    ['no list of types', 'export default { signs: {}, create() {} };'],
    [
      'a type without an intent',
      "export default { signs: [{ payload: { name: 'A', fields: [] } }], create() {} };",
    ],
    [
      'a type that is not a struct',
      "export default { signs: [{ intent: 0, payload: { name: 'u64' } }], create() {} };",
    ],
    ['nothing', 'export default null;'],
  ])('rejects an app.ts that exports %s', async (_name, source) => {
    const apps = mkdtempSync(join(tmpdir(), 'apps-'));
    onTestFinished(() => rmSync(apps, { recursive: true }));
    mkdirSync(join(apps, 'odd'));
    writeFileSync(join(apps, 'odd/app.yaml'), 'endpoints: []\nsecrets: []\n');
    writeFileSync(join(apps, 'odd/app.ts'), source);
    const loaded = loadApplication(pathToFileURL(`${apps}/`), 'odd');
    await expect(loaded).rejects.toThrow(ConfigError);
    await expect(loaded).rejects.toThrow(/^APP=odd: the default export of app\.ts must be defineApp/);
  });

  test('rejects an unknown name', async () => {
    await expect(loadApplication(APPS, 'wether')).rejects.toThrow(
      /^APP=wether: there is no such application; the applications are: .*\bsalt, weather$/,
    );
  });
});
