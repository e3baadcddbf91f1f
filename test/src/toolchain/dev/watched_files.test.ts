import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { WatchedFiles } from '../../../../src/toolchain/dev/watched_files.ts';

/** Makes a folder with the files a.ts and b.ts, and watches a.ts. */
function createWatchedFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-watched-'));
  const path = (name: string) => join(folder, name);
  const save = (name: string) => writeFileSync(path(name), `${Math.random()}`);
  for (const name of ['a.ts', 'b.ts']) save(name);
  const notices: string[] = [];
  const files = new WatchedFiles((file) => notices.push(file.slice(folder.length + 1)));
  onTestFinished(() => {
    files.close();
    rmSync(folder, { recursive: true });
  });
  files.beginRound();
  files.add(path('a.ts'));
  /** Runs an action, waits for the first notice, and returns the files in that notice. */
  const readNotices = async (action: () => void): Promise<string[]> => {
    notices.length = 0;
    action();
    await expect.poll(() => notices.length).toBeGreaterThan(0);
    return [...new Set(notices)];
  };
  /** Runs actions that should cause no notice, and then saves a.ts. Returns the files that were noticed. */
  const readNoticesUntilA = (...actions: readonly (() => void)[]) =>
    readNotices(() => {
      for (const action of [...actions, () => save('a.ts')]) action();
    });
  return { files, path, save, readNotices, readNoticesUntilA };
}

test('WatchedFiles sees every save in place, and every save by rename', async () => {
  const { path, save, readNotices } = createWatchedFolder();
  const rename = () => {
    save('a.ts.new');
    renameSync(path('a.ts.new'), path('a.ts'));
  };
  const sed = () => void execFileSync('sed', ['-i.bak', 's/$/ /', path('a.ts')]);
  for (const action of [() => save('a.ts'), rename, rename, sed, sed, () => save('a.ts'), rename]) {
    expect(await readNotices(action)).toEqual(['a.ts']);
  }
});

test('WatchedFiles sees a file that is deleted, and created again', async () => {
  const { path, save, readNotices } = createWatchedFolder();
  expect(await readNotices(() => rmSync(path('a.ts')))).toEqual(['a.ts']);
  expect(await readNotices(() => save('a.ts'))).toEqual(['a.ts']);
});

test('WatchedFiles ignores other files in the folder, backups and the files of an editor', async () => {
  const { save, readNoticesUntilA } = createWatchedFolder();
  const actions = ['b.ts', 'a.ts~', '.a.ts.swp', '4913'].map((name) => () => save(name));
  expect(await readNoticesUntilA(...actions)).toEqual(['a.ts']);
});

test('WatchedFiles sees a file that appears together with its folder', async () => {
  const { files, path, save, readNotices } = createWatchedFolder();
  files.add(path('new/deep/c.ts'));
  expect(
    await readNotices(() => {
      mkdirSync(path('new/deep'), { recursive: true });
      save('new/deep/c.ts');
    }),
  ).toEqual(['new']);
});

test('WatchedFiles forgets files that were not added in a round, but only at its end', async () => {
  const { files, path, save, readNotices, readNoticesUntilA } = createWatchedFolder();
  files.add(path('b.ts'));
  files.finishRound();
  files.beginRound();
  files.add(path('a.ts'));
  expect(await readNotices(() => save('b.ts'))).toEqual(['b.ts']);
  files.finishRound();
  expect(await readNoticesUntilA(() => save('b.ts'))).toEqual(['a.ts']);
});

test('WatchedFiles sees the files of a folder that was deleted and created again, in the next round', async () => {
  const { files, path, save, readNotices } = createWatchedFolder();
  mkdirSync(path('sub'));
  save('sub/c.ts');
  files.add(path('sub/c.ts'));
  await readNotices(() => rmSync(path('sub'), { recursive: true }));
  mkdirSync(path('sub'));
  save('sub/c.ts');
  files.beginRound();
  files.add(path('a.ts'));
  files.add(path('sub/c.ts'));
  files.finishRound();
  expect(await readNotices(() => save('sub/c.ts'))).toContain('sub/c.ts');
});
