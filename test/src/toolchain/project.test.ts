import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../../src/library/errors.ts';
import { loadFolder, nameOfFolder } from '../../../src/server/application/load_application.ts';
import { ENCLAVE_PACKAGE } from '../../../src/toolchain/places.ts';
import { cloneAt, findProject, repositoryAt } from '../../../src/toolchain/project.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const YAML = 'endpoints: []\nsecrets: []\n';

/** Makes a folder with these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'project-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

describe('the name of an application', () => {
  test.each([
    ['that of its folder', YAML, 'dice', 'dice'],
    ['that of app.yaml', `name: dice\n${YAML}`, undefined, 'dice'],
    ['that of both, if they are the same', `name: dice\n${YAML}`, 'dice', 'dice'],
  ])('is %s', (_source, yaml, expectedName, name) => {
    expect(nameOfFolder(folderWith({ 'app.yaml': yaml }), expectedName)).toBe(name);
  });

  test.each([
    ['no file states it', YAML, undefined, /app\.yaml must have the name of the application: name: project-/],
    [
      'app.yaml has another name',
      `name: tally\n${YAML}`,
      'dice',
      /^APP=dice: its app\.yaml has the name tally/,
    ],
    ['it has a capital letter', `name: Dice\n${YAML}`, undefined, /^app\.yaml, name: the file must have/],
  ])('is refused if %s', (_reason, yaml, expectedName, message) => {
    const folder = folderWith({ 'app.yaml': yaml });
    expect(() => nameOfFolder(folder, expectedName)).toThrow(ConfigError);
    expect(() => nameOfFolder(folder, expectedName)).toThrow(message);
  });
});

describe('a clone', () => {
  test('is the one that contains this program, whatever the current folder is', () => {
    const project = findProject(folderWith({ 'app.yaml': YAML, 'package.json': '{}' }));
    expect([project.root, project.isClone]).toEqual([resolve(ROOT), true]);
    expect(project.application('weather')).toEqual({
      name: 'weather',
      folder: join(ROOT, 'src/apps/weather'),
    });
    expect(project.movePackages().get('enclave')).toBe(ENCLAVE_PACKAGE);
  });

  test.each(['wether', '', '../../test/fixtures/apps/dice'])('has no application %j', (name) => {
    expect(() => findProject().application(name)).toThrow(
      new RegExp(
        `APP=${name}: there is no such application; the applications are: .*\\bsalt\\b.*\\bweather\\b`,
      ),
    );
  });

  test('refuses an application whose name in app.yaml is not the name of its folder', () => {
    const root = folderWith({ 'src/apps/dice/app.yaml': `name: tally\n${YAML}` });
    expect(() => cloneAt(root).application('dice')).toThrow(/has the name tally/);
  });
});

describe("an author's repository", () => {
  const FILES = {
    'app.yaml': `name: dice\n${YAML}`,
    'package.json': '{}',
    'move/dice/Move.toml': '',
    'move/notes/README.md': '',
  };

  test('has one application, in its own folder, and its Move packages in move/', () => {
    const root = folderWith(FILES);
    const project = repositoryAt(root);
    expect(project.application()).toEqual({ name: 'dice', folder: root });
    expect(project.application('dice')).toEqual({ name: 'dice', folder: root });
    expect([...project.movePackages()]).toEqual([['dice', join(root, 'move/dice')]]);
    expect(() => project.application('weather')).toThrow(
      'APP=weather: there is no such application; the applications are: dice',
    );
  });

  test('has an application that the server loads', async () => {
    const root = folderWith({ ...FILES, 'app.ts': 'export default { signs: [], create() {} };' });
    const { manifest } = await loadFolder(root, 'dice');
    expect(manifest.name).toBe('dice');
  });
});
