/** A build without the trial start does not run the application. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { readCpio } from '../../../../src/cli/image/cpio.ts';
import { manifestIn } from '../../../../src/server/application/load_application.ts';
import { formatManifest } from '../../../../src/server/application/manifest.ts';
import { createRecipe } from '../../../../src/toolchain/image/build.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const PROGRAM = '/bin/true';
const isLinux = existsSync('/lib64/ld-linux-x86-64.so.2') && spawnSync('readelf', ['-v']).status === 0;

test('--no-trial is passed from the recipe to the program that packs the ramdisks, and is not the default', () => {
  const source = { framework: ROOT, appDir: 'src/apps/weather' };
  expect(createRecipe(source, true).args).toEqual({ APP_DIR: 'src/apps/weather', TRIAL: '--no-trial' });
  expect(createRecipe(source, false).args).toEqual({ APP_DIR: 'src/apps/weather' });
  const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
  expect(read('Containerfile')).toMatch(/^ARG TRIAL=\nRUN sh \S+image\.sh "\$APP_DIR" \$TRIAL$/m);
  expect(read('src/toolchain/image/image.sh')).toMatch(/^trial=\$\{2-\}$/m);
  expect(read('src/toolchain/image/image.sh')).toMatch(
    /ramdisks\.ts "\$app_dir" stage \$\{trial:\+"\$trial"\}$/m,
  );
});

test.runIf(isLinux)('the build with --no-trial packs the ramdisks and does not run the server', () => {
  const stage = mkdtempSync(join(tmpdir(), 'no-trial-'));
  onTestFinished(() => rmSync(stage, { recursive: true }));
  // A trial would start this program, and fail, since it reports no boot.
  for (const name of ['init', 'node', 'nsm.node']) copyFileSync(PROGRAM, join(stage, name));
  const marker = join(stage, 'ran');
  writeFileSync(join(stage, 'server.js'), `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '');`);
  const argv = ['src/toolchain/image/ramdisks.ts', 'src/apps/weather', stage, '--no-trial'];
  const { status, stderr } = spawnSync(process.execPath, argv, { cwd: ROOT, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  expect(existsSync(marker)).toBe(false);
  const entries = readCpio(readFileSync(join(stage, 'app.cpio')));
  const paths = entries.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(['app/server.js', 'app/enclave.conf']));
  expect(paths.filter((path) => path.startsWith('app/app.'))).toEqual(['app/app.json']);
  const manifest = Buffer.from(entries.find(({ path }) => path === 'app/app.json')?.data ?? []).toString();
  expect(manifest).toBe(formatManifest(manifestIn(join(ROOT, 'src/apps/weather'))));
});
