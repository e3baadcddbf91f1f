import { spawnSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { replaceBy, replaceFile, replaceFileDurably } from '../../../src/service/replace_file.ts';

let dir: string;
let file: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'replace-'));
  file = join(dir, 'file');
  onTestFinished(() => rmSync(dir, { recursive: true }));
});

test.each([replaceFile, replaceFileDurably])(
  '%o replaces the content, and leaves no other file in the folder',
  (replace) => {
    for (const content of ['first', Buffer.from('second')]) {
      replace(file, content);
      expect([readFileSync(file, 'utf8'), readdirSync(dir)]).toEqual([String(content), ['file']]);
    }
  },
);

test('replaceFile gives the file its mode, whatever the umask', () => {
  const oldUmask = process.umask(0o077);
  try {
    replaceFile(file, 'x', 0o644);
    expect(statSync(file).mode & 0o777).toBe(0o644);
    replaceFile(file, 'x');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  } finally {
    process.umask(oldUmask);
  }
});

test('replaceFile replaces a link, and does not write to its target', () => {
  const victim = join(dir, 'victim');
  writeFileSync(victim, 'kept');
  symlinkSync(victim, file);
  replaceFile(file, 'new');
  expect([readFileSync(victim, 'utf8'), readFileSync(file, 'utf8')]).toEqual(['kept', 'new']);
  expect(lstatSync(file).isFile()).toBe(true);
});

test('replaceFile replaces a FIFO without opening it', () => {
  expect(spawnSync('mkfifo', [file]).status).toBe(0);
  replaceFile(file, 'new');
  expect(lstatSync(file).isFile()).toBe(true);
});

test('replaceFile first writes to a random path, so that no other file in the folder can block it', () => {
  const paths = [0, 1].map(() => {
    let path = '';
    replaceBy(file, (newPath) => {
      path = newPath;
      writeFileSync(newPath, 'x', { flag: 'wx' });
    });
    return path;
  });
  expect(new Set(paths).size).toBe(2);
  for (const path of paths) expect(path).toMatch(/\/file\.[0-9a-f-]{36}$/);
  for (const name of ['file.new', `file.${process.pid}`]) mkdirSync(join(dir, name));
  replaceFile(file, 'new');
  expect(readFileSync(file, 'utf8')).toBe('new');
});

test('replaceFile leaves only the old file if the new file can not be written or renamed', () => {
  writeFileSync(file, 'old');
  const fail = () =>
    replaceBy(file, (newPath) => {
      writeFileSync(newPath, 'half');
      throw new Error('the disk is full');
    });
  expect(fail).toThrow('the disk is full');
  expect([readFileSync(file, 'utf8'), readdirSync(dir)]).toEqual(['old', ['file']]);
  mkdirSync(join(dir, 'folder'));
  expect(() => replaceFile(join(dir, 'folder'), 'x')).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(readdirSync(dir).sort()).toEqual(['file', 'folder']);
});
