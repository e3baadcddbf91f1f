/**
 * The process of an audit's build: its errors have their codes, and its output has printable lines only.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildApart } from '../../../../src/toolchain/audit/build_process.ts';
import { OFFLINE } from '../../../../src/toolchain/image/mirrors.ts';

/** Starts a build that fails, since a package or the framework is missing. */
async function failBuild(framework: string, isPackageMissing: boolean) {
  const dir = mkdtempSync(join(tmpdir(), 'audit-build-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const app = join(dir, 'app');
  mkdirSync(app);
  writeFileSync(join(app, 'app.yaml'), '');
  const source = { framework, app, appDir: 'src/apps/price', isApart: true };
  const missingPackage = { name: 'gone', version: '1.0.0', sha512: 'a'.repeat(128) };
  const packages = new Map(isPackageMissing ? [['node_modules/gone', missingPackage] as const] : []);
  const needed = { modules: [], workspaces: ['src/server'], links: {} };
  const build = { cache: join(dir, 'cache'), mirrors: OFFLINE, dir, withoutTrial: true };
  const lines: string[] = [];
  const error = await buildApart(source, { needed, packages }, build, (line) => void lines.push(line)).then(
    () => undefined,
    ({ code, message }: { code: string; message: string }) => ({ code, message }),
  );
  return { error, lines };
}

test('an error of the build keeps its code', async () => {
  const { error, lines } = await failBuild('/nowhere', true);
  expect(error).toEqual({ code: 'INPUTS_GONE', message: expect.stringContaining('gone 1.0.0 of npm') });
  expect(lines).toEqual([]);
});

test('the output of the build is bounded, and has no control characters', async () => {
  const { error, lines } = await failBuild(`/nowhere\u001b[2J\u202e/${'long'.repeat(200)}`, false);
  expect(error).toMatchObject({ code: 'COMMAND_FAILED' });
  const printed = lines.join('\n');
  expect(printed).toContain('\\u{1b}[2J\\u{202e}');
  expect(/^[\x20-\x7e…\n]*$/.test(printed)).toBe(true);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(500);
});
