import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readFiles } from '../../../../src/toolchain/image/files.ts';

let app: string;

beforeEach(() => {
  app = mkdtempSync(join(tmpdir(), 'files-'));
});
afterEach(() => rmSync(app, { recursive: true }));

function write(path: string, content: string | Uint8Array = path): void {
  mkdirSync(dirname(join(app, path)), { recursive: true });
  writeFileSync(join(app, path), content);
}

const refusal = (message: RegExp) =>
  expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) });

describe('the files of an application', () => {
  test('are the files of the folders that app.yaml names, and no others', () => {
    write('app.yaml');
    write('public/index.html');
    write('public/a/b/c.txt');
    write('public/.well-known/security.txt');
    write('views/x/page.html');
    write('views/y/page.html');
    mkdirSync(join(app, 'public/empty'));
    const files = readFiles(app, { files: ['views/x', 'public'] });
    expect([...files.keys()]).toEqual([
      'views/x/page.html',
      'public/.well-known/security.txt',
      'public/a/b/c.txt',
      'public/index.html',
    ]);
    expect(files.get('public/index.html')).toEqual(Buffer.from('public/index.html'));
  });

  test('are an empty map if app.yaml lists no folder', () => {
    write('public/index.html');
    expect(readFiles(app, {})).toEqual(new Map());
  });

  test.each(['public', 'public/missing', 'file'])('must be in a folder of the application: %s', (folder) => {
    write('file');
    if (folder !== 'public') write('public/index.html');
    expect(() => readFiles(app, { files: [folder] })).toThrow(refusal(/is not a folder of the application$/));
  });

  test.each([
    'node_modules',
    'test',
    'move',
    'out',
    'public/node_modules',
    'app.json',
    'server.js',
    'server.qs.js',
    'enclave.conf/x',
  ])('are refused in %s, which is a reserved name', (folder) => {
    write(`${folder}/x.txt`);
    expect(() => readFiles(app, { files: [folder] })).toThrow(refusal(/is a reserved name/));
  });

  test('are neither links nor below a link', () => {
    write('real/x.txt');
    mkdirSync(join(app, 'public'));
    symlinkSync('/etc/hostname', join(app, 'public/hostname'));
    symlinkSync('real', join(app, 'linked'));
    mkdirSync(join(app, 'real/folder'));
    symlinkSync('/etc', join(app, 'views'));
    expect(() => readFiles(app, { files: ['public'] })).toThrow(
      refusal(/"public\/hostname" is neither a file nor a folder/),
    );
    expect(() => readFiles(app, { files: ['linked'] })).toThrow(refusal(/"linked" is not a folder/));
    expect(() => readFiles(app, { files: ['linked/folder'] })).toThrow(refusal(/"linked" is not a folder/));
    expect(() => readFiles(app, { files: ['views'] })).toThrow(refusal(/"views" is not a folder/));
  });

  test('are not pipes, from which a read may never end', () => {
    write('public/x.txt');
    execFileSync('mkfifo', [join(app, 'public/pipe')]);
    expect(() => readFiles(app, { files: ['public'] })).toThrow(refusal(/"public\/pipe" is neither/));
  });

  test.each(['.env', '.DS_Store', '.git/config', 'a/.htpasswd'])('are not hidden: %s', (path) => {
    write(`public/${path}`);
    expect(() => readFiles(app, { files: ['public'] })).toThrow(refusal(/is a hidden file/));
  });

  test.each(['a b.txt', 'é.txt', 'line\nbreak', 'esc\u001b[31m'])(
    'are refused with a name that a ramdisk can not have: %j',
    (name) => {
      write(`public/${name}`);
      expect(() => readFiles(app, { files: ['public'] })).toThrow(refusal(/^[ -~]* has a name with a space/));
    },
  );

  test('have at most 20 MB together', () => {
    write('a/x.bin');
    write('b/y.bin');
    truncateSync(join(app, 'a/x.bin'), 12_000_000);
    truncateSync(join(app, 'b/y.bin'), 8_000_000);
    expect(readFiles(app, { files: ['a', 'b'] }).size).toBe(2);
    truncateSync(join(app, 'b/y.bin'), 8_000_001);
    expect(() => readFiles(app, { files: ['a', 'b'] })).toThrow(refusal(/more than 20000000 bytes/));
  });
});
