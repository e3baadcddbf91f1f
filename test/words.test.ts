/**
 * Phrases and lengths that CONTRIBUTING.md, "Names and sentences", excludes from comments, texts and pages.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILES = globSync(
  [
    '*.md',
    '{deploy,enclave,move,examples,scripts,src,test}/**/*.{ts,tsx,cjs,md,cc,h,go,move,sh,yml}',
    'src/create/templates/**/*.txt',
  ],
  {
    cwd: ROOT,
    exclude: [
      '**/{node_modules,generated,dist,build}/**',
      // The rules quote what they exclude, and a release describes how it was.
      '{CONTRIBUTING,CHANGELOG}.md',
      'test/words.test.ts',
      // The text of a development key: another one would give the key, and all that it proves, another
      // digest.
      'src/prover/native/internal/iden3/zkey.go',
      'src/toolchain/prover/artifacts.ts',
      // What PCR1 measures.
      'enclave/init/**',
    ],
  },
);
const EXCLUDED = /\b(?:whoever|goes on|went on|(?:is|are) to be|so too|is no [a-z]+ (?:and|or) no)\b/i;
/** Columns, as in .editorconfig. */
const MAX_COLUMNS = 110;

const readLines = (file: string) => readFileSync(new URL(file, `file://${ROOT}`), 'utf8').split('\n');

test('no comment, text or page has an excluded phrase', () => {
  expect(FILES.length).toBeGreaterThan(1000);
  const lines = FILES.flatMap((file) =>
    readLines(file).flatMap((line, index) => (EXCLUDED.test(line) ? [`${file}:${index + 1}: ${line}`] : [])),
  );
  expect(lines).toEqual([]);
});

test('no comment of TypeScript is wider than a line of code', () => {
  // Not the docs of a Move module in a literal, which begin with three slashes.
  const isWide = (line: string) =>
    line.length > MAX_COLUMNS && /^\s*(?:\/\/(?!\/| biome-ignore)|\/?\*)/.test(line);
  const lines = FILES.filter((file) => /\.tsx?$/.test(file)).flatMap((file) =>
    readLines(file).flatMap((line, index) => (isWide(line) ? [`${file}:${index + 1}: ${line}`] : [])),
  );
  expect(lines).toEqual([]);
});
