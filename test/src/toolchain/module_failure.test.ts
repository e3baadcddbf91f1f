/**
 * An error for an application that can't be loaded names file, line and column, and shows these lines.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { describeModuleFailure } from '../../../src/toolchain/module_failure.ts';

function writeModule(source: string): { readonly folder: string; readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'module-failure-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'app.ts');
  writeFileSync(path, source);
  return { folder, path };
}

function withStack(error: Error, stack: string): Error {
  return Object.assign(error, { stack });
}

test('a syntax error names its line and column, and shows the line', () => {
  const { folder, path } = writeModule('const a = 1;\nconst x = ;\n');
  const stack = `file://${path}:2\nconst a = 1;\nconst x = ;\n          ^\n\nSyntaxError: Expression expected\n    at parseTypeScript (node:internal/modules/typescript:72:36)`;
  const text = describeModuleFailure(withStack(new SyntaxError('Expression expected'), stack), folder);
  expect(text).toBe(
    `${path}:2:11: SyntaxError: Expression expected\n  1 | const a = 1;\n> 2 | const x = ;\n    |           ^\n  3 |`,
  );
});

test('an error that is thrown shows the innermost line of the application, not that of a library', () => {
  const { folder, path } = writeModule('const a = 1;\nread(a);\n');
  const stack = `Error: no\n    at read (file://${folder}/node_modules/feed/read.js:1:1)\n    at file://${path}:2:1\n    at ModuleJob.run (node:internal/modules/esm/module_job:561:25)`;
  expect(describeModuleFailure(withStack(new Error('no'), stack), folder)).toContain(
    `${path}:2:1: Error: no\n  1 | const a = 1;\n> 2 | read(a);\n    | ^`,
  );
});

test.each([
  ['a value that is not an error', 'text'],
  [
    'an error in a file outside of the application',
    withStack(new Error('no'), 'Error: no\n    at file:///elsewhere/app.ts:1:1'),
  ],
  ['an error without a stack', withStack(new Error('no'), '')],
])('%s has no description', (_, error) => {
  expect(describeModuleFailure(error, writeModule('').folder)).toBeUndefined();
});

test('an error in a missing file still has its position', () => {
  const stack = 'Error: no\n    at file:///nowhere/app.ts:7:3';
  expect(describeModuleFailure(withStack(new Error('no'), stack), '/nowhere')).toBe(
    '/nowhere/app.ts:7:3: Error: no\n',
  );
});
